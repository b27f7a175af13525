//! What the libraries for programs stand on: the system's errors, memory mappings, memory for code and, without Rust's `std`, the C
//! library's allocator and an end for bugs.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]
#![no_std]

#[cfg(feature = "c")]
mod freestanding;
mod memory;
mod twin;

use libc::c_int;

pub use memory::{Mapping, discard, map, protect, unmap};
pub use twin::{Twin, serialize};

/// The number of a system's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

impl Errno {
    /// That of the calling thread's last failed call.
    pub fn last() -> Errno {
        // SAFETY: the calling thread's errno.
        Errno(unsafe { *libc::__errno_location() })
    }

    pub fn set(self) {
        // SAFETY: the calling thread's errno.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Writes straight to descriptor 2, whatever state the program's streams are in.
pub fn say(text: &str) {
    // SAFETY: the text is readable.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}
