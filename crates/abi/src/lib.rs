//! Layer 0: the numbers and records that programs, the kernel and the host tool agree on.
//!
//! Nothing here decides anything. Every record is `repr(C)`, names its Linux type, turns into bytes
//! and back without a cast, and is compared with the host's own headers by `tests/headers.rs`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod core_file;
mod errno;
mod errno_name;
pub mod file;
pub mod frame;
pub mod memory;
mod names;
pub mod nr;
pub mod poll;
pub mod process;
pub mod ptrace;
mod record;
pub mod siginfo;
pub mod signal;
pub mod socket;
pub mod sound;
pub mod time;
pub mod tty;

pub use errno::Errno;
pub use names::Names;
pub use record::{Field, FieldPlace};
