//! A shared folder whose server is late, lies, is silent, or gone, on the real kernel.
//!
//! A failure prints its seed; `SEED=n cargo test -p simulated --test shares one_seed` runs it again, event by event.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use simulated::Outcome;
use simulated::far::{Report, judge, plan, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 80;

/// There is one server: who makes its plan runs it before another test makes one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How the run ended, and how many calls failed.
fn try_seed(seed: u64) -> (Outcome, u64) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let report = Arc::new(Report::default());
    let outcome = run(seed, plan(seed, &report));
    if let Err(what) = judge(&outcome, &report) {
        panic!("seed {seed}, after {} steps: {what}\n{}", outcome.steps, outcome.trace.join("\n"));
    }
    (outcome, report.failed.load(Ordering::Relaxed))
}

#[test]
fn nobody_waits_for_a_silent_server_but_who_asks_it() {
    let first: u64 = std::env::var("FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    let count: u64 = std::env::var("SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"));
    let (mut steps, mut failed) = (0, 0);
    for seed in first..first + count {
        let (outcome, found) = try_seed(seed);
        (steps, failed) = (steps + outcome.steps, failed + found);
    }
    assert!(count < 20 || failed > 0, "no server has lied");
    println!("{count} seeds from {first}: {steps} steps, {failed} calls that failed");
}

#[test]
fn one_seed_makes_one_run() {
    let seed = std::env::var("SEED").map_or(7, |text| text.parse().expect("a number"));
    let ((first, _), (again, _)) = (try_seed(seed), try_seed(seed));
    assert_eq!((first.hash, first.steps, first.now_ns), (again.hash, again.steps, again.now_ns), "seed {seed}");
}
