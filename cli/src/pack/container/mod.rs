//! Container images, as `docker save`, `podman save` and tools for OCI layouts write them: layers over each other, and what to run.
//!
//! ```text
//!   blobs.rs    the files of the image: in a tar file or a folder, each with its digest
//!   manifest.rs which of them are layers, and the configuration
//!   layers.rs   layers as tar files, decompressed once; their entries laid over each other
//! ```
//! Nothing of an image is ever written to the host but a decompressed layer under the name of its own digest. Its names, links, owners and
//! devices go into the machine, where they mean nothing to anybody else.

mod blobs;
mod layers;
mod manifest;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::tree::Tree;
use crate::failure::{Failure, TOOL};
use blobs::Blobs;
use layers::LayerTar;
pub use layers::cache_folder;
use manifest::Runs;

/// An image that can be run.
pub struct Container {
    layers: Vec<LayerTar>,
    runs: Runs,
}

/// What is wrong with an image, in words.
type Bad = String;

impl Container {
    /// Reads an image and checks every digest in it.
    pub fn open(path: &Path) -> Result<Container, Failure> {
        Container::read(path).map_err(|reason| bad(path, &reason))
    }

    fn read(path: &Path) -> Result<Container, Bad> {
        let blobs = Blobs::open(path)?;
        let manifest = manifest::read(&blobs)?;
        let layers = manifest.layers.iter().zip(&manifest.diffs).map(|(blob, diff)| LayerTar::of(blob, diff));
        Ok(Container { layers: layers.collect::<Result<_, Bad>>()?, runs: manifest.runs })
    }

    /// The program and its arguments: those given instead of the image's own, behind its entry point.
    pub fn argv(&self, given: &[OsString]) -> Result<Vec<OsString>, Failure> {
        let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let mut argv = words(&self.runs.entrypoint);
        argv.extend(if given.is_empty() { words(&self.runs.command) } else { given.to_vec() });
        if argv.is_empty() {
            return Err(Failure::new(TOOL, "the image does not say what to run", "name a PROGRAM behind the options"));
        }
        Ok(argv)
    }

    /// Lays the layers over each other.
    pub fn fill(&self, tree: &mut Tree) -> Result<(), Failure> {
        self.layers.iter().try_for_each(|layer| layer.lay_over(tree))
    }

    /// `NAME=value` each.
    pub fn env(&self) -> &[String] {
        &self.runs.env
    }

    pub fn user(&self) -> Option<&str> {
        Some(self.runs.user.as_str()).filter(|user| !user.is_empty())
    }

    pub fn cwd(&self) -> Option<OsString> {
        let cwd = Some(&self.runs.cwd).filter(|cwd| cwd.starts_with('/'))?;
        Some(OsString::from_vec(OsStr::new(cwd).as_bytes().to_vec()))
    }
}

fn bad(path: &Path, reason: &str) -> Failure {
    let help = "an image is what docker save or podman save writes, or an OCI layout, as a tar file or a folder";
    Failure::new(TOOL, format!("--image {}: {reason}", path.display()), help)
}
