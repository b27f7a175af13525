//! Shares of the processor follow the quanta (S-72), and these the rate of I/O (S-71): `bench/shares/shares.c` judges.

use std::time::Duration;

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{Linking, compile};
use crate::report::Tally;
use crate::side::runner_command;

/// In the virtual machine instructions count as time, so a run repeats exactly.
const COUNTED: Measure = Measure { milliseconds: "400", tolerance: "10" };
/// A process of a busy host gets its time in other pieces than quanta: there a share may be further away from what it should
/// be, in percent of itself, and the longer it is looked at the nearer it comes.
const HOSTED: [Measure; 3] = [
    Measure { milliseconds: "400", tolerance: "40" },
    Measure { milliseconds: "4000", tolerance: "40" },
    Measure { milliseconds: "16000", tolerance: "40" },
];

struct Measure {
    milliseconds: &'static str,
    tolerance: &'static str,
}

/// Runs the rivals.
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
    let rivals = |option: &[&str], measure: &Measure| {
        let mut command = runner_command(&options.runner);
        command.args(option).args(["--timeout", "60"]).arg(&program);
        command.args(["rates", measure.milliseconds, measure.tolerance]);
        let outcome = process::run(command, Vec::new(), Duration::from_secs(80))?;
        match outcome.status {
            0 => Ok(()),
            status => Err(format!("status {status}\n{}", String::from_utf8_lossy(&outcome.stdout))),
        }
    };
    let result = match options.is_hosted() {
        false => rivals(&["--icount"], &COUNTED),
        true => rivals(&[], &HOSTED[0]).or_else(|_| rivals(&[], &HOSTED[1])).or_else(|_| rivals(&[], &HOSTED[2])),
    };
    tally.record(name, result);
    Ok(())
}
