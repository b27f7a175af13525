//! Synthesized call routines: what they have in common.
//!
//! ```text
//!   syscall ─ slot ─► thread.dispatch ─ table ─► by_descriptor ─ entry ─► pipe.write
//!                                                                 ├ checks, the program's bytes moved, words stored
//!                                                                 ├ leave: back to the program
//!                                                                 └ anything unusual: slow, the Rust twin
//! ```
//! A routine does the usual case whole or not at all: before it stores anything it has checked everything, and a fault in
//! the program's memory lands where no word has been stored. So the slow way, which is the plain Rust twin (R6), always
//! starts from the beginning with the program's registers untouched.

use codestore::Code;

pub mod fragments;
mod open;
mod routine;
mod simple;
pub mod watch;

pub use open::{CallCode, OPEN_NAMES_MAX, OpenName, Opens, TableWords};
pub(crate) use open::{CallRoutine, ToRust};
pub use quaject::Makers;
pub(crate) use routine::{FACTS, GoSlow, REFUSED, RestoreMany, SLOW_MANY};
pub use routine::{Routine, Sleeps};
pub use simple::{Null, NullCallouts, NullCode, SimpleCode, Zero, ZeroCallouts, ZeroCode};

/// Register contract of the routines behind a descriptor's `read` and `write` entry: entered by `jmp` from the thread's
/// dispatch code, on the thread's kernel stack with the program's stack pointer on top; rax = call number,
/// rdi, rsi, rdx = arguments, rcx and r11 as `syscall` left them. All registers but rax, rcx and r11 are kept.
pub enum FileCall {}

impl machine::Keeps<machine::FileEntry> for FileCall {}

/// What does the call in Rust stands behind descriptors that have no routine.
impl machine::Keeps<FileCall> for machine::FileEntry {}

impl quaject::Contract for FileCall {
    const NAME: &'static str = "file call";
    type Routine = Routine;
}

/// The routines behind one open file's descriptors; what is `None` is done in Rust.
#[derive(Clone, Default)]
pub struct FileCode {
    pub read: Option<Code<FileCall>>,
    pub write: Option<Code<FileCall>>,
    pub seek: Option<Code<FileCall>>,
    pub pread: Option<Code<FileCall>>,
    pub pwrite: Option<Code<FileCall>>,
}

/// The templates of what many routines have in common, beside those that classes declare.
#[expect(clippy::disallowed_methods, reason = "for tests")]
pub fn common_templates() -> alloc::vec::Vec<synth::Template> {
    routine::templates().collect()
}
