//! Connections between two stacks over wires of all kinds: each byte is looked at.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

mod wire;

use std::convert::Infallible;
use std::net::SocketAddr;

use means::Random;
use net::{ConnectionId, Failure, KeepAlive, ListenerId, Manner, Phase, Tuple};
use wire::{CALM, Weather, World, address, address_6, at, noted};

fn listen(world: &mut World, side: usize, port: u16) -> ListenerId {
    world.stacks[side].listen(None, port, [true, true], 128, noted(), &Manner::default()).unwrap()
}

fn connect(world: &mut World, side: usize, from: u16, to: u16) -> ConnectionId {
    let tuple = Tuple { local: at(side, from), remote: at(1 - side, to) };
    world.stacks[side].connect(world.now, tuple, Some(noted()), &Manner::default()).unwrap()
}

/// Two ends of one connection.
fn pair(world: &mut World, port: u16) -> [ConnectionId; 2] {
    let listener = listen(world, 1, port);
    let client = connect(world, 0, 40_000, port);
    let mut server = None;
    assert!(world.run(200, |world| {
        server = server.or_else(|| world.stacks[1].accept(listener));
        server.is_some() && world.stacks[0].phase(client) == Phase::Open
    }));
    [client, server.unwrap()]
}

fn send(world: &mut World, side: usize, id: ConnectionId, bytes: &[u8]) -> usize {
    let now = world.now;
    let mut rest = bytes;
    let sent = world.stacks[side].send(id, now, |room| {
        let part = rest.len().min(room.len());
        room[..part].copy_from_slice(&rest[..part]);
        rest = &rest[part..];
        Ok::<usize, Infallible>(part)
    });
    sent.unwrap()
}

fn receive(world: &mut World, side: usize, id: ConnectionId, most: usize) -> Vec<u8> {
    let now = world.now;
    let mut all = Vec::new();
    let taken = world.stacks[side].receive(id, now, |bytes| {
        let part = bytes.len().min(most - all.len());
        all.extend_from_slice(&bytes[..part]);
        Ok::<usize, Infallible>(part)
    });
    assert_eq!(taken.unwrap(), all.len());
    all
}

/// Both sides send what they were given and read what comes; true when all has come and both have seen the end.
struct Exchange {
    ends: [ConnectionId; 2],
    send: [Vec<u8>; 2],
    sent: [usize; 2],
    received: [Vec<u8>; 2],
    random: Random,
}

impl Exchange {
    fn new(ends: [ConnectionId; 2], seed: u64, bytes: [usize; 2]) -> Exchange {
        let mut random = Random::new(seed);
        let send = bytes.map(|count| (0..count).map(|_| random.bits() as u8).collect());
        Exchange { ends, send, sent: [0; 2], received: [Vec::new(), Vec::new()], random }
    }

    fn go_on(&mut self, world: &mut World) -> bool {
        for side in 0..2 {
            let (id, sent) = (self.ends[side], self.sent[side]);
            let rest = &self.send[side][sent..];
            let part = rest.len().min(1 + self.random.index(5000));
            if part > 0 && self.random.below(3) > 0 {
                let count = send(world, side, id, &rest[..part]);
                self.sent[side] += count;
                if self.sent[side] == self.send[side].len() {
                    world.stacks[side].end_writes(id, world.now);
                }
            }
            if self.random.below(3) > 0 {
                let most = 1 + self.random.index(9000);
                let came = receive(world, side, id, most);
                self.received[side].extend(came);
            }
        }
        let is_whole = |side: usize| self.received[side].len() == self.send[1 - side].len();
        (0..2).all(|side| is_whole(side) && world.stacks[side].has_end(self.ends[side]))
    }

    fn check(&self, seed: u64) {
        for side in 0..2 {
            assert!(self.received[side] == self.send[1 - side], "seed {seed}: bytes for side {side} differ");
        }
    }
}

/// Side, numbers, Linux's number of the state, unsent and unread bytes.
fn state_of(world: &World) -> Vec<(usize, Tuple, u8, usize, usize)> {
    let mut all = Vec::new();
    for (side, stack) in world.stacks.iter().enumerate() {
        stack.each_connection(|tuple, state, unsent, unread| all.push((side, tuple, state, unsent, unread)));
    }
    all
}

fn transfer(seed: u64, weather: Weather, most: usize, sums: bool) {
    // Whom nobody hears for two minutes gives up: where much is lost, connecting is not what is tried.
    let is_mild = weather.loses == 0 || weather.loses > 20;
    let mut world = World::with_sums(seed, if is_mild { weather } else { CALM }, sums);
    let mut random = Random::new(seed ^ 77);
    if random.below(4) == 0 {
        world.narrow(2);
    }
    let ends = pair(&mut world, 80);
    world.weather = weather;
    let bytes = [1 + random.index(most), 1 + random.index(most)];
    let mut exchange = Exchange::new(ends, seed, bytes);
    let is_done = world.run(3000, |world| exchange.go_on(world));
    let came = [0, 1].map(|side| exchange.received[side].len());
    let why = [0, 1].map(|side| world.stacks[side].failure(ends[side]));
    assert!(is_done, "seed {seed}, {weather:?}: {came:?} of {bytes:?}, {:?} {why:?} {:?}", state_of(&world), world.now);
    exchange.check(seed);
    for (side, end) in ends.into_iter().enumerate() {
        assert_eq!(world.stacks[side].take_failure(end), None, "seed {seed}");
        world.stacks[side].close(end, world.now);
    }
    let empty = |world: &World| world.stacks.iter().all(|stack| stack.counts()[0] == 0);
    let is_empty = world.run(300, |world| empty(world));
    assert!(is_empty, "seed {seed}: connections stay: {:?}", state_of(&world));
}

fn rounds(usual: u64) -> std::ops::Range<u64> {
    let first = std::env::var("NET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let count = std::env::var("NET_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    first..first + count
}

#[test]
fn all_bytes_come_on_a_calm_wire() {
    for seed in rounds(20) {
        transfer(seed, CALM, 300_000, seed % 2 == 0);
    }
}

#[test]
fn all_bytes_come_through_any_weather() {
    for seed in rounds(150) {
        let mut random = Random::new(seed);
        let mut of = |best: u64| if random.below(3) == 0 { 0 } else { best + random.below(60) };
        let weather = Weather { loses: of(8), repeats: of(5), reorders: of(3), damages: of(8) };
        transfer(seed, weather, 60_000, false);
    }
}

#[test]
fn who_listens_nowhere_refuses() {
    let mut world = World::new(3, CALM);
    let client = connect(&mut world, 0, 40_000, 81);
    assert!(world.run(10, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::Refused));
    assert_eq!(world.stacks[0].take_failure(client), None);
    world.stacks[0].close(client, world.now);
    assert_eq!(world.stacks[0].counts()[0], 0);
}

#[test]
fn nobody_with_that_address_is_told_after_three_seconds() {
    let mut world = World::new(3, CALM);
    let tuple = Tuple { local: at(0, 4000), remote: SocketAddr::new([10, 0, 0, 77].into(), 80) };
    let client = world.stacks[0].connect(world.now, tuple, None, &Manner::default()).unwrap();
    let start = world.now;
    assert!(world.run(10, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::HostUnreachable));
    let waited = (world.now.0 - start.0) as f64 / 1e9;
    assert!((2.9..4.1).contains(&waited), "{waited}");
}

/// After the first silence it is asked in the shorter interval, and given up after so many questions; who answers stays.
#[test]
fn questions_whether_the_other_side_is_there_keep_their_times() {
    let mut world = World::new(5, CALM);
    let [client, _] = pair(&mut world, 80);
    let keep_alive = KeepAlive { idle: 100, interval: 7, count: 3 };
    let now = world.now;
    world.stacks[0].set_manner(client, now, &Manner { keep_alive: Some(keep_alive), ..Manner::default() });
    assert!(!world.run(1000, |world| world.stacks[0].phase(client) == Phase::Closed), "it was answered");
    let heard = world.now;
    world.is_cut = true;
    assert!(world.run(1000, |world| world.stacks[0].phase(client) == Phase::Closed));
    let silent = (world.now.0 - heard.0) / 1_000_000_000;
    assert!((21..=122).contains(&silent), "given up after {silent} s");
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::TimedOut));
}

/// So often a beginning is repeated, and not longer.
#[test]
fn a_beginning_is_repeated_as_often_as_was_chosen() {
    for (tries, seconds) in [(1, 3), (3, 15)] {
        let mut world = World::new(5, CALM);
        pair(&mut world, 80);
        world.is_cut = true;
        let (began, tuple) = (world.now, Tuple { local: at(0, 41_000), remote: at(1, 80) });
        let client = world.stacks[0].connect(began, tuple, None, &Manner { tries, ..Manner::default() }).unwrap();
        assert!(world.run(200, |world| world.stacks[0].phase(client) == Phase::Closed));
        let waited = (world.now.0 - began.0) / 1_000_000_000;
        assert!((seconds..=seconds + 1).contains(&waited), "{tries} tries: {waited} s");
    }
}

/// Each of those who share a port hears a part of those who call, and the same caller comes to the same.
#[test]
fn listeners_share_who_calls() {
    let mut world = World::new(5, CALM);
    let listeners = [80, 80, 80].map(|port| listen(&mut world, 1, port));
    for from in 0..90 {
        connect(&mut world, 0, 42_000 + from, 80);
    }
    let mut heard = [0; 3];
    assert!(world.run(20, |world| {
        for (count, listener) in heard.iter_mut().zip(listeners) {
            *count += usize::from(world.stacks[1].accept(listener).is_some());
        }
        heard.iter().sum::<usize>() == 90
    }));
    assert!(heard.iter().all(|count| *count > 15), "{heard:?}");
}

/// Buffers that were chosen are that large: who does not read has no more sent to.
#[test]
fn chosen_buffers_hold_what_they_were_chosen_for() {
    let mut world = World::new(5, CALM);
    let small = Manner { receive_bytes: Some(5000), send_bytes: Some(3000), ..Manner::default() };
    let listener = world.stacks[1].listen(None, 80, [true, true], 4, noted(), &small).unwrap();
    let tuple = Tuple { local: at(0, 40_000), remote: at(1, 80) };
    let client = world.stacks[0].connect(world.now, tuple, Some(noted()), &small).unwrap();
    assert!(world.run(5, |world| world.stacks[1].first_ready(listener).is_some()));
    let mut sent = 0;
    world.run(5, |world| {
        sent += send(world, 0, client, &[1; 9000]);
        false
    });
    assert_eq!(sent, 8000);
}

#[test]
fn silence_ends_a_connection_that_has_something_to_send() {
    let mut world = World::new(3, CALM);
    let [client, _server] = pair(&mut world, 80);
    world.is_cut = true;
    send(&mut world, 0, client, b"anybody?");
    let start = world.now;
    assert!(world.run(2000, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::TimedOut));
    assert!(world.now.0 - start.0 > 600_000_000_000);
}

#[test]
fn an_idle_connection_stays_and_the_stacks_rest() {
    let mut world = World::new(3, CALM);
    let [client, server] = pair(&mut world, 80);
    world.run(5, |_| false);
    let before = world.carried;
    // Ten hours.
    world.run(36_000, |_| false);
    assert!(world.carried - before < 20, "{} frames for nothing", world.carried - before);
    send(&mut world, 0, client, b"still there");
    assert!(world.run(5, |world| world.stacks[1].readable(server) == 11));
}

#[test]
fn what_was_not_read_is_a_reset() {
    let mut world = World::new(3, CALM);
    let [client, server] = pair(&mut world, 80);
    send(&mut world, 0, client, b"unread");
    assert!(world.run(5, |world| world.stacks[1].readable(server) == 6));
    world.stacks[1].close(server, world.now);
    assert!(world.run(5, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::Reset));
}

#[test]
fn what_comes_for_nobody_is_a_reset() {
    let mut world = World::new(3, CALM);
    let [client, server] = pair(&mut world, 80);
    world.stacks[1].close(server, world.now);
    assert!(world.run(5, |world| world.stacks[0].has_end(client)));
    assert_eq!(world.stacks[0].phase(client), Phase::Open, "it may write still");
    send(&mut world, 0, client, b"too late");
    assert!(world.run(5, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::Broken));
    assert_eq!(world.stacks[1].counts()[0], 0);
}

#[test]
fn who_reads_late_finds_all() {
    let mut world = World::new(3, CALM);
    let ends = pair(&mut world, 80);
    send(&mut world, 0, ends[0], &[7; 20_000]);
    for side in 0..2 {
        world.stacks[1 - side].end_writes(ends[1 - side], world.now);
    }
    world.run(3000, |_| false);
    assert_eq!(world.stacks[1].readable(ends[1]), 20_000);
    assert_eq!(receive(&mut world, 1, ends[1], 30_000), [7; 20_000]);
    assert!(world.stacks[1].has_end(ends[1]));
    world.run(30, |_| false);
    assert_eq!((world.stacks[1].phase(ends[1]), world.stacks[1].take_failure(ends[1])), (Phase::Closed, None));
}

#[test]
fn connections_by_ip_6_are_as_others() {
    let mut world = World::new(4, CALM);
    let listener = listen(&mut world, 1, 80);
    let (local, remote) = (SocketAddr::new(address_6(0), 1025), SocketAddr::new(address_6(1), 80));
    let client = world.stacks[0].connect(world.now, Tuple { local, remote }, None, &Manner::default()).unwrap();
    let mut server = None;
    assert!(world.run(20, |world| {
        server = server.or_else(|| world.stacks[1].accept(listener));
        server.is_some()
    }));
    let mut exchange = Exchange::new([client, server.unwrap()], 5, [50_000, 40_000]);
    assert!(world.run(100, |world| exchange.go_on(world)));
    exchange.check(5);
}

#[test]
fn a_thousand_are_open_at_once_and_each_has_its_own_bytes() {
    let mut world = World::new(5, CALM);
    let listener = listen(&mut world, 1, 80);
    let mut clients = Vec::new();
    let mut servers = Vec::new();
    for number in 0..1200u16 {
        clients.push(connect(&mut world, 0, 10_000 + number, 80));
        world.run(1, |world| {
            servers.extend(std::iter::from_fn(|| world.stacks[1].accept(listener)));
            servers.len() > usize::from(number)
        });
    }
    assert_eq!(servers.len(), 1200);
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(send(&mut world, 0, *client, &(number as u32).to_le_bytes()), 4);
    }
    let servers_done = |world: &World| servers.iter().all(|server| world.stacks[1].readable(*server) == 4);
    assert!(world.run(30, |world| servers_done(world)));
    for (number, server) in servers.iter().enumerate() {
        let port = world.stacks[1].tuple(*server).unwrap().remote.port();
        assert_eq!(receive(&mut world, 1, *server, 10), u32::from(port - 10_000).to_le_bytes(), "{number}");
    }
    for (client, server) in clients.iter().zip(&servers) {
        world.stacks[0].close(*client, world.now);
        world.stacks[1].close(*server, world.now);
    }
    assert!(world.run(300, |world| world.stacks.iter().all(|stack| stack.counts()[0] == 0)));
}

#[test]
fn ten_thousand_come_and_go_and_nothing_stays() {
    let mut world = World::new(6, CALM);
    let listener = listen(&mut world, 1, 80);
    let mut most = 0;
    for number in 0..10_000u32 {
        let client = connect(&mut world, 0, 1024 + (number % 20_000) as u16, 80);
        let mut server = None;
        assert!(world.run(5, |world| {
            server = server.or_else(|| world.stacks[1].accept(listener));
            server.is_some() && world.stacks[0].phase(client) == Phase::Open
        }));
        let first = usize::from(number % 2 == 0);
        let ends = [client, server.unwrap()];
        world.stacks[first].close(ends[first], world.now);
        assert!(world.run(5, |world| world.stacks[1 - first].has_end(ends[1 - first])));
        world.stacks[1 - first].close(ends[1 - first], world.now);
        most = most.max(world.stacks[0].counts()[0].max(world.stacks[1].counts()[0]));
    }
    assert!(most < 64, "{most} connections at once");
    assert!(world.run(300, |world| world.stacks.iter().all(|stack| stack.counts()[0] == 0)));
}

#[test]
fn a_flood_of_beginnings_leaves_room_for_others() {
    let mut world = World::new(7, CALM);
    let listener = listen(&mut world, 1, 80);
    // The other side never hears the answers.
    for number in 0..2000u16 {
        let client = connect(&mut world, 0, 20_000 + number, 80);
        world.run(0, |_| false);
        world.collect();
        world.run(1, |world| world.carried % 2 == 1);
        world.stacks[0].abort(client, world.now);
    }
    assert!(world.stacks[1].counts()[0] <= 300, "{:?}", world.stacks[1].counts());
    let client = connect(&mut world, 0, 500, 80);
    let mut server = None;
    assert!(world.run(20, |world| {
        while let Some(id) = world.stacks[1].accept(listener) {
            let is_ours = world.stacks[1].tuple(id).is_some_and(|tuple| tuple.remote.port() == 500);
            server = if is_ours { Some(id) } else { server };
        }
        server.is_some() && world.stacks[0].phase(client) == Phase::Open
    }));
}

#[test]
fn a_listener_that_goes_resets_who_waits() {
    let mut world = World::new(8, CALM);
    let listener = listen(&mut world, 1, 80);
    let client = connect(&mut world, 0, 5000, 80);
    assert!(world.run(5, |world| world.stacks[1].first_ready(listener).is_some()));
    world.stacks[1].unlisten(listener, world.now);
    assert!(world.run(5, |world| world.stacks[0].phase(client) == Phase::Closed));
    assert_eq!(world.stacks[0].take_failure(client), Some(Failure::Reset));
    assert_eq!(world.stacks[1].counts(), [0, 0, 0]);
}

#[test]
fn more_than_may_wait_are_heard_later() {
    let mut world = World::new(9, CALM);
    let listener = world.stacks[1].listen(Some(address(1)), 80, [true, false], 2, noted(), &Manner::default()).unwrap();
    let connect_three = |world: &mut World, from: u16| -> Vec<ConnectionId> {
        (from..from + 3).map(|port| connect(world, 0, port, 80)).collect()
    };
    let first = connect_three(&mut world, 6000);
    assert!(world.run(5, |world| first.iter().all(|client| world.stacks[0].phase(*client) == Phase::Open)));
    let late = connect_three(&mut world, 7000);
    world.run(3, |_| false);
    assert!(late.iter().all(|client| world.stacks[0].phase(*client) == Phase::Opening), "there is no room for them");
    let mut accepted = 0;
    assert!(world.run(100, |world| {
        accepted += std::iter::from_fn(|| world.stacks[1].accept(listener)).count();
        accepted == 6
    }));
    assert!(late.iter().all(|client| world.stacks[0].phase(*client) == Phase::Open));
}
