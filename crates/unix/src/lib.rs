//! The UNIX emulator: what a Linux program sees of the kernel.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod strace;
