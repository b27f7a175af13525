//! The test programs in C, built here and never committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Options;

/// How a test program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// All in one file.
    Static,
    /// With the host's C library.
    Dynamic,
}

/// The ways in which a test program is worth running.
pub fn kinds(source: &str) -> &'static [Linking] {
    match source {
        "signals" | "mm" | "faults" => &[Linking::Static, Linking::Dynamic],
        _ => &[Linking::Static],
    }
}

/// Ubuntu's compiler checks the C library's callers by default, which makes other calls of some programs and warns of more.
const WARNINGS: [&str; 6] = ["-O1", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE", "-Wno-unused-result"];

/// Builds `tests/programs/SOURCE.c`.
///
/// # Errors
/// A sentence, or the compiler's own words.
pub fn build(options: &Options, source: &str, linking: Linking) -> Result<PathBuf, String> {
    let file = options.repo.join("tests/programs").join(format!("{source}.c"));
    compile(options, &file, source, linking, &WARNINGS)
}

/// Compiles one C file into the build folder as `name` (static) or `name-dynamic`.
///
/// # Errors
/// A sentence, or the compiler's own words.
pub fn compile(
    options: &Options,
    file: &Path,
    name: &str,
    linking: Linking,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let folder = options.repo.join("target/synth-tests/bin");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let target = match linking {
        Linking::Static => folder.join(name),
        Linking::Dynamic => folder.join(format!("{name}-dynamic")),
    };
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let headers = file.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
    let headers = headers.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let headers = headers.filter(|path| path.extension().is_some_and(|end| end == "h"));
    let newest = headers.map(|path| changed(&path)).chain([changed(file)]).max().flatten();
    if target.exists() && changed(&target) > newest {
        return Ok(target);
    }
    let mut gcc = Command::new("gcc");
    gcc.args(flags);
    if linking == Linking::Static {
        gcc.arg("-static");
    }
    let output = gcc.arg("-o").arg(&target).arg(file).output();
    let output = output.map_err(|error| format!("cannot run gcc (install gcc and libc6-dev): {error}"))?;
    if !output.status.success() {
        return Err(format!("gcc failed for {}:\n{}", file.display(), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(target)
}

/// The names that a test program prints for `list`; each is a case.
///
/// # Errors
/// A sentence when it prints none.
pub fn names(program: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(program).arg("list").output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
    if names.is_empty() {
        return Err(format!("{} lists no cases", program.display()));
    }
    Ok(names)
}
