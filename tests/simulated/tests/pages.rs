//! Files whose pages come late, out of order, or not at all, on the real kernel.
//!
//! A failure prints its seed; `SEED=n cargo test -p simulated --test pages one_seed` runs it again, event by event. Ten thousand:
//! `SEEDS=10000 cargo test --release -p simulated --test pages nothing_is_lost`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use simulated::Outcome;
use simulated::late::{Report, judge, plan, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 60;

/// There is one slow store: who makes its plan runs it before another test makes one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How the run ended, and how many accesses of programs found no page.
fn try_seed(seed: u64) -> (Outcome, u64) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let report = Arc::new(Report::default());
    let outcome = run(seed, plan(seed, &report));
    if let Err(what) = judge(&outcome, &report) {
        panic!("seed {seed}, after {} steps: {what}\n{}", outcome.steps, outcome.trace.join("\n"));
    }
    (outcome, report.bus_errors.load(Ordering::Relaxed))
}

#[test]
fn nothing_is_lost_however_late_a_page_comes() {
    let first: u64 = std::env::var("FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    let count: u64 = std::env::var("SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"));
    let (mut steps, mut errors) = (0, 0);
    for seed in first..first + count {
        let (outcome, found) = try_seed(seed);
        (steps, errors) = (steps + outcome.steps, errors + found);
    }
    println!("{count} seeds from {first}: {steps} steps, {errors} accesses to pages that could not be had");
}

#[test]
fn one_seed_makes_one_run() {
    let seed = std::env::var("SEED").map_or(7, |text| text.parse().expect("a number"));
    let ((first, _), (again, _)) = (try_seed(seed), try_seed(seed));
    assert_eq!((first.hash, first.steps, first.now_ns), (again.hash, again.steps, again.now_ns), "seed {seed}");
}
