//! The suites, each a file.

pub mod allocation;
pub mod audio;
pub mod bombs;
pub mod bounds;
pub mod comparison;
pub mod compiler;
pub mod demos;
pub mod errors;
pub mod folders;
pub mod fuzz;
pub mod hosted;
mod hosted_kills;
pub mod hostfiles;
mod hostfiles_moves;
pub mod knobs;
pub mod kvm;
pub mod machines;
pub mod monitor;
pub mod network;
pub mod paper;
mod scene;
pub mod seeing;
pub mod shares;
pub mod shuffle;
pub mod sound;
pub mod streams;
pub mod tty;
pub mod unmodified;
mod windows;
pub mod world;
mod world_kept;
mod world_programs;

use crate::options::Options;
use crate::report::Tally;

/// Runs one suite by name, or all.
///
/// # Errors
/// A sentence when the suite could not be tried at all.
pub fn run(name: &str, options: &Options, tally: &mut Tally) -> Result<(), String> {
    match name {
        "differential" => comparison::run(comparison::Suite::Differential, options, tally),
        "faults" => comparison::run(comparison::Suite::Faults, options, tally),
        "semantics" => comparison::run(comparison::Suite::Semantics, options, tally),
        "pointers" => comparison::run(comparison::Suite::Pointers, options, tally),
        "leaks" => comparison::run(comparison::Suite::Leaks, options, tally),
        "libraries" => comparison::run(comparison::Suite::Libraries, options, tally),
        "paper" => paper::run(options, tally),
        "shares" => shares::run(options, tally),
        "streams" => streams::run_all(options, tally),
        "errors" => errors::run(options, tally),
        "seeing" => seeing::run(options, tally),
        "monitor" => monitor::run(options, tally),
        "fuzz" => fuzz::run(options, tally),
        "tty" => tty::run(options, tally),
        "hostfiles" => hostfiles::run(options, tally),
        "folders" => folders::run(options, tally),
        "world" => world::run(options, tally),
        "unmodified" => unmodified::run(options, tally),
        "hosted" => hosted::run(options, tally),
        "bounds" => bounds::run(options, tally),
        "knobs" => knobs::run(options, tally),
        "kvm" => kvm::run(options, tally),
        "machines" => machines::run(options, tally),
        "network" => network::run(options, tally),
        "allocation" => allocation::run(options, tally),
        "starving" => allocation::run_choice(options, tally),
        "sound" => sound::run(options, tally),
        "audio" => audio::run(options, tally),
        "demos" => demos::run(options, tally),
        "compiler" => compiler::run(options, tally),
        "shuffle" => shuffle::run(options, tally),
        "bombs" => bombs::run(options, tally),
        "list" => comparison::list(options),
        "all" => all(options, tally),
        _ => Err(format!("there is no suite {name}\nhelp: there are: {} all", ALL.join(" "))),
    }
}

const ALL: &[&str] = &[
    "streams",
    "errors",
    "differential",
    "semantics",
    "faults",
    "fuzz",
    "knobs",
    "pointers",
    "leaks",
    "libraries",
    "paper",
    "shares",
    "compiler",
    "hostfiles",
    "folders",
    "world",
    "tty",
    "sound",
    "audio",
    "demos",
    "seeing",
    "monitor",
    "machines",
    "network",
    "starving",
    "kvm",
    "hosted",
    "unmodified",
];

/// Suites that are run by hand: two need images of their own, `shuffle` takes an hour, and `bombs` fails once in some two hundred runs
/// (CHANGELOG.md, known faults).
#[cfg(test)]
const BY_HAND: &[&str] = &["allocation", "bombs", "bounds", "shuffle"];

/// Each suite is tried even when one before it could not be.
fn all(options: &Options, tally: &mut Tally) -> Result<(), String> {
    for name in ALL {
        tally.progress(name);
        if let Err(message) = run(name, options, tally) {
            tally.fail(name, &message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    /// `./synth test` takes its suites from the usage.
    #[test]
    fn the_usage_names_every_suite() {
        let usage = include_str!("../../usage.txt");
        let suites = usage.split("\nsuites\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        let mut named: Vec<&str> = suites.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let mut known: Vec<&str> = super::ALL.iter().chain(super::BY_HAND).copied().chain(["all"]).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
