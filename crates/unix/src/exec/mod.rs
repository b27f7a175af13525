//! The pure part of `execve`: from the bytes of a file to what must stand in a fresh quaspace.
//!
//! ```text
//!   file ─ script::parse ─► another file, longer argv   (at most limits::REWRITES_MAX times)
//!        └ elf::parse ────► Image ─┐
//!   interpreter ─ elf::parse ─► Image ─┴─ Plan::new ─► Plan ─ load ─► Mapper (the quaspace)
//!   argv, envp, facts ─ stack::build ─► bytes to copy below the stack's top, and the first RSP
//! ```
//!
//! Linux has a point of no return in the middle: what `script::parse`, `elf::parse` and the argument
//! budget find, `execve` returns to the old program. What [`Plan::new`] and [`load`] find comes
//! after the old program is gone: the process dies by SIGSEGV. The two error types keep that line.

pub mod elf;
pub mod limits;
pub mod plan;
pub mod script;
pub mod stack;

#[cfg(test)]
mod tests;

pub use elf::{ElfError, FileBytes, Image, Kind, Segment};
pub use plan::{Mapper, Plan, PlanError, Source, load};
pub use stack::{ArgumentBudget, InitialStack, ProgramFacts};
