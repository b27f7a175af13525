//! Text windows, on Synthesis alone: the host's are its own. The program checks what it writes to them itself.

use crate::options::Options;
use crate::process;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::runner_command;

/// # Errors
/// When the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let program = programs::build(options, "windows", Linking::Static)?;
    for case in programs::names(&program)? {
        let name = format!("tty/windows/{case}");
        if options.selects(&name) {
            let mut command = runner_command(&options.runner);
            command.arg(&program).arg(&case);
            let outcome = process::run(command, Vec::new(), options.case_timeout)?;
            let told = [outcome.stdout.as_slice(), &outcome.stderr].concat();
            let result = if outcome.status == 0 { Ok(()) } else { Err(told.escape_ascii().to_string()) };
            tally.record(&name, result);
        }
    }
    Ok(())
}
