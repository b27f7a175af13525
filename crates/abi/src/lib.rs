//! Layer 0: the numbers and records that programs, the kernel and the host tool agree on.
//!
//! Nothing here computes. Every record is `repr(C)` and states where its layout is fixed.
#![no_std]
#![forbid(unsafe_code)]

mod errno;

pub use errno::Errno;
