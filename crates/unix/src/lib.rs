//! Layer 5: the UNIX emulator (S-117). It gives unmodified Linux x86-64 programs the calls, files
//! and errors they expect, and it is the only crate that turns an error into an errno.
//!
//! ```text
//!   emulator.rs   the emulator: one value that knows everything
//!   entrance.rs   what the machine calls
//!   boot.rs       from the boot archive to the first program
//!   call.rs       one call under way: its caller and the caller's memory
//!   calls/        the calls, a file per family, and the table of them
//!   task/         processes and their threads
//!   devices.rs    the table of devices
//!   files/        descriptors, open files, what they are open on
//!   proc/         /proc and /sys
//!   exec/         loading programs (pure)
//!   signal/       signals (pure)
//!   families.rs   what families of calls keep for the whole machine
//!   tunables.rs   limits that can be changed while the machine runs
//!   strace/       showing calls (pure)
//! ```
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests may take what they like")
)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod boot;
mod border;
mod call;
mod calls;
mod core_names;
mod devices;
mod emulator;
mod entrance;
pub mod exec;
mod families;
pub mod files;
mod inspect;
mod limits;
mod proc;
pub mod signal;
mod task;
mod tunables;

pub use emulator::Unix;
