//! What the tool says when it cannot do what was asked, and the exit status that goes with it.

use std::fmt;

/// A run that took longer than `--timeout` allows (as `timeout` of coreutils).
pub const TIMED_OUT: u8 = 124;
/// The tool itself failed: an option, a file to pack, the host.
pub const TOOL: u8 = 125;
/// The program was found but cannot be executed (as in a shell).
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program (as in a shell).
pub const NOT_FOUND: u8 = 127;
/// QEMU, KVM or the kernel is missing (`EX_UNAVAILABLE`).
pub const UNAVAILABLE: u8 = 69;
/// The kernel or the virtual machine died (`EX_SOFTWARE`).
pub const MACHINE_DIED: u8 = 70;
/// Added to the number of the signal that ended a program, as in a shell.
pub const SIGNALLED: u8 = 128;

/// One error, told to a person: what is wrong, in lower case with values; and what to do.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    pub error: String,
    pub help: String,
}

impl Failure {
    pub fn new(status: u8, error: impl Into<String>, help: impl Into<String>) -> Self {
        Failure { status, error: error.into(), help: help.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "error: {}", self.error)?;
        if self.help.is_empty() { Ok(()) } else { writeln!(out, "help: {}", self.help) }
    }
}
