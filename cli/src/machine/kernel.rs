//! Where the kernel image is.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, UNAVAILABLE};

/// Where `bin/pc/build.sh` leaves the kernel, below cargo's target directory.
const IN_TARGET: &str = "pc/x86_64-unknown-linux-gnu/release/synthesis-pc";

/// The image named by the option, or the one built beside this tool.
pub fn find(option: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match option {
        Some(path) => path.to_path_buf(),
        // target/release/synth stands two below the target directory.
        None => std::env::current_exe()
            .ok()
            .and_then(|tool| Some(tool.parent()?.parent()?.join(IN_TARGET)))
            .unwrap_or(IN_TARGET.into()),
    };
    if path.is_file() {
        return Ok(path);
    }
    let text = format!("the kernel image {} is missing", path.display());
    Err(Failure::new(UNAVAILABLE, text, "start ./synth in the checkout, which builds it, or name one with --kernel"))
}
