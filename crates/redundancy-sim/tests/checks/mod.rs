//! Checks that panic when something is wrong: run by themselves, and under mutants.
#![allow(dead_code, unused_imports, reason = "each test uses some of them")]

mod decisions;
mod laws;

pub use decisions::*;
pub use laws::*;

use redundancy::{Change, Formula, HalfLife, NodeId, Store};
use redundancy_sim::policy::{ByValue, Policy, settings};
use redundancy_sim::workload::{Kind, Size, Workload};
use redundancy_sim::{Access, Hardware, Scene, World, forms, run};

fn hold(forms: Vec<forms::Form>) {
    for form in forms {
        assert!((form.found - form.expected).abs() < form.tolerance, "{form:?}");
    }
}

/// Mean wait of a queue with random arrivals and random service.
pub fn mm1() {
    hold(forms::queues());
}

/// Hit ratio of one node's LRU cache under Zipf references, by Che's approximation, which is within a percent.
pub fn che() {
    hold(forms::caches());
}

/// The share of writes that succeed by read one, write all and by majority, nodes failing by themselves.
pub fn k_of_n() {
    hold(forms::votes());
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
