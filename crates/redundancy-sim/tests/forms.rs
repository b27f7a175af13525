//! The simulator against closed forms.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

mod checks;

#[test]
fn a_line_waits_like_an_mm1_queue() {
    checks::mm1();
}

#[test]
fn lru_hits_as_che_computes() {
    checks::che();
}

#[test]
fn votes_succeed_as_k_of_n_computes() {
    checks::k_of_n();
}

/// The analytic case: popularity known and steady, no failures. A plan from the rates is the best static answer, and valued
/// redundancy, which has to find the rates, comes near it.
#[test]
fn with_steady_rates_the_policy_comes_near_the_plan() {
    checks::near_the_plan();
}

#[test]
fn the_same_seed_gives_the_same_accesses() {
    use redundancy_sim::workload::{Kind, Size, Workload};
    use redundancy_sim::{Hardware, workload::Popularity};
    for kind in Kind::ALL {
        let [one, two] = [0, 0].map(|_| Workload::new(kind, Size::QUICK, &Hardware::TODAY, 3));
        assert_eq!((one.accesses, one.bytes), (two.accesses, two.bytes), "{kind:?}");
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let popularity = Popularity::new(10, 1.0, &mut random);
    let first = (0..10_000).filter(|_| popularity.pick(&mut random) == popularity.order()[0]).count();
    // 1 / H(10) = 0.341.
    assert!((3300..3530).contains(&first), "{first}");
}
