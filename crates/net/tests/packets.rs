//! Datagrams, echoes, and whatever frames somebody may send.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

mod wire;

use std::net::{IpAddr, SocketAddr};

use machine::Nanos;
use means::Random;
use net::{Failure, Header, Manner, Marks, Packet, SenderId, Tuple};
use wire::{CALM, Weather, World, address, address_6, at, noted};

const UDP: u8 = 17;
const ICMP: u8 = 1;

fn sum(words: &[&[u8]]) -> u16 {
    let all: Vec<u8> = words.concat();
    let mut sum = 0u32;
    for two in all.chunks(2) {
        sum += u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// A datagram's header.
fn header(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> [u8; 8] {
    let mut header = [0; 8];
    header[..2].copy_from_slice(&from.port().to_be_bytes());
    header[2..4].copy_from_slice(&to.port().to_be_bytes());
    header[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    let length = (8 + payload.len() as u32).to_be_bytes();
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        _ => panic!("two families"),
    };
    let value = sum(&[&addresses, &length, &[0, 0, 0, UDP], &header, payload]);
    header[6..8].copy_from_slice(&value.to_be_bytes());
    header
}

fn send(
    world: &mut World,
    side: usize,
    id: SenderId,
    [from, to]: [SocketAddr; 2],
    payload: &[u8],
) -> Result<(), Failure> {
    let (header, marks) = (header(from, to, payload), Marks::default());
    let packet =
        Packet { from: from.ip(), to: to.ip(), protocol: UDP, hops: 64, marks, priority: 0, parts: [&header, payload] };
    world.stacks[side].send_packet(id, world.now, &packet)
}

#[test]
fn datagrams_come_as_they_were_sent() {
    let mut world = World::new(1, CALM);
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    let to_6 = [SocketAddr::new(address_6(0), 9), SocketAddr::new(address_6(1), 53)];
    for round in 0..300usize {
        let payload: Vec<u8> = (0..round * 4).map(|at| (at * round) as u8).collect();
        let way = if round % 3 == 0 { to_6 } else { [at(0, 7), at(1, 53)] };
        assert_eq!(send(&mut world, 0, sender, way, &payload), Ok(()));
        assert!(world.run(5, |world| world.inboxes[1].datagrams.lock().unwrap().len() == round + 1), "{round}");
        let (tuple, _, came) = world.inboxes[1].datagrams.lock().unwrap()[round].clone();
        assert_eq!((tuple, came), (Tuple { local: way[1], remote: way[0] }, payload));
    }
    assert_eq!(send(&mut world, 0, sender, [at(0, 7), at(1, 53)], &[0; 1473]), Err(Failure::TooLong));
}

/// What the sender says of each packet stands in its header and comes to the receiver, for both families.
#[test]
fn hops_and_kind_of_service_come_with_a_datagram() {
    let mut world = World::new(1, CALM);
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    let to_6 = [SocketAddr::new(address_6(0), 9), SocketAddr::new(address_6(1), 53)];
    for (round, (way, service, hops)) in [([at(0, 7), at(1, 53)], 0xB8, 3), (to_6, 0x2E, 9)].into_iter().enumerate() {
        let [from, to] = way;
        let header = header(from, to, b"x");
        let marks = Marks { service, is_whole: false };
        let parts: [&[u8]; 2] = [&header, b"x"];
        let packet = Packet { from: from.ip(), to: to.ip(), protocol: UDP, hops, marks, priority: 0, parts };
        world.stacks[0].send_packet(sender, world.now, &packet).unwrap();
        assert!(world.run(5, |world| world.inboxes[1].datagrams.lock().unwrap().len() > round));
        let (tuple, header, _) = world.inboxes[1].datagrams.lock().unwrap()[round].clone();
        assert_eq!((tuple, header), (Tuple { local: to, remote: from }, Header { hops, service }));
    }
}

/// The link has room for one frame at a time: who is more urgent goes first, however late it came.
#[test]
fn who_is_urgent_goes_first_when_the_link_is_full() {
    let mut world = World::new(1, CALM);
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let way = [at(0, 7), at(1, 53)];
    let [slow, quick] = [0, 6].map(|priority| (world.stacks[0].open_sender(noted()).unwrap(), priority));
    send(&mut world, 0, slow.0, way, b"found").unwrap();
    assert!(world.run(5, |world| world.inboxes[1].datagrams.lock().unwrap().len() == 1));
    world.narrow(1);
    for (text, (sender, priority)) in [("first", slow), ("late", slow), ("urgent", quick)] {
        let header = header(way[0], way[1], text.as_bytes());
        let (parts, marks): ([&[u8]; 2], _) = ([&header, text.as_bytes()], Marks::default());
        let packet = Packet { from: address(0), to: address(1), protocol: UDP, hops: 64, marks, priority, parts };
        world.stacks[0].send_packet(sender, world.now, &packet).unwrap();
    }
    assert!(world.run(5, |world| world.inboxes[1].datagrams.lock().unwrap().len() == 4));
    let came: Vec<String> = (world.inboxes[1].datagrams.lock().unwrap().iter())
        .map(|(.., bytes)| String::from_utf8_lossy(bytes).into_owned())
        .collect();
    assert_eq!(came, ["found", "first", "urgent", "late"]);
}

#[test]
fn a_datagram_for_nobody_comes_back_as_a_message() {
    let mut world = World::new(1, CALM);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    send(&mut world, 0, sender, [at(0, 7), at(1, 99)], b"hello?").unwrap();
    assert!(world.run(5, |world| !world.inboxes[0].lost.lock().unwrap().is_empty()));
    let (tuple, failure) = world.inboxes[0].lost.lock().unwrap()[0];
    assert_eq!((tuple, failure), (Tuple { local: at(0, 7), remote: at(1, 99) }, Failure::Refused));
}

#[test]
fn who_asks_for_an_echo_gets_one() {
    let mut world = World::new(1, CALM);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    echo.extend_from_slice(&[7; 56]);
    let value = sum(&[&echo]);
    echo[2..4].copy_from_slice(&value.to_be_bytes());
    let marks = Marks::default();
    let packet =
        Packet { from: address(0), to: address(1), protocol: ICMP, hops: 64, marks, priority: 0, parts: [&echo, &[]] };
    world.stacks[0].send_packet(sender, world.now, &packet).unwrap();
    assert!(world.run(5, |world| !world.inboxes[0].messages.lock().unwrap().is_empty()));
    let (from, body) = world.inboxes[0].messages.lock().unwrap()[0].clone();
    assert_eq!((from, body[0], &body[4..]), (address(1), 0, &echo[4..]));
}

#[test]
fn packets_to_nobody_are_told_of_and_hold_up_no_others_for_long() {
    let mut world = World::new(1, CALM);
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let watcher = noted();
    let sender = world.stacks[0].open_sender(watcher.clone()).unwrap();
    let nobody = SocketAddr::new([10, 0, 0, 99].into(), 53);
    send(&mut world, 0, sender, [at(0, 7), nobody], b"?").unwrap();
    assert!(world.run(10, |_| watcher.failed.lock().unwrap().is_some()));
    assert_eq!(*watcher.failed.lock().unwrap(), Some(Failure::HostUnreachable));
    send(&mut world, 0, sender, [at(0, 7), at(1, 53)], b"!").unwrap();
    assert!(world.run(10, |world| !world.inboxes[1].datagrams.lock().unwrap().is_empty()));
    world.stacks[0].close_sender(sender);
    assert_eq!(world.stacks[0].counts(), [0, 0, 0]);
}

#[test]
fn what_a_sender_was_given_goes_also_when_it_has_gone() {
    let mut world = World::new(1, CALM);
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    send(&mut world, 0, sender, [at(0, 7), at(1, 53)], b"bye").unwrap();
    world.stacks[0].close_sender(sender);
    assert!(world.run(10, |world| !world.inboxes[1].datagrams.lock().unwrap().is_empty()));
    assert_eq!(world.stacks[0].counts(), [0, 0, 0]);
}

#[test]
fn there_is_no_way_to_nowhere() {
    let mut world = World::new(1, CALM);
    let sender = world.stacks[0].open_sender(noted()).unwrap();
    let far = SocketAddr::new("2001:db8::1".parse().unwrap(), 53);
    let near = SocketAddr::new(address_6(0), 1);
    assert_eq!(send(&mut world, 0, sender, [near, far], b"x"), Err(Failure::NetUnreachable));
}

/// Frames that are almost right: what the wire carried, with parts of it changed.
fn spoil(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let place = random.index(frame.len().max(1));
        match random.below(5) {
            0 => frame.truncate(place),
            1 => frame.extend((0..random.below(40)).map(|at| at as u8)),
            2 => frame.iter_mut().skip(place).take(2).for_each(|byte| *byte = 0xFF),
            _ => {
                let value = random.bits() as u8;
                frame.iter_mut().skip(place).take(1).for_each(|byte| *byte = value);
            }
        }
    }
}

#[test]
fn no_frame_breaks_the_stack() {
    let frames = std::env::var("NET_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(150_000u64);
    let seed = Random::seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut world = World::new(seed, Weather { loses: 9, ..CALM });
    *world.inboxes[1].port.lock().unwrap() = Some(53);
    let listener = world.stacks[1].listen(None, 80, [true, true], 16, noted(), &Manner::default()).unwrap();
    let mut samples = samples(&mut world);
    for number in 0..frames {
        let place = random.index(samples.len());
        let mut frame = samples[place].clone();
        if random.below(10) == 0 {
            frame = (0..random.below(1600)).map(|_| random.bits() as u8).collect();
        } else {
            spoil(&mut random, &mut frame);
        }
        // With sums that are taken for right, so that what is behind them is reached.
        let is_checked = random.below(2) == 0;
        world.stacks[1].frame(world.now, &frame, is_checked, &world.inboxes[1]);
        if random.below(200) == 0 {
            samples[place] = frame.clone();
        }
        if number % 64 == 0 {
            world.run(0, |_| false);
            world.now = Nanos(world.now.0 + random.below(50_000_000));
            world.stacks[1].run_timers(world.now, 100);
            world.inboxes.iter().for_each(|inbox| inbox.datagrams.lock().unwrap().clear());
            world.inboxes.iter().for_each(|inbox| inbox.messages.lock().unwrap().clear());
            while let Some(id) = world.stacks[1].accept(listener) {
                world.stacks[1].close(id, world.now);
            }
        }
    }
    world.run(400, |_| false);
    let [connections, ..] = world.stacks[1].counts();
    assert!(connections <= 20, "{connections} connections stay");
}

/// Frames of all kinds, as side 1 gets them.
fn samples(world: &mut World) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let ethernet = |kind: [u8; 2]| [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat().into_iter().chain(kind);
    let ip = |protocol: u8, payload: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        let value = sum(&[&packet]);
        packet[10..12].copy_from_slice(&value.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    };
    let mut tcp = |flags: u8, payload: &[u8]| {
        let mut segment = vec![0x30, 1, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, flags, 16, 0, 0, 0, 0, 0];
        segment.extend_from_slice(&[2, 4, 5, 0xB4, 4, 2, 1, 1, 3, 3, 7, 0]);
        segment.extend_from_slice(payload);
        let length = (segment.len() as u32).to_be_bytes();
        let value = sum(&[&[10, 0, 0, 1, 10, 0, 0, 2], &length, &[0, 0, 0, 6], &segment]);
        segment[16..18].copy_from_slice(&value.to_be_bytes());
        frames.push(ethernet([8, 0]).chain(ip(6, &segment)).collect::<Vec<u8>>());
    };
    for flags in [2, 16, 24, 17, 4, 18, 1] {
        tcp(flags, b"data of a segment");
    }
    let datagram = [&header(at(0, 7), at(1, 53), b"data")[..], b"data"].concat();
    frames.push(ethernet([8, 0]).chain(ip(UDP, &datagram)).collect());
    frames.push(ethernet([8, 0]).chain(ip(ICMP, &[8, 0, 0, 0, 0, 0, 0, 0])).collect());
    let unreachable = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &ip(6, &[0, 80, 0x30, 1, 0, 0, 0, 1])].concat();
    frames.push(ethernet([8, 0]).chain(ip(ICMP, &unreachable)).collect());
    let question = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
    frames.push(ethernet([8, 6]).chain(question).collect());
    for next in [6, 17, 58, 0, 43, 44] {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, next, 64];
        for side in 0..2 {
            let IpAddr::V6(address) = address_6(side) else { continue };
            packet.extend_from_slice(&address.octets());
        }
        packet.extend_from_slice(&[135, 0, 0, 0, 0, 0, 0, 0, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        frames.push(ethernet([0x86, 0xDD]).chain(packet).collect());
    }
    assert!(world.now > Nanos(0));
    frames
}
