//! Mistakes made on purpose, one at a time: some check must find each.

mod checks;

use std::panic::catch_unwind;
use std::path::Path;

use redundancy::mutant;

type Check = (&'static str, fn());

const CHECKS: &[Check] = &[
    ("formula", checks::formula),
    ("forgetting", checks::forgetting),
    ("hysteresis", checks::hysteresis),
    ("least_valuable", checks::least_valuable),
    ("small_ones_stay", checks::small_ones_stay),
    ("within_budget", checks::within_budget),
    ("refusal", checks::refusal),
    ("all_laws", checks::all_laws),
    ("mm1", checks::mm1),
    ("k_of_n", checks::k_of_n),
];

/// Each place that can be made wrong.
const PLACES: &[&str] = &[
    "usage.decay",
    "value.foreign",
    "value.others",
    "value.failures",
    "value.writes",
    "change.margin",
    "keeper.victim",
    "valued.bytes",
    "plan.budget",
    "line.wait",
    "holders.shrink",
    "majority.half",
    "world.crash",
    "world.reconcile",
    "world.room",
    "world.last",
    "world.used",
];

/// The first check that finds the mistake.
fn finder(place: &'static str) -> Option<&'static str> {
    let finds = |(_, check): &&Check| {
        mutant::choose(place);
        let found = catch_unwind(check).is_err();
        mutant::choose("");
        found
    };
    CHECKS.iter().find(finds).map(|(name, _)| *name)
}

#[test]
fn every_mutant_is_found() {
    assert_eq!(finder(""), None, "a check fails without a mistake");
    for place in PLACES {
        assert!(finder(place).is_some(), "nothing finds the mistake {place}");
    }
}

#[test]
fn every_place_is_in_the_list() {
    let mut found = Vec::new();
    let root = Path::new(env!("SYNTHESIS_ROOT")).join("crates/redundancy-sim");
    for folder in [root.join("src"), root.join("../redundancy/src")] {
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
        {
            let text = std::fs::read_to_string(&file).unwrap();
            let names = text.split("mutant::is(\"").skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(names.map(str::to_string));
        }
    }
    found.sort();
    let mut listed = PLACES.to_vec();
    listed.sort();
    assert_eq!(found, listed);
}
