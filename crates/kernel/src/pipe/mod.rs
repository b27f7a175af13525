//! The pipe: one queue between writers and readers (SPEC section 2: "a pipe is one queue").
//!
//! ```text
//!     writers ─► head ┌───────────────┐ tail ─► readers       head, tail: bytes ever written, read
//!                     │ ring, 64 KB   │                      head - tail bytes are in the queue
//!                     └───────────────┘
//! ```
//! Invariants: `tail <= head <= tail + capacity`; `write_limit` is the capacity while a reader is open, else 0, so one comparison
//! finds both a full pipe and one that nobody reads. A waiting queue counts its sleepers in a word, which the synthesized
//! routines test: whoever changes the fill of a pipe at which somebody sleeps does it in Rust, and wakes.

mod ends;
mod ring;
mod template;

pub use ends::{Pipe, PipeEnd, Side};
pub use ring::{CAPACITY_DEFAULT, PipeRing, PipeWords};
pub use template::{
    Body, GetOne, OneAtTail, OneThere, PipeCallouts, PipeCode, PlaceToPut, PutMany, PutOne, RoomForMany, RoomForOne,
};

/// Writes of at most this many bytes are not torn (`PIPE_BUF`, POSIX).
pub const ATOMIC_BYTES: usize = 4096;
