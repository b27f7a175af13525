//! Buffered input and output for ordinary Linux programs, with the papers' fast buffer (S-45, S-112; thesis 3.3.1).
//!
//! A C library's `putchar` asks at each character how the stream is buffered and whether the buffer is full. Here both
//! questions are answered when the stream is opened: [`routines`] writes the stream's own `put`, `get`, `write` and
//! `read`, for its way of buffering, with the addresses of its index and of its buffer's end folded in. The index counts
//! up to zero, so that incrementing it is also the test for the end (figure 3.2).
//!
//! A stream lies in one [`region`] of the low 2 GB, because an instruction can hold a 32-bit address only:
//!
//! ```text
//! +0x00000  code     4 KB   the four routines; written once, then readable and executable only
//! +0x01000  Stream   4 KB   the words that programs and routines share
//! +0x02000  buffer  64 KB   used from its end backwards
//! +0x12000  slack    4 KB   one byte past the end may be read, before the index is looked at
//! ```
//!
//! The regions of standard input, output and error are at [`region::STANDARD`], known to the header, so that the macros
//! of C need no pointer. C programs use `include/synthio.h`; Rust programs use [`Stream`].
//!
//! Streams have no lock, like C's `putchar_unlocked`: a stream belongs to one thread at a time.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod c;
mod region;
mod routines;
mod standard;
mod stream;
mod template;
mod transfer;

pub use ground::Errno;
pub use region::BUFFER_BYTES_MAX;
pub use stream::{Buffering, Direction, OpenError, Stream};
