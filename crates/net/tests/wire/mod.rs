//! Two stacks and a wire between them, which loses, repeats, delays, reorders and damages what it carries as a seed wants.
#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use machine::{Arrived, Link, Nanos, Procedure, SumPlace};
use means::Random;
use net::{Failure, Header, Lost, News, Receiver, Settings, Stack, Tuple, Watcher};

/// How bad the wire is: of so many frames one suffers, 0: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    pub loses: u64,
    pub repeats: u64,
    pub reorders: u64,
    pub damages: u64,
}

pub const CALM: Weather = Weather { loses: 0, repeats: 0, reorders: 0, damages: 0 };

#[derive(Default)]
pub struct SimLink {
    number: u8,
    sums: bool,
    gone: Mutex<Vec<Vec<u8>>>,
    /// Of how many of them it was told.
    told: AtomicUsize,
    /// Frames that it takes until they are fetched.
    room: AtomicUsize,
    pub is_full: AtomicBool,
}

impl Link for SimLink {
    fn address(&self) -> [u8; 6] {
        [2, 0, 0, 0, 0, self.number]
    }

    fn mtu(&self) -> u16 {
        1500
    }

    fn sums(&self) -> bool {
        self.sums
    }

    fn receive(&self, _: &mut [u8]) -> Option<Arrived> {
        None
    }

    fn has_room(&self) -> bool {
        self.gone.lock().unwrap().len() < self.room.load(Ordering::Relaxed)
    }

    fn send(&self, frame: &[u8], sum: Option<SumPlace>) -> bool {
        if !self.has_room() {
            return false;
        }
        let mut frame = frame.to_vec();
        if let Some(place) = sum {
            fill_in(&mut frame, place);
        }
        self.gone.lock().unwrap().push(frame);
        true
    }

    fn tell(&self) {
        self.told.store(self.gone.lock().unwrap().len(), Ordering::Relaxed);
    }

    fn expect_news(&self, _: bool) -> bool {
        false
    }

    fn when_news(&self, _: Procedure) {}
}

/// What a device does that fills in sums.
fn fill_in(frame: &mut [u8], place: SumPlace) {
    let start = usize::from(place.start);
    let mut sum = 0u32;
    for two in frame[start..].chunks(2) {
        sum += u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let at = start + usize::from(place.offset);
    frame[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Counts what it is told.
#[derive(Default)]
pub struct Noted {
    pub arrived: AtomicUsize,
    pub departed: AtomicUsize,
    pub failed: Mutex<Option<Failure>>,
}

impl Watcher for Noted {
    fn changed(&self, news: News) {
        self.arrived.fetch_add(usize::from(news.arrived), Ordering::Relaxed);
        self.departed.fetch_add(usize::from(news.departed), Ordering::Relaxed);
    }

    fn failed(&self, failure: Failure) {
        *self.failed.lock().unwrap() = Some(failure);
    }
}

/// Keeps datagrams and messages.
#[derive(Default)]
pub struct Inbox {
    /// Those who want datagrams listen here.
    pub port: Mutex<Option<u16>>,
    pub datagrams: Mutex<Vec<(Tuple, Header, Vec<u8>)>>,
    pub messages: Mutex<Vec<(IpAddr, Vec<u8>)>>,
    pub lost: Mutex<Vec<(Tuple, Failure)>>,
}

impl Receiver for Inbox {
    fn datagram(&self, tuple: Tuple, header: Header, payload: &[u8]) -> bool {
        let is_wanted = *self.port.lock().unwrap() == Some(tuple.local.port());
        if is_wanted {
            self.datagrams.lock().unwrap().push((tuple, header, payload.to_vec()));
        }
        is_wanted
    }

    fn message(&self, from: IpAddr, _: IpAddr, _: u8, _: &[u8], body: &[u8]) {
        self.messages.lock().unwrap().push((from, body.to_vec()));
    }

    fn lost(&self, lost: &Lost, _: IpAddr) {
        self.lost.lock().unwrap().push((lost.tuple, lost.failure));
    }
}

pub struct World {
    pub now: Nanos,
    pub stacks: [Stack; 2],
    pub links: [&'static SimLink; 2],
    pub inboxes: [Inbox; 2],
    pub random: Random,
    pub weather: Weather,
    /// Frames under way: when they come, and to whom.
    flying: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    number: u64,
    /// Frames that came.
    pub carried: u64,
    /// Frames of such a side do not come.
    pub is_cut: bool,
}

pub fn address(side: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, side as u8 + 1])
}

pub fn address_6(side: usize) -> IpAddr {
    IpAddr::from([0xFD00, 0, 0, 0, 0, 0, 0, side as u16 + 1])
}

pub fn at(side: usize, port: u16) -> SocketAddr {
    SocketAddr::new(address(side), port)
}

impl World {
    pub fn new(seed: u64, weather: Weather) -> World {
        World::with_sums(seed, weather, false)
    }

    pub fn with_sums(seed: u64, weather: Weather, sums: bool) -> World {
        let now = Nanos(1_000_000_000);
        let links = [1, 2].map(|number| {
            let room = AtomicUsize::new(64);
            &*Box::leak(Box::new(SimLink { number, sums, room, ..SimLink::default() }))
        });
        let stacks = [0, 1].map(|side| {
            let mut stack = Stack::new(links[side], seed * 2 + side as u64, now).unwrap();
            let addresses = [(address(side), 24), (address_6(side), 64)];
            let gateways = [address(1 - side)];
            stack.set_up(&Settings { addresses: &addresses, gateways: &gateways, dhcp: false }, now).unwrap();
            stack
        });
        World {
            now,
            stacks,
            links,
            inboxes: [Inbox::default(), Inbox::default()],
            random: Random::new(seed),
            weather,
            flying: BTreeMap::new(),
            number: 0,
            carried: 0,
            is_cut: false,
        }
    }

    /// Only so many frames fit into a link.
    pub fn narrow(&self, room: usize) {
        self.links.iter().for_each(|link| link.room.store(room, Ordering::Relaxed));
    }

    fn is(&mut self, of: u64) -> bool {
        of > 0 && self.random.below(of) == 0
    }

    fn fly(&mut self, to: usize, frame: Vec<u8>, late: u64) {
        self.number += 1;
        self.flying.insert((self.now.0 + 100_000 + late, self.number), (to, frame));
    }

    /// Frames that were sent leave.
    pub fn collect(&mut self) {
        for side in 0..2 {
            self.stacks[side].tell_link();
            let told = self.links[side].told.swap(0, Ordering::Relaxed);
            let gone: Vec<Vec<u8>> = self.links[side].gone.lock().unwrap().drain(..told).collect();
            let was_full = !gone.is_empty();
            for mut frame in gone {
                if self.is_cut || self.is(self.weather.loses) {
                    continue;
                }
                // What only the Ethernet's own sum would find is left as it is: names of neighbours have no other.
                let is_arp = frame[12..14] == [8, 6];
                if !is_arp && self.is(self.weather.damages) {
                    let (place, bit) = (14 + self.random.index(frame.len() - 14), self.random.below(8));
                    frame[place] ^= 1 << bit;
                }
                let late = if self.is(self.weather.reorders) { self.random.below(3_000_000) } else { 0 };
                if self.is(self.weather.repeats) {
                    let later = self.random.below(5_000_000);
                    self.fly(1 - side, frame.clone(), later);
                }
                self.fly(1 - side, frame, late);
            }
            if was_full && self.stacks[side].is_stalled() {
                self.stacks[side].go_on(self.now);
            }
        }
    }

    /// Goes on to the next that happens, until `limit`: false if nothing does.
    pub fn step(&mut self, limit: Nanos) -> bool {
        self.collect();
        let arrives = self.flying.first_key_value().map(|((at, _), _)| *at);
        let due = self.stacks.iter().filter_map(Stack::next).map(|at| at.0).min();
        let is_sending = self.links.iter().any(|link| !link.gone.lock().unwrap().is_empty());
        let Some(next) = [arrives, due].into_iter().flatten().min() else { return is_sending };
        if next > limit.0 {
            self.now = limit;
            return false;
        }
        self.now = Nanos(next.max(self.now.0));
        if arrives.is_some_and(|at| at <= self.now.0) {
            let (_, (to, frame)) = self.flying.pop_first().unwrap();
            self.carried += 1;
            self.stacks[to].frame(self.now, &frame, false, &self.inboxes[to]);
        }
        for stack in &mut self.stacks {
            stack.run_timers(self.now, 1000);
        }
        true
    }

    /// Something was sent that is not under way yet.
    fn has_something(&self) -> bool {
        self.links.iter().any(|link| !link.gone.lock().unwrap().is_empty())
    }

    /// Goes on until `is_done`, at most so many seconds.
    pub fn run(&mut self, seconds: u64, mut is_done: impl FnMut(&mut World) -> bool) -> bool {
        let limit = Nanos(self.now.0 + seconds * 1_000_000_000);
        let mut steps = 0u64;
        loop {
            if is_done(self) {
                return true;
            }
            let goes_on = self.step(limit);
            steps += 1;
            assert!(steps < 20_000_000, "the stacks do not come to rest");
            // The programs may have something to do still.
            if !goes_on && (0..50).all(|_| !is_done(self) && !self.has_something()) {
                return is_done(self);
            }
        }
    }
}

pub fn noted() -> Arc<Noted> {
    Arc::new(Noted::default())
}
