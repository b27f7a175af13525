//! Layer 5: the UNIX emulator (S-117). It gives unmodified Linux x86-64 programs the calls, files
//! and errors they expect, and it is the only crate that turns an error into an errno.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod exec;
pub mod signal;
