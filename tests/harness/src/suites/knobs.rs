//! The limits of /proc/sys: `knobs.c` inside the machine prints what it printed on a Linux (`knobs.txt`). Only there: what it writes is not
//! for a host.

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::runner_command;

/// Runs each case of the program.
///
/// # Errors
/// A sentence when the tool is not there, the program cannot be built or the text cannot be read.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let program = programs::build(options, "knobs", Linking::Static)?;
    let file = options.repo.join("tests/programs/knobs.txt");
    let expected =
        std::fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    for part in expected.split("## ").skip(1) {
        let (case, text) = part.split_once('\n').unwrap_or((part, ""));
        let name = format!("knobs/{case}");
        if !options.selects(&name) {
            continue;
        }
        let mut command = runner_command(&options.runner);
        command.args(["--mem", "192M"]).arg("--with").arg(&program).arg(&program).arg(case);
        let outcome = process::run(command, Vec::new(), options.case_timeout)?;
        let said = String::from_utf8_lossy(&outcome.stdout).replace('\r', "");
        let differing = text.lines().zip(said.lines()).find(|(expected, said)| expected != said);
        tally.record(
            &name,
            match differing {
                None if text == said && outcome.status == 0 => Ok(()),
                None => Err(format!("status {}, {} lines\n{said}", outcome.status, said.lines().count())),
                Some((expected, said)) => Err(format!("on Linux     {expected}\non Synthesis {said}")),
            },
        );
    }
    Ok(())
}
