//! Cases so small that the best answer of all can be computed: how near each policy comes.

use crate::failure::Failures;
use crate::matrix::spread;
use crate::policy::{Kind, Setting};
use crate::statistics::{Mean, mean};
use crate::workload::{self, Size, Workload};
use crate::{Hardware, Scene, World, oracle, run};

/// Three nodes and six objects.
pub const SIZE: Size = Size { nodes: 3, objects: 6, accesses: 1500 };
pub const WORKLOADS: [workload::Kind; 4] =
    [workload::Kind::Steady, workload::Kind::Drift, workload::Kind::Writers, workload::Kind::Scans];
/// A share for one object on each node, and for two.
pub const BUDGETS: [f64; 2] = [0.5, 1.0];

/// One case: how much more each policy costs than it would cost who knows the future; its best settings count.
#[derive(Clone, Debug)]
pub struct Case {
    pub workload: workload::Kind,
    pub budget: f64,
    pub failures: Failures,
    pub ratios: Vec<(Kind, Mean)>,
}

/// All cases.
pub fn cases(hardware: Hardware, seeds: u64, accesses: usize, threads: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for workload in WORKLOADS {
        for budget in BUDGETS {
            for failures in [Failures::NONE, Failures::OFTEN] {
                cases.push(case(hardware, workload, budget, failures, seeds, accesses, threads));
            }
        }
    }
    cases
}

fn case(
    hardware: Hardware,
    workload: workload::Kind,
    budget: f64,
    failures: Failures,
    seeds: u64,
    accesses: usize,
    threads: usize,
) -> Case {
    let choices: Vec<Setting> = Kind::ALL.into_iter().flat_map(Setting::choices).collect();
    let ratios: Vec<Vec<f64>> = spread(threads, seeds, |seed| {
        let made = Workload::new(workload, Size { accesses, ..SIZE }, &hardware, seed);
        let mut scene = Scene::new(hardware, made.nodes, made.bytes.clone(), budget);
        scene.has_queues = false;
        let events = failures.events(made.nodes, scene.groups, made.seconds, seed);
        let failure = hardware.failure_seconds();
        let least = oracle::least_cost(&scene, &made.accesses, &events, failure);
        let ratio = |setting: &Setting| {
            let mut policy = setting.make(&scene, made.seconds);
            let mut world = World::new(scene.clone());
            let accesses = made.accesses.iter().copied();
            run(&mut world, accesses, &events, policy.as_mut(), 0.0).cost(failure) / least
        };
        choices.iter().map(ratio).collect()
    });
    let of = |at: usize| mean(&ratios.iter().map(|seed| seed[at]).collect::<Vec<_>>());
    let best = |kind: Kind| {
        let own = (0..choices.len()).filter(|at| choices[*at].kind == kind).map(of);
        own.min_by(|a, b| a.value.total_cmp(&b.value)).map(|mean| (kind, mean))
    };
    Case { workload, budget, failures, ratios: Kind::ALL.into_iter().filter_map(best).collect() }
}
