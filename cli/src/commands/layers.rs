//! `synth layers`: what is kept of container images.

use std::fs;
use std::path::PathBuf;

use crate::failure::{Failure, TOOL};
use crate::options::LayersOptions;
use crate::pack::cache_folder;

/// Lists the layers with their bytes, or removes them.
pub fn layers(options: &LayersOptions) -> Result<u8, Failure> {
    let folder = cache_folder()
        .ok_or_else(|| Failure::new(TOOL, "there is no folder for layers", "set HOME or XDG_CACHE_HOME"))?;
    let mut total = 0;
    for (path, bytes) in kept(&folder) {
        total += bytes;
        if options.clear {
            fs::remove_file(&path).map_err(|error| Failure::new(TOOL, format!("{}: {error}", path.display()), ""))?;
        } else {
            println!("{bytes:>14} {}", path.display());
        }
    }
    println!("{total:>14} bytes {} {}", if options.clear { "removed from" } else { "in" }, folder.display());
    Ok(0)
}

/// Layers, and what a run that was ended has left of one.
fn kept(folder: &PathBuf) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(PathBuf, u64)> =
        entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len()))).collect();
    files.sort();
    files
}
