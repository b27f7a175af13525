//! The seven programs of the paper finish with the same output, statically and dynamically linked; kernel calls cost in the
//! order of the thesis's table 3.5.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compare::compare;
use crate::options::Options;
use crate::process;
use crate::programs::{Linking, compile};
use crate::report::Tally;
use crate::root::Root;
use crate::side::{GUEST_HOME, Side};
use crate::terminal::{Step, play};

/// Enough rounds to use every path, few enough for an emulated processor.
const ITERATIONS: &str = "3";

/// Builds and compares each.
///
/// # Errors
/// A sentence when the sources are not there or do not compile.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let folder = options.repo.join("bench/paper");
    let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect();
    sources.sort();
    if sources.len() != 7 {
        return Err(format!("{} has {} programs, not seven", folder.display(), sources.len()));
    }
    let mut root = Root::create(&options.repo.join("target/synth-tests/paper/root"))?;
    fs::create_dir_all(root.home()).map_err(|error| error.to_string())?;
    for source in &sources {
        for linking in [Linking::Static, Linking::Dynamic] {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = format!("paper/{stem}_{linking:?}").to_lowercase();
            if options.selects(&name) {
                let program = compile(options, source, &stem, linking, &["-O"])?;
                tally.record(&name, same_output(options, &mut root, &program));
            }
        }
    }
    if options.selects(ORDER) {
        tally.record(ORDER, order_of_calls(options));
    }
    Ok(())
}

const ORDER: &str = "paper/order_of_calls";

/// In guest instructions, which repeat.
fn order_of_calls(options: &Options) -> Result<(), String> {
    let mut command = Command::new(&options.runner[0]);
    command.args(["bench", "tables", "--only", "3.5", "--quick", "--check"]);
    let outcome = process::run(command, Vec::new(), options.case_timeout)?;
    if outcome.status == 0 { Ok(()) } else { Err(String::from_utf8_lossy(&outcome.stdout).into_owned()) }
}

fn same_output(options: &Options, root: &mut Root, program: &Path) -> Result<(), String> {
    let name = program.file_name().unwrap_or_default();
    root.add_program_libraries(&program.display().to_string())?;
    root.add_program("/bin/busybox")?;
    fs::copy(program, root.home().join(name)).map_err(|error| error.to_string())?;
    let host_home = options.scratch.join(format!("synth-tests-paper-{}", std::process::id()));
    fs::create_dir_all(&host_home).map_err(|error| error.to_string())?;
    let args = [ITERATIONS.to_string()];
    let limit = options.case_timeout;
    let guest_program = format!("{GUEST_HOME}/{}", name.to_string_lossy());
    let host = Side::host(&host_home);
    let synthesis = Side::synthesis(options, root.path());
    let sides = [(&host, program.display().to_string()), (&synthesis, guest_program)];
    let result = if name.to_string_lossy().contains("tty") {
        // This one opens /dev/tty, so it needs a terminal.
        let screen = |side: &Side, program: &str| {
            play(side.terminal_command(program, &args, limit), &[Step::End(0)], limit).map(|transcript| transcript.0)
        };
        let (expected, actual) = (screen(sides[0].0, &sides[0].1)?, screen(sides[1].0, &sides[1].1)?);
        if expected == actual { Ok(()) } else { Err(crate::compare::difference("screen", &expected, &actual)) }
    } else {
        let outcome = |side: &Side, program: &str| process::run(side.command(program, &args, limit), Vec::new(), limit);
        let expected = outcome(sides[0].0, &sides[0].1)?;
        if expected.status != 0 {
            return Err(format!("on the host it ended with status {}", expected.status));
        }
        compare(&expected, &outcome(sides[1].0, &sides[1].1)?, (&host_home, synthesis.home()))
    };
    let _ = fs::remove_dir_all(&host_home);
    result
}
