//! Shares of the processor follow the quanta (S-72), and these the rate of I/O (S-71): `bench/shares/shares.c` judges.

use std::time::Duration;

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{Linking, compile};
use crate::report::Tally;
use crate::side::runner_command;

const MILLISECONDS: &str = "400";

/// In the virtual machine instructions count as time, so a run repeats exactly. A process of a busy host gets its time in
/// other pieces: there a share may be further away from what it should be, in percent of itself.
const TOLERANCE: [(&str, &str); 2] = [("--icount", "10"), ("--hosted", "40")];

/// Runs the rivals once.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let name = "shares/rates";
    if !options.selects(name) {
        return Ok(());
    }
    tool_is_there(options)?;
    let source = options.repo.join("bench/shares/shares.c");
    let program = compile(options, &source, "shares", Linking::Static, &["-O", "-Wall"])?;
    let is_hosted = options.is_hosted();
    let (option, tolerance) = TOLERANCE[usize::from(is_hosted)];
    let mut command = runner_command(&options.runner);
    if !is_hosted {
        command.arg(option);
    }
    command.args(["--timeout", "60"]).arg(&program).args(["rates", MILLISECONDS, tolerance]);
    let outcome = process::run(command, Vec::new(), Duration::from_secs(80));
    tally.record(
        name,
        outcome.and_then(|outcome| match outcome.status {
            0 => Ok(()),
            status => Err(format!("status {status}\n{}", String::from_utf8_lossy(&outcome.stdout))),
        }),
    );
    Ok(())
}
