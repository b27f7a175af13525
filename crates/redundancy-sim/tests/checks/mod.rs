//! Checks that panic when something is wrong: run by themselves, and under mutants.
#![allow(dead_code, unused_imports, reason = "each test uses some of them")]

mod decisions;
mod laws;

pub use decisions::*;
pub use laws::*;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use redundancy::{Change, Formula, HalfLife, NodeId, Store};
use redundancy_sim::failure::Failures;
use redundancy_sim::policy::{ByValue, Caching, Fixed, Lru, Policy, settings};
use redundancy_sim::workload::{Arrivals, Kind, Size, Workload};
use redundancy_sim::{Access, Hardware, Line, Protocol, Scene, World, forms, run};

/// Mean wait of a queue with random arrivals and random service.
pub fn mm1() {
    use rand_distr::{Distribution, Exp1};
    let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
    for load in [0.2, 0.5, 0.8] {
        let (mut arrivals, mut line, service) = (Arrivals::new(load / 0.001), Line::default(), 0.001);
        let count = 400_000;
        let mut waited = 0.0;
        for _ in 0..count {
            let unit: f64 = Exp1.sample(&mut random);
            waited += line.take(arrivals.next(&mut random), unit * service);
        }
        let (found, expected) = (waited / count as f64, forms::mm1_wait(load / service, service));
        assert!((found / expected - 1.0).abs() < 0.06, "load {load}: {found} {expected}");
    }
}

/// Hit ratio of one node's LRU cache under Zipf references, by Che's approximation, which is within a percent.
pub fn che() {
    let objects = 2000;
    let size = Size { nodes: 1, objects, accesses: 200_000 };
    let made = Workload::new(Kind::Steady, size, &Hardware::TODAY, 1);
    for share in [0.02, 0.1, 0.4] {
        let scene = Scene::new(Hardware::TODAY, 1, made.bytes.clone(), share);
        let room = scene.budget / 4096;
        let mut policy = Caching::new(1, redundancy_sim::policy::AtWrites::Update, Lru::default);
        let outcome = run(&mut World::new(scene), made.accesses.iter().copied(), &[], &mut policy, made.seconds * 0.25);
        let found = outcome.local as f64 / (outcome.local + outcome.original) as f64;
        let expected = forms::che_lru(&forms::zipf(objects, 0.9), room as f64);
        assert!((found - expected).abs() < 0.012, "{share}: {found} {expected}");
    }
}

/// The share of writes that succeed by read one, write all and by majority, nodes failing by themselves.
pub fn k_of_n() {
    let (nodes, seconds) = (9, 1000.0);
    let failures = Failures { name: "", node: 0.1, disk: 0.0, group: 0.0, length: 0.001 };
    let events = failures.events(nodes, 1, seconds, 11);
    let up = 1.0 - failures.node;
    let protocols: [(Box<dyn Policy>, f64); 4] = [
        (Box::new(Fixed::write_all(nodes, 1)), forms::at_least(2, 2, up)),
        (Box::new(Fixed::write_all(nodes, 3)), forms::at_least(4, 4, up)),
        (Box::new(Fixed::majority(nodes, 3)), forms::at_least(2, 3, up)),
        (Box::new(Fixed::majority(nodes, 5)), forms::at_least(3, 5, up)),
    ];
    for (policy, expected) in protocols {
        let protocol = policy.protocol();
        let mut world = World::new(Scene::new(Hardware::TODAY, nodes, vec![4096; 90], nodes as f64));
        let (mut tried, mut served, mut next) = (0, 0, events.iter().copied().peekable());
        for turn in 0..60_000u32 {
            let at = f64::from(turn) / 60.0;
            while let Some(event) = next.next_if(|event| event.at <= at) {
                world.happen(event);
            }
            world.now = at;
            // A client that never fails and holds nothing: as if beside the nodes. A copy in each memory that is up stands for
            // the data, so that only votes decide.
            let object = turn % 90;
            for node in 0..nodes as NodeId {
                world.create(object, node, true);
            }
            tried += 1;
            served += u32::from(world.write(0, object, protocol).is_some());
        }
        let found = f64::from(served) / f64::from(tried);
        assert!((found - expected).abs() < 0.015, "{protocol:?}: {found} {expected}");
        assert!(matches!(protocol, Protocol::WriteAll { .. } | Protocol::Majority { .. }));
    }
}

/// What a plan from known rates costs, and what the policy comes to that has to find them.
pub fn near_the_plan() {
    let size = Size { nodes: 4, objects: 400, accesses: 120_000 };
    let hardware = Hardware::TODAY;
    let made = Workload::new(Kind::Steady, size, &hardware, 5);
    let mut scene = Scene::new(hardware, size.nodes, made.bytes.clone(), 0.2);
    scene.has_queues = false;
    let settings = settings(&scene, Formula::Marginal, HalfLife(0.5 * made.seconds as f32));
    let copies = planned(&made, &scene, settings.goals);
    let mut world = World::new(scene.clone());
    for (object, nodes) in copies.iter().enumerate() {
        nodes.iter().for_each(|node| assert!(world.create(object as u32, *node, true)));
    }
    let from = made.seconds * 0.25;
    let accesses = || made.accesses.iter().copied();
    let plan = run(&mut world, accesses(), &[], &mut Nothing, from).access_seconds();
    let mut policy = ByValue::new(size.nodes, size.objects, settings);
    let found = run(&mut World::new(scene), accesses(), &[], &mut policy, from).access_seconds();
    assert!(found < 1.1 * plan && found > 0.95 * plan, "{found} {plan}");
}

/// The plan of the rates that the accesses have.
fn planned(made: &Workload, scene: &Scene, goals: redundancy::Goals) -> Vec<Vec<NodeId>> {
    let mut rates = vec![vec![[0.0f32; 2]; made.nodes]; made.bytes.len()];
    for Access { object, node, is_write, .. } in &made.accesses {
        rates[*object as usize][usize::from(*node)][usize::from(*is_write)] += 1.0 / made.seconds as f32;
    }
    let world = World::new(scene.clone());
    let objects: Vec<_> =
        (0..made.bytes.len() as u32).map(|object| (world.bytes(object), world.costs(object))).collect();
    let budget = vec![scene.budget; made.nodes];
    let known = redundancy::plan::Known {
        objects: &objects,
        homes: &scene.homes,
        rates: &rates,
        budget: &budget,
        goals,
        outage: [0.01, 0.005],
    };
    redundancy::plan::plan(&known)
}

/// Changes nothing.
pub struct Nothing;

impl Policy for Nothing {
    fn read(&mut self, _: &mut World, _: NodeId, _: u32, _: redundancy_sim::Found) {}
    fn write(&mut self, _: &mut World, _: NodeId, _: u32) {}
    fn written(&mut self, _: &mut World, _: NodeId, _: u32) {}
    fn down(&mut self, _: &World, _: NodeId) {}
    fn left(&mut self, _: NodeId) {}
}

/// The rule of change by itself.
pub fn hysteresis() {
    let change = Change { margin: 0.2, horizon: 10.0 };
    assert!(!change.creates(1.1, 1.0, 0.0) && change.creates(1.3, 1.0, 0.0));
}
