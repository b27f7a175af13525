//! 9P2000.L from the client's side: messages as bytes, and what a server may answer. A server is not believed.
//!
//! ```text
//!   Client::walk … ── Letter: a message on a sheet ── Sheet::exchange ── the server
//!                     Answer: kind, tag and every length checked ◄───────────┘
//! ```
//! The words are those of Linux's protocol (diod's protocol.md): numbers are little-endian, a text is its length in two bytes and its
//! bytes, errors are Linux's numbers. Must never wait by itself, allocate, nor know what carries the bytes: a [`Sheet`] does all that.
#![no_std]
#![forbid(unsafe_code)]

mod client;
mod letter;
mod words;

pub use client::{Client, Session};
pub use letter::{Failure, Sheet, Wire};
pub use words::{Change, Entry, Facts, Fid, LockKind, LockRecord, NO_FID, NO_TAG, Qid, Space, TimeWish, Walked, open};
