//! What can go wrong before there is anything to compare.

use std::fmt;
use std::path::PathBuf;

/// Why a bench could not be run. `Display` says what happened; [`BenchError::help`] what to do.
#[derive(Debug)]
pub enum BenchError {
    /// No program of the suite has this number or name.
    UnknownProgram { asked: String, known: String },
    /// The suite has nothing that an option asks for.
    NotInSuite { option: &'static str, suite: &'static str },
    /// A host command that the bench needs is not installed.
    MissingCommand { command: &'static str, package: &'static str },
    /// The compiler refused a program.
    Compile { source: PathBuf, message: String },
    /// There is no Linux kernel to compare with.
    NoLinuxKernel { reason: String },
    /// The Linux guest did not report all its runs.
    Guest { reason: String },
    /// A program of the bench did not say what was to be measured.
    NotMeasured { reason: String },
    /// The Linux guest has a file system of its own where the programs are on the host.
    Covered { root: PathBuf },
    /// A file could not be read or written.
    File { path: PathBuf, error: std::io::Error },
}

impl BenchError {
    /// What the user can do about it.
    pub fn help(&self) -> String {
        match self {
            Self::UnknownProgram { known, .. } => format!("the suite has {known}"),
            Self::NotInSuite { .. } => "synth bench --help says what each option is for".into(),
            Self::MissingCommand { package, .. } => format!("install it: apt-get install {package}"),
            Self::Compile { .. } => "the programs need gcc and the C library's static archive (libc6-dev)".into(),
            Self::NoLinuxKernel { .. } => {
                "on Debian run apt-get update and try again; elsewhere give a kernel with --linux VMLINUZ".into()
            }
            Self::Guest { .. } => "the kernel needs an initramfs, devtmpfs, tmpfs and an 8250 console built in".into(),
            Self::NotMeasured { .. } => "build the kernel first: ./synth does".into(),
            Self::Covered { .. } => "move the checkout to another folder".into(),
            Self::File { .. } => "check that the project's target folder is writable".into(),
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownProgram { asked, .. } => write!(f, "no program `{asked}` in this suite"),
            Self::NotInSuite { option, suite } => write!(f, "--{option} means nothing to the suite {suite}"),
            Self::MissingCommand { command, .. } => write!(f, "`{command}` is not installed"),
            Self::Compile { source, message } => write!(f, "cannot compile {}: {message}", source.display()),
            Self::NoLinuxKernel { reason } => write!(f, "no Linux kernel to compare with: {reason}"),
            Self::Guest { reason } => write!(f, "the Linux guest failed: {reason}"),
            Self::NotMeasured { reason } => write!(f, "nothing was measured: {reason}"),
            Self::Covered { root } => {
                write!(f, "{}: the programs would be below /tmp, which the Linux guest covers", root.display())
            }
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for BenchError {}

/// Attaches a path to an I/O error.
pub fn at(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.into();
    move |error| BenchError::File { path, error }
}
