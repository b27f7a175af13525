//! Where the kernel image is.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, UNAVAILABLE};

/// Where `bin/pc/build.sh` leaves the kernel, below cargo's target directory.
const IN_TARGET: &str = "pc/x86_64-unknown-linux-gnu/release/synthesis-pc";

/// Where `bin/pc/build.sh --monitor` leaves the image.
const MONITOR_IN_TARGET: &str = "pc-monitor/x86_64-unknown-linux-gnu/release/synthesis-pc";
/// Where `bin/hosted/build.sh` leaves the hosted machine.
const HOSTED_IN_TARGET: &str = "hosted/x86_64-unknown-linux-gnu/release/synthesis-hosted";

/// The image named by the option, or the one built beside this tool.
pub fn find(option: Option<&Path>) -> Result<PathBuf, Failure> {
    find_built(option, IN_TARGET)
}

/// The image with the monitor.
pub fn find_with_monitor() -> Result<PathBuf, Failure> {
    find_built(None, MONITOR_IN_TARGET)
}

/// The hosted machine's image: the one named by the option, or the one built beside this tool.
pub fn find_hosted(option: Option<&Path>) -> Result<PathBuf, Failure> {
    find_built(option, HOSTED_IN_TARGET)
}

fn find_built(option: Option<&Path>, in_target: &str) -> Result<PathBuf, Failure> {
    let path = match option {
        Some(path) => path.to_path_buf(),
        // target/release/synth stands two below the target directory.
        None => std::env::current_exe()
            .ok()
            .and_then(|tool| Some(tool.parent()?.parent()?.join(in_target)))
            .unwrap_or(in_target.into()),
    };
    if path.is_file() {
        return Ok(path);
    }
    let text = format!("the kernel image {} is missing", path.display());
    Err(Failure::new(UNAVAILABLE, text, "start ./synth in the checkout, which builds it, or name one with --kernel"))
}
