//! Properties that hold whatever happens, by random steps.

mod checks;

use checks::{NODES, OBJECTS, Step, laws};
use proptest::prelude::*;
use redundancy_sim::failure::Happening;
use redundancy_sim::policy::Kind;

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES as u16;
    let object = || 0..OBJECTS as u32;
    let what = prop_oneof![
        Just(Happening::Down),
        Just(Happening::Up),
        Just(Happening::DiskDown),
        Just(Happening::DiskUp),
        Just(Happening::Leave),
        Just(Happening::Join),
    ];
    prop_oneof![
        10 => (node(), object()).prop_map(|(node, object)| Step::Read(node, object)),
        6 => (node(), object()).prop_map(|(node, object)| Step::Write(node, object)),
        3 => (node(), what).prop_map(|(node, what)| Step::Happen(node, what)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// No copy is lost while one lives, no budget is exceeded, nobody reads what was before a write.
    #[test]
    fn the_laws_hold(kind in 0..Kind::ALL.len(), choice in 0usize..6, steps in prop::collection::vec(step(), 1..400)) {
        laws(Kind::ALL[kind], choice, &steps);
    }
}

#[test]
fn the_laws_hold_in_long_runs() {
    checks::all_laws();
}

#[test]
fn decisions_are_right_where_the_right_one_is_plain() {
    checks::formula();
    checks::forgetting();
    checks::hysteresis();
    checks::least_valuable();
    checks::small_ones_stay();
    checks::within_budget();
    checks::refusal();
    checks::last_copies_are_doubled();
}
