//! Builds the measured programs with the host's C compiler.

use super::error::{BenchError, at};
use super::suite::Program;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the programs find the C library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    Static,
    Dynamic,
}

impl Linkage {
    fn folder(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// The executables by name.
pub type Built = BTreeMap<&'static str, PathBuf>;

/// Compiles what `programs` need, as the paper did: `cc -O`.
///
/// # Errors
/// `MissingCommand` without gcc, `Compile` with its message.
pub fn build(root: &Path, programs: &[Program], linkage: Linkage) -> Result<Built, BenchError> {
    let folder = root.join("target/bench").join(linkage.folder());
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mut built = Built::new();
    for program in programs {
        if !built.contains_key(program.executable) {
            let output = folder.join(program.executable);
            compile(&source_of(root, program.executable), &output, linkage)?;
            built.insert(program.executable, output);
        }
    }
    Ok(built)
}

fn source_of(root: &Path, executable: &str) -> PathBuf {
    let folder = if ["micro", "threads", "wakes"].contains(&executable) { executable } else { "paper" };
    root.join("bench").join(folder).join(executable).with_extension("c")
}

/// Compiles one source file. The result is written aside and renamed, so that two benches at once do not
/// see half a program.
///
/// # Errors
/// As [`build`].
pub fn compile(source: &Path, output: &Path, linkage: Linkage) -> Result<(), BenchError> {
    compile_with(source, output, if linkage == Linkage::Static { &["-static"] } else { &[] }, &[])
}

/// As [`compile`], with `options` before the source and `libraries` after it.
///
/// # Errors
/// As [`build`].
pub fn compile_with(source: &Path, output: &Path, options: &[&str], libraries: &[&str]) -> Result<(), BenchError> {
    let fresh = output.with_extension(format!("{}.new", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O", "-Wall", "-o"]).arg(&fresh).args(options).arg(source).args(libraries);
    let result = gcc.output().map_err(|_| BenchError::MissingCommand { command: "gcc", package: "gcc libc6-dev" })?;
    if !result.status.success() {
        let message = String::from_utf8_lossy(&result.stderr).trim().to_string();
        return Err(BenchError::Compile { source: source.into(), message });
    }
    fs::rename(&fresh, output).map_err(at(output))
}

/// The loader and the C library that dynamic programs need, as (path in the guest, path here).
pub fn shared_libraries() -> Vec<(&'static str, PathBuf)> {
    let printed = Command::new("gcc").arg("-print-file-name=libc.so.6").output();
    let libc = printed.map_or("libc.so.6".into(), |p| String::from_utf8_lossy(&p.stdout).trim().to_string());
    vec![
        ("lib64/ld-linux-x86-64.so.2", PathBuf::from("/lib64/ld-linux-x86-64.so.2")),
        ("lib/x86_64-linux-gnu/libc.so.6", PathBuf::from(libc)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::suite::select;
    use super::super::{Suite, project_root};
    use super::*;

    /// Guards the C sources: each program, tiny, on the host's own kernel.
    #[test]
    fn every_program_runs_on_the_host() {
        let root = project_root();
        let scratch = root.join("target/bench/scratch");
        fs::create_dir_all(&scratch).unwrap();
        for suite in [Suite::Paper, Suite::Micro, Suite::Threads, Suite::Wakes, Suite::Calls] {
            let programs = select(suite, &[]).unwrap();
            let built = match build(&root, &programs, Linkage::Static) {
                Err(BenchError::MissingCommand { .. }) => return,
                built => built.unwrap(),
            };
            for program in programs {
                // A test run without a controlling terminal cannot open /dev/tty; neither could the program.
                if program.executable == "p7_open_tty" && fs::File::open("/dev/tty").is_err() {
                    continue;
                }
                let run = &program.runs(true)[1];
                let path = &built[run.executable];
                let output = Command::new(path).args(&run.arguments).current_dir(&scratch).output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && stderr.starts_with("ticks "), "{}: {stderr}", program.title);
                let expected: &[u8] = if program.executable == "p1_compute" { b"249176\n242927\n" } else { b"" };
                assert_eq!(output.stdout, expected, "{}", program.title);
            }
        }
    }
}
