//! `synth boot`: an interactive shell of the host's busybox.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use super::run::{prepare, start};
use crate::failure::{Failure, NOT_FOUND, TOOL};
use crate::machine::Console;
use crate::options::BootOptions;

/// Boots to the shell; its status is returned.
pub fn boot(options: &BootOptions) -> Result<u8, Failure> {
    if options.files.image.is_some() || !options.files.out.is_empty() || options.files.upper.is_some() {
        return Err(Failure::new(TOOL, "--image, --out and --upper belong to synth run", "write synth run"));
    }
    let console = Console::take()?;
    let mut packed = prepare(OsStr::new("busybox"), &options.machine, (&options.files, None), console.terminals)
        .map_err(|failure| match failure.status {
            NOT_FOUND => Failure::new(NOT_FOUND, "busybox is not installed", "sudo apt-get install busybox-static"),
            _ => failure,
        })?;
    if options.files.root.is_none() && packed.outside.is_none() {
        let program = packed.program.clone();
        for name in applets(Path::new(std::str::from_utf8(&program).unwrap_or("busybox"))) {
            packed.tree.ensure_symlink(&format!("/bin/{name}"), &program)?;
        }
    }
    start(packed, vec![b"sh".to_vec()], &options.machine, console)
}

/// The commands that busybox can be; none when it does not say.
fn applets(busybox: &Path) -> Vec<String> {
    let output = Command::new(busybox).arg("--list").output();
    let names = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    names.lines().filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_string).collect()
}
