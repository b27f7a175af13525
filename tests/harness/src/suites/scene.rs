//! What the suites share that look at running systems, `seeing` and `monitor`.
//!
//! Their systems listen in a folder of their own, so that others on the same host are not met.

use std::fs;
use std::path::PathBuf;

use super::streams::tool_is_there;
use crate::options::Options;
use crate::programs::{self, Linking};
use crate::report::Tally;

/// Everything that the checks of one suite share.
pub struct Scene<'a> {
    pub options: &'a Options,
    /// `programs/seeing.c`.
    pub program: PathBuf,
    /// Where the systems listen and files are written.
    pub folder: PathBuf,
}

pub type Check = fn(&Scene<'_>) -> Result<(), String>;

/// Runs the checks of `suite` by their names.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn play(suite: &str, checks: &[(&str, Check)], options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let program = programs::build(options, "seeing", Linking::Static)?;
    // The path of a socket is short.
    let folder = PathBuf::from(format!("/tmp/{suite}-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let scene = Scene { options, program, folder };
    for (name, check) in checks {
        let name = format!("{suite}/{name}");
        if options.selects(&name) {
            tally.record(&name, check(&scene));
        }
    }
    let _ = fs::remove_dir_all(&scene.folder);
    Ok(())
}

/// All parts stand in the text.
///
/// # Errors
/// The first that does not.
pub fn expect(text: &str, parts: &[&str]) -> Result<(), String> {
    match parts.iter().find(|part| !text.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(format!("{part:?} is not in\n{text}")),
    }
}
