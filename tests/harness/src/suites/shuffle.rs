//! A million random calls on files from each of some seeds: what Linux gives and what the files then hold, Synthesis gives and holds,
//! with its routines and without. The short runs of the same program are in `semantics`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::allocation::seeds_or;
use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::runner_command;

const CASES: [&str; 4] = ["shuffle", "limited", "signalled", "turns"];
const WAYS: [(&str, &[&str]); 2] = [("synthesized", &[]), ("generic", &["--generic"])];
const CALLS: &str = "1000000";
/// First seed, and how many; `SYNTH_SEEDS=FIRST:COUNT` asks for others.
const SEEDS: (u32, u32) = (99, 3);
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs each case with each seed on the host and, both ways, on Synthesis.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let program = programs::build(options, "shuffle", Linking::Static)?;
    let (first, count) = seeds_or(SEEDS);
    for case in CASES {
        for seed in first..first + count {
            let names = WAYS.map(|(way, words)| (format!("shuffle/{case}/{seed}/{way}"), words));
            if !names.iter().any(|(name, _)| options.selects(name)) {
                continue;
            }
            let words = [case.to_owned(), seed.to_string(), CALLS.to_owned()];
            let expected = on_host(options, &program, &words)?;
            for (name, way) in names.iter().filter(|(name, _)| options.selects(name)) {
                tally.record(name, on_synthesis(options, &program, way, &words).and_then(|got| same(&expected, &got)));
            }
        }
    }
    Ok(())
}

fn on_host(options: &Options, program: &Path, words: &[String]) -> Result<String, String> {
    let home = options.scratch.join(format!("synth-tests-shuffle-{}", std::process::id()));
    std::fs::create_dir_all(&home).map_err(|error| format!("cannot make {}: {error}", home.display()))?;
    let mut command = Command::new(program);
    command.args(words).current_dir(&home);
    let outcome = process::run(command, Vec::new(), LIMIT);
    // Files of another seed would still be there.
    std::fs::remove_dir_all(&home).map_err(|error| format!("cannot remove {}: {error}", home.display()))?;
    printed(outcome?)
}

fn on_synthesis(options: &Options, program: &Path, way: &[&str], words: &[String]) -> Result<String, String> {
    let mut command = runner_command(&options.runner);
    if options.is_hosted() {
        // A folder of the host, in memory: what is in it at the start is seen, so it is one of its own.
        let home = options.repo.join("target/synth-tests/shuffle");
        std::fs::create_dir_all(&home).map_err(|error| format!("cannot make {}: {error}", home.display()))?;
        command.arg("--memory").arg(&home).arg("--cwd").arg(&home);
    } else {
        command.args(["--cwd", "/tmp"]).arg("--with").arg(program);
    }
    command.args(way).arg(program).args(words);
    printed(process::run(command, Vec::new(), LIMIT)?)
}

fn printed(outcome: process::Outcome) -> Result<String, String> {
    let text = String::from_utf8_lossy(&outcome.stdout).replace('\r', "");
    match outcome.status {
        0 => Ok(text),
        status => Err(format!("status {status}\n{text}{}", String::from_utf8_lossy(&outcome.stderr))),
    }
}

/// The program tells the steps between two calls when it gets their numbers behind that of the calls.
fn same(expected: &str, got: &str) -> Result<(), String> {
    let differing = expected.lines().zip(got.lines()).find(|(expected, got)| expected != got);
    match differing {
        None if expected.lines().count() == got.lines().count() => Ok(()),
        None => Err("one side printed more".to_owned()),
        Some((expected, got)) => Err(format!("on the host   {expected}\non Synthesis  {got}")),
    }
}
