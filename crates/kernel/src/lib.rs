//! Layer 4: the kernel's quajects, a folder each. One kernel, two machines: nothing here knows
//! which machine it runs on.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests may take what they like")
)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod automaton;
pub mod call;
pub mod channel;
pub mod charge;
mod classes;
pub mod counter;
pub mod facts;
pub mod file;
pub mod futex;
pub mod gauge;
pub mod interrupt;
pub mod link;
pub mod monitor;
pub mod net;
pub mod pipe;
pub mod playback;
#[cfg(test)]
mod practice;
pub mod pump;
pub mod ready;
pub mod schedule;
pub mod screen;
pub mod server;
pub mod signal;
pub mod sound;
pub mod space;
pub mod stream;
pub mod switch;
pub mod symtab;
pub mod thread;
pub mod trace;
pub mod tty;

pub use call::FileCall;
pub use classes::classes;
