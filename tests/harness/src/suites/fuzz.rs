//! Random kernel calls with fixed seeds: `fuzz.c` inside the machine. Only there: what it does is not for a host.

use std::time::Duration;

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::runner_command;

/// Name, options of the tool, first seed, seeds, calls of each.
type Round = (&'static str, &'static [&'static str], u32, u32, u32);

/// Instructions count as time, so that a failure comes again.
const ROUNDS: [Round; 3] = [
    ("synthesized", &["--icount"], 1000, 12, 500),
    ("generic", &["--icount", "--generic"], 2000, 8, 400),
    ("little_memory", &["--icount", "--mem", "32M"], 3000, 8, 300),
];

/// Runs the rounds: the machine must live, and no worker may report anything.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let program = programs::build(options, "fuzz", Linking::Static)?;
    for (name, tool, seed, count, calls) in ROUNDS {
        let name = format!("fuzz/{name}");
        if !options.selects(&name) {
            continue;
        }
        if options.is_hosted() {
            tally.skip(&name, "the hosted machine's files are the host's: random calls would change them");
            continue;
        }
        let mut command = runner_command(&options.runner);
        command.args(tool).args(["--timeout", "100"]).arg(&program);
        command.args([seed, count, calls].map(|number| number.to_string()));
        let outcome = process::run(command, Vec::new(), Duration::from_secs(120));
        tally.record(
            &name,
            outcome.and_then(|outcome| match outcome.status {
                0 => Ok(()),
                status => Err(format!(
                    "status {status}\n{}{}",
                    String::from_utf8_lossy(&outcome.stdout),
                    String::from_utf8_lossy(&outcome.stderr)
                )),
            }),
        );
    }
    Ok(())
}
