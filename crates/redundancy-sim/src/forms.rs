//! Closed forms that the simulator is held against.

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use redundancy::Store;

use crate::failure::Failures;
use crate::policy::{AtWrites, Caching, Lru};
use crate::workload::{Arrivals, Kind, Size, Workload};
use crate::{Hardware, Line, Protocol, Scene, World, run};

/// Mean wait in an M/M/1 queue, in seconds.
pub fn mm1_wait(arrivals: f64, service: f64) -> f64 {
    let load = arrivals * service;
    load * service / (1.0 - load)
}

/// Hit ratio of LRU under independent references: H. Che, Y. Tung, Z. Wang, *Hierarchical Web Caching Systems*, 2002.
/// `rates`: of the objects, all of one size; `room`: objects that fit.
pub fn che_lru(rates: &[f64], room: f64) -> f64 {
    let kept = |time: f64| rates.iter().map(|rate| 1.0 - (-rate * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while kept(high) < room {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        *(if kept(middle) < room { &mut low } else { &mut high }) = middle;
    }
    let total: f64 = rates.iter().sum();
    rates.iter().map(|rate| rate * (1.0 - (-rate * low).exp())).sum::<f64>() / total
}

/// The probability that at least `needed` of `count` nodes are up, each with probability `up`.
pub fn at_least(needed: usize, count: usize, up: f64) -> f64 {
    let choose = |k: usize| (0..k).map(|i| (count - i) as f64 / (i + 1) as f64).product::<f64>();
    (needed..=count).map(|k| choose(k) * up.powi(k as i32) * (1.0 - up).powi((count - k) as i32)).sum()
}

/// Zipf's rates, the sum being 1.
pub fn zipf(objects: usize, exponent: f64) -> Vec<f64> {
    let rates: Vec<f64> = (1..=objects).map(|rank| (rank as f64).powf(-exponent)).collect();
    let total: f64 = rates.iter().sum();
    rates.into_iter().map(|rate| rate / total).collect()
}

/// A closed form beside what the simulator finds.
#[derive(Clone, Debug)]
pub struct Form {
    pub name: String,
    pub expected: f64,
    pub found: f64,
    /// How far from each other they may be: the noise of the run, and the error of an approximation.
    pub tolerance: f64,
}

/// All of them, simulated.
pub fn simulated() -> Vec<Form> {
    [queues(), caches(), votes()].concat()
}

/// Mean wait of a line with random arrivals and random service, in services.
pub fn queues() -> Vec<Form> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
    let mut form = |load: f64| {
        let (mut arrivals, mut line, service) = (Arrivals::new(load / 0.001), Line::default(), 0.001);
        let count = 400_000;
        let mut waited = 0.0;
        for _ in 0..count {
            let unit: f64 = Exp1.sample(&mut random);
            waited += line.take(arrivals.next(&mut random), unit * service);
        }
        let expected = mm1_wait(load / service, service) / service;
        let found = waited / f64::from(count) / service;
        Form { name: format!("M/M/1, load {load}: mean wait in services"), expected, found, tolerance: 0.06 * expected }
    };
    [0.2, 0.5, 0.8].map(&mut form).to_vec()
}

/// Hit ratio of one node's LRU under Zipf's law.
pub fn caches() -> Vec<Form> {
    let objects = 2000;
    let size = Size { nodes: 1, objects, accesses: 200_000 };
    let made = Workload::new(Kind::Steady, size, &Hardware::TODAY, 1);
    let form = |share: f64| {
        let scene = Scene::new(Hardware::TODAY, 1, made.bytes.clone(), share);
        let room = scene.budget / u64::from(made.bytes[0]);
        let mut policy = Caching::new(1, AtWrites::Update, Lru::default);
        let accesses = made.accesses.iter().copied();
        let outcome = run(&mut World::new(scene), accesses, &[], &mut policy, made.seconds * 0.25);
        let found = outcome.local as f64 / (outcome.local + outcome.original) as f64;
        let expected = che_lru(&zipf(objects, 0.9), room as f64);
        Form { name: format!("Che, LRU of {share} of the objects: hit ratio"), expected, found, tolerance: 0.012 }
    };
    [0.02, 0.1, 0.4].map(form).to_vec()
}

/// The share of writes that succeed by read one, write all and by majority, nodes failing by themselves.
pub fn votes() -> Vec<Form> {
    let (nodes, seconds, objects) = (9, 1000.0, 90);
    let failures = Failures { name: "", node: 0.1, disk: 0.0, group: 0.0, length: 0.001 };
    let events = failures.events(nodes, 1, seconds, 11);
    let form = |(protocol, needed, count): (Protocol, usize, usize)| {
        let mut world = World::new(Scene::new(Hardware::TODAY, nodes, vec![4096; objects], nodes as f64));
        let (tries, mut served, mut next) = (60_000u32, 0, events.iter().copied().peekable());
        for turn in 0..tries {
            let at = f64::from(turn) / f64::from(tries) * seconds;
            while let Some(event) = next.next_if(|event| event.at <= at) {
                world.happen(event);
            }
            world.now = at;
            // A copy in each memory that is up stands for the data, so that only votes decide. The client is beside the nodes.
            let object = turn % objects as u32;
            for node in world.nodes() {
                world.create(object, node, true);
            }
            served += u32::from(world.write(0, object, protocol).is_some());
        }
        let (expected, found) = (at_least(needed, count, 1.0 - failures.node), f64::from(served) / f64::from(tries));
        Form {
            name: format!("{needed} of {count} nodes up ({protocol:?}): availability"),
            expected,
            found,
            tolerance: 0.015,
        }
    };
    let cases = [
        (Protocol::WriteAll { copies: 1 }, 2, 2),
        (Protocol::WriteAll { copies: 3 }, 4, 4),
        (Protocol::Majority { voters: 3 }, 2, 3),
        (Protocol::Majority { voters: 5 }, 3, 5),
    ];
    cases.map(form).to_vec()
}
