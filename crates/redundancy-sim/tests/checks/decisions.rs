//! What the policy decides in cases where the right answer is plain.

use redundancy::plan::{Known, plan};
use redundancy::{Costs, Demand, Formula, Goals, HalfLife, Keeper, Kept, Standing, Store, Usage};
use redundancy_sim::policy::{ByValue, Policy, settings};
use redundancy_sim::{Found, Hardware, Scene, World};

const COSTS: Costs = Costs { local: 1.0, remote: 10.0, original: 100.0, update: 8.0, create: 8.0 };

/// The formula of marginal value, by hand.
pub fn formula() {
    let goals = Goals { failure_seconds: 1000.0 };
    let demand = Demand { own_reads: 2.0, reads: 5.0, own_writes: 0.5, writes: 1.5 };
    let alone = Standing { others: 0, lost_without: 0.02, lost_with: 0.001 };
    let second = Standing { others: 1, lost_without: 0.001, lost_with: 0.0001 };
    let value = |standing| Formula::Marginal.value(&COSTS, goals, &demand, standing);
    assert!((value(&alone) - (2.0 * 99.0 + 3.0 * 90.0 + 6.5 * 19.0 - 8.0)).abs() < 1e-3);
    assert!((value(&second) - (2.0 * 9.0 + 6.5 * 0.9 - 8.0)).abs() < 1e-3);
}

pub fn forgetting() {
    let half_life = HalfLife(1.0);
    let mut usage = Usage::default();
    usage.read(8.0, 0.0, half_life);
    let later = usage.at(3.0, half_life).reads_per_second(half_life);
    assert!((later / half_life.rate(1.0) - 1.0).abs() < 1e-3, "{later}");
}

pub fn least_valuable() {
    let mut keeper = Keeper::new(1);
    (0..20).for_each(|object| keeper.insert(Kept { object, bytes: 1, usage: Usage::default(), unreported: 0 }));
    let victim = keeper.victim(10, |kept| Some((kept.object as f32 - 7.0).abs()));
    assert_eq!(victim.map(|victim| victim.object), Some(7));
}

/// A large object that is read twice as often must not displace ten small ones.
pub fn small_ones_stay() {
    let mut bytes = vec![4096; 11];
    bytes[10] = 40960;
    let mut scene = Scene::new(Hardware::TODAY, 1, bytes, 0.0);
    scene.budget = 40960;
    let mut policy = ByValue::new(1, 11, settings(&scene, Formula::Marginal, HalfLife(1.0)));
    let mut world = World::new(scene);
    for turn in 0..2000u32 {
        world.now = f64::from(turn) * 1e-3;
        let object = if turn % 6 == 0 { 10 } else { turn % 10 };
        let found = if world.has(object, 0) { Found::Local } else { Found::Original };
        policy.read(&mut world, 0, object, found);
    }
    assert!((0..10).all(|object| world.has(object, 0)) && !world.has(10, 0));
}

pub fn within_budget() {
    let objects = [(3, COSTS); 10];
    let rates: Vec<Vec<[f32; 2]>> = (0..10).map(|object| vec![[1.0 / (object + 1) as f32, 0.0]; 2]).collect();
    let known = Known {
        objects: &objects,
        homes: &[0; 10],
        rates: &rates,
        budget: &[7, 3],
        goals: Goals { failure_seconds: 0.0 },
        outage: [0.01, 0.01],
    };
    let copies = plan(&known);
    let kept = |node| copies.iter().filter(|copies| copies.contains(&node)).count();
    assert_eq!((kept(0), kept(1)), (2, 1));
}

/// When the home of an object is down, its last copy is worth more than anything: it stays, and a second one is made.
pub fn last_copies_are_doubled() {
    use redundancy_sim::failure::{Event, Happening};
    let scene = Scene::new(Hardware::TODAY, 3, vec![4096; 12], 0.5);
    let mut policy = ByValue::new(3, 12, settings(&scene, Formula::Marginal, HalfLife(1.0)));
    let mut world = World::new(scene);
    let object = 0;
    let home = world.home(object);
    let reader = (home + 1) % 3;
    for turn in 0..40 {
        world.now = f64::from(turn) * 1e-3;
        policy.read(&mut world, reader, object, Found::Original);
    }
    world.happen(Event { at: world.now, node: home, what: Happening::Down });
    policy.down(&world, home);
    for turn in 40..400 {
        world.now = f64::from(turn) * 1e-3;
        let node = if turn % 2 == 0 { reader } else { (home + 2) % 3 };
        for object in [object, 1 + turn as u32 % 11] {
            if let Some((_, found)) = world.read(node, object, policy.protocol()) {
                policy.read(&mut world, node, object, found);
            }
        }
    }
    assert_eq!(world.copies(object).len(), 2);
}

/// The world refuses what does not fit, whoever asks.
pub fn refusal() {
    let mut scene = Scene::new(Hardware::TODAY, 1, vec![4096; 3], 0.0);
    scene.budget = 2 * 4096;
    let mut world = World::new(scene);
    let made = [0, 1, 2].map(|object| world.create(object, 0, true));
    assert_eq!((made, world.used(0)), ([true, true, false], 2 * 4096));
}
