//! Random scenes of threads, pipes, futexes, alarms, signals, children and a terminal, on the real kernel.
//!
//! A failure prints its seed; `SEED=n cargo test -p simulated --test scheduling one_seed` runs it again, event by event.

use std::sync::Arc;

use simulated::scene::{Report, judge, plan};
use simulated::{Outcome, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 150;

fn try_seed(seed: u64) -> Outcome {
    let report = Arc::new(Report::default());
    let outcome = run(plan(seed, &report));
    if let Err(what) = judge(&outcome, &report) {
        panic!("seed {seed}, after {} steps: {what}\n{}", outcome.steps, outcome.trace.join("\n"));
    }
    outcome
}

#[test]
fn nothing_is_lost_whatever_the_schedule() {
    let first: u64 = std::env::var("FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    let count: u64 = std::env::var("SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"));
    let steps: u64 = (first..first + count).map(|seed| try_seed(seed).steps).sum();
    println!("{count} seeds from {first}: {steps} steps");
}

#[test]
fn one_seed_makes_one_run() {
    let seed = std::env::var("SEED").map_or(7, |text| text.parse().expect("a number"));
    let (first, again, other) = (try_seed(seed), try_seed(seed), try_seed(seed + 1));
    assert_eq!((first.hash, first.steps, first.now_ns), (again.hash, again.steps, again.now_ns), "seed {seed}");
    assert_eq!(first.trace, again.trace);
    assert_ne!(first.hash, other.hash);
}
