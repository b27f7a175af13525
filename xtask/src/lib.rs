//! What the project asks of its own files: the tests beside this crate read sources and documents and compare them.
//!
//! ```text
//!   cargo test -p xtask                 check
//!   cargo run -p xtask -- calls         write docs/calls.md anew from the tables of calls
//!   cargo run -p xtask -- ratchet       write xtask/ratchet.txt anew
//!   cargo run -p xtask -- shape         crates: files, lines, the largest circle of files, unsafe, clones, pub
//! ```
#![forbid(unsafe_code)]

pub mod calls;
pub mod ratchet;
pub mod shape;
pub mod sources;
