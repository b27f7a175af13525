//! All policies in all cells: workloads × budgets × failures, with seeds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::Failures;
use crate::policy::{self, Setting};
use crate::statistics::{Mean, front, mean};
use crate::workload::{self, Size, Workload};
use crate::{Hardware, Outcome, Scene, World, run};

/// Budgets: bytes of all memories as shares of all bytes.
pub const BUDGETS: [f64; 3] = [0.05, 0.2, 0.8];
pub const FAILURES: [Failures; 2] = [Failures::RARE, Failures::OFTEN];
/// The first quarter of a run warms memories up.
const WARM: f64 = 0.25;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub hardware: Hardware,
    pub size: Size,
    pub workloads: Vec<workload::Kind>,
    pub policies: Vec<policy::Kind>,
    /// Seeds that are measured.
    pub seeds: u64,
    /// Other seeds, on which each policy's settings are chosen for each cell.
    pub tuning_seeds: u64,
    pub threads: usize,
}

impl Plan {
    pub fn full(hardware: Hardware) -> Plan {
        Plan {
            hardware,
            size: Size::FULL,
            workloads: workload::Kind::ALL.to_vec(),
            policies: policy::Kind::ALL.to_vec(),
            seeds: 30,
            tuning_seeds: 2,
            threads: std::thread::available_parallelism().map_or(1, |threads| threads.get().min(2)),
        }
    }

    pub fn quick(hardware: Hardware) -> Plan {
        Plan { size: Size::QUICK, seeds: 2, tuning_seeds: 1, ..Plan::full(hardware) }
    }
}

/// One policy in one cell.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: policy::Kind,
    pub setting: Setting,
    pub outcomes: Vec<Outcome>,
    pub seconds: Mean,
    pub availability: Mean,
    /// Nobody in the cell is both faster and more available.
    pub is_on_front: bool,
}

/// One workload with one budget and one rate of failures.
#[derive(Clone, Debug)]
pub struct Cell {
    pub workload: workload::Kind,
    pub budget: f64,
    pub failures: Failures,
    pub entries: Vec<Entry>,
}

impl Cell {
    pub fn entry(&self, kind: policy::Kind) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.kind == kind)
    }

    /// Those that are both faster and more available than an entry.
    pub fn dominators(&self, kind: policy::Kind) -> Vec<policy::Kind> {
        let point = |entry: &Entry| (entry.seconds.value, entry.availability.value);
        let Some(own) = self.entry(kind).map(point) else { return Vec::new() };
        let better = |entry: &&Entry| crate::statistics::dominates(point(entry), own);
        self.entries.iter().filter(better).map(|entry| entry.kind).collect()
    }
}

/// Seeds of tuning are far from those that are measured.
const TUNING: u64 = 1 << 32;

fn one(plan: &Plan, made: &Workload, budget: f64, failures: &Failures, setting: Setting, seed: u64) -> Outcome {
    let scene = Scene::new(plan.hardware, made.nodes, made.bytes.clone(), budget);
    let mut events = failures.events(made.nodes, scene.groups, made.seconds, seed);
    events.extend_from_slice(&made.events);
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut policy = setting.make(&scene, made.seconds);
    let mut world = World::new(scene);
    run(&mut world, made.accesses.iter().copied(), &events, policy.as_mut(), made.seconds * WARM)
}

/// Runs all. `tell` hears what is at work.
pub fn matrix(plan: &Plan, tell: impl Fn(&str)) -> Vec<Cell> {
    plan.workloads
        .iter()
        .flat_map(|kind| {
            tell(kind.name());
            cells(plan, *kind)
        })
        .collect()
}

/// The cells of one workload: tuned first, then measured. Each made workload serves all policies and all cells.
fn cells(plan: &Plan, kind: workload::Kind) -> Vec<Cell> {
    let places: Vec<(f64, Failures)> =
        BUDGETS.iter().flat_map(|budget| FAILURES.map(|failures| (*budget, failures))).collect();
    let choices: Vec<Vec<Setting>> = plan.policies.iter().map(|kind| Setting::choices(*kind)).collect();
    let all: Vec<(usize, Setting)> =
        choices.iter().enumerate().flat_map(|(at, list)| list.iter().map(move |setting| (at, *setting))).collect();
    let failure_seconds = plan.hardware.failure_seconds();

    let tuned = spread(plan.threads, plan.tuning_seeds, |seed| {
        let seed = TUNING + seed;
        let made = Workload::new(kind, plan.size, &plan.hardware, seed);
        let cost = |(budget, failures): &(f64, Failures), setting| {
            one(plan, &made, *budget, failures, setting, seed).cost(failure_seconds)
        };
        places.iter().map(|place| all.iter().map(|(_, setting)| cost(place, *setting)).collect()).collect()
    });
    let best = |place: usize, policy: usize| -> Setting {
        let cost = |at: usize| tuned.iter().map(|seed: &Vec<Vec<f64>>| seed[place][at]).sum::<f64>();
        let own = (0..all.len()).filter(|at| all[*at].0 == policy);
        let least = own.min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        all[least.expect("each policy has choices")].1
    };
    let chosen: Vec<Vec<Setting>> =
        (0..places.len()).map(|place| (0..choices.len()).map(|policy| best(place, policy)).collect()).collect();

    let measured: Vec<Vec<Vec<Outcome>>> = spread(plan.threads, plan.seeds, |seed| {
        let made = Workload::new(kind, plan.size, &plan.hardware, seed);
        let row = |(place, settings): (&(f64, Failures), &Vec<Setting>)| {
            settings.iter().map(|setting| one(plan, &made, place.0, &place.1, *setting, seed)).collect()
        };
        places.iter().zip(&chosen).map(row).collect()
    });
    let cell = |(at, (budget, failures)): (usize, &(f64, Failures))| {
        let outcomes = |policy: usize| measured.iter().map(|seed| seed[at][policy]).collect();
        let entries = (0..choices.len()).map(|policy| Entry::new(chosen[at][policy], outcomes(policy))).collect();
        Cell { workload: kind, budget: *budget, failures: *failures, entries: with_front(entries) }
    };
    places.iter().enumerate().map(cell).collect()
}

impl Entry {
    fn new(setting: Setting, outcomes: Vec<Outcome>) -> Entry {
        let of = |figure: fn(&Outcome) -> f64| mean(&outcomes.iter().map(figure).collect::<Vec<_>>());
        let (seconds, availability) = (of(Outcome::access_seconds), of(Outcome::availability));
        Entry { kind: setting.kind, setting, seconds, availability, is_on_front: false, outcomes }
    }
}

fn with_front(mut entries: Vec<Entry>) -> Vec<Entry> {
    let points: Vec<_> = entries.iter().map(|entry| (entry.seconds.value, entry.availability.value)).collect();
    entries.iter_mut().zip(front(&points)).for_each(|(entry, is_on_front)| entry.is_on_front = is_on_front);
    entries
}

/// Does the work for each seed, on some threads; the results are in the order of seeds.
pub(crate) fn spread<T: Send>(threads: usize, seeds: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..seeds).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if seed >= seeds {
                        return;
                    }
                    let result = work(seed);
                    if let Ok(mut results) = results.lock() {
                        results[seed as usize] = Some(result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).into_iter().flatten().collect()
}
