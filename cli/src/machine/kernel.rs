//! Where the kernel image is.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, UNAVAILABLE};

/// The variable that names the kind of images: `release` (also when it is not set) or `develop`.
const KIND: &str = "SYNTH_KERNELS";

/// One of the images that the build scripts in `bin` leave below cargo's target directory.
#[derive(Clone, Copy)]
enum Image {
    /// `bin/pc/build.sh`
    Pc,
    /// `bin/pc/build.sh --monitor`
    Monitor,
    /// `bin/hosted/build.sh`
    Hosted,
}

impl Image {
    /// Where it is; with `develop`, the one that links in seconds (`build.sh --develop`).
    fn in_target(self, develop: bool) -> PathBuf {
        let (folder, name) = match self {
            Image::Pc => ("pc", "synthesis-pc"),
            Image::Monitor => ("pc-monitor", "synthesis-pc"),
            Image::Hosted => ("hosted", "synthesis-hosted"),
        };
        let (kind, profile) = if develop { ("-develop", "develop") } else { ("", "release") };
        format!("{folder}{kind}/x86_64-unknown-linux-gnu/{profile}/{name}").into()
    }
}

/// The image named by the option, or the one built beside this tool.
pub fn find(option: Option<&Path>) -> Result<PathBuf, Failure> {
    find_built(option, Image::Pc)
}

/// The image with the monitor.
pub fn find_with_monitor() -> Result<PathBuf, Failure> {
    find_built(None, Image::Monitor)
}

/// The hosted machine's image: the one named by the option, or the one built beside this tool.
pub fn find_hosted(option: Option<&Path>) -> Result<PathBuf, Failure> {
    find_built(option, Image::Hosted)
}

fn is_develop() -> Result<bool, Failure> {
    match std::env::var(KIND).as_deref() {
        Err(_) | Ok("" | "release") => Ok(false),
        Ok("develop") => Ok(true),
        Ok(other) => {
            let text = format!("{KIND} is {other}, and there are no such kernels");
            Err(Failure::new(UNAVAILABLE, text, "set it to `release` or `develop`, or unset it"))
        }
    }
}

fn find_built(option: Option<&Path>, image: Image) -> Result<PathBuf, Failure> {
    let in_target = image.in_target(is_develop()?);
    let path = match option {
        Some(path) => path.to_path_buf(),
        // target/release/synth stands two below the target directory.
        None => std::env::current_exe()
            .ok()
            .and_then(|tool| Some(tool.parent()?.parent()?.join(&in_target)))
            .unwrap_or(in_target),
    };
    if path.is_file() {
        return Ok(path);
    }
    let text = format!("the kernel image {} is missing", path.display());
    Err(Failure::new(UNAVAILABLE, text, "start ./synth in the checkout, which builds it, or name one with --kernel"))
}
