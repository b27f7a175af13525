//! The kernel images that suites need beside those that `./synth` builds at its start.

use std::process::Command;

use crate::options::Options;
use crate::report::Tally;

/// Brings the image with the monitor up to date: `./synth` builds it only for those who use it.
///
/// # Errors
/// A sentence, with the last words of the build.
pub fn build_with_monitor(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let script = options.repo.join("bin/pc/build.sh");
    let mut command = Command::new(&script);
    command.arg("--monitor");
    if std::env::var_os("SYNTH_KERNELS").is_some_and(|kind| kind == "develop") {
        command.arg("--develop");
    }
    tally.progress("the kernel with the monitor is built, if something has changed");
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", script.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let tail: Vec<&str> = words.lines().rev().take(10).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    Err(format!(
        "the kernel with the monitor cannot be built; `{} --monitor` says:\n{}",
        script.display(),
        tail.join("\n")
    ))
}
