//! What something is ready for, as code: a procedure for each pipe end or event counter that is asked often, and the calls that ask.
//!
//! ```text
//!   poll of one ─► call.poll ─► slot of the descriptor ─► ready.pipe.read ─┐
//!                     ▲ bits ──────────────────────────────────────────────┘
//!   epoll_wait ─► by_descriptor ─► epoll.wait ─► slot ─► epoll.look ─► ready.pipe.read, ready.counter, ... one after the other
//! ```
//! An error, or an end that has gone, is rare and Rust's: a procedure then answers what no call takes.

pub mod counter;
pub mod instance;
pub mod pipe;
pub mod poll;

use machine::{Keeps, ReadyEntry};
use quaject::{Contract, Straight};

/// Register contract of a procedure that says what something is ready for: entered by `call` on a thread's kernel stack. Out: eax = bits
/// of `poll`, with POLLERR or POLLHUP (or both) where Rust has to look. All registers but rax and flags are kept.
pub enum Readiness {}

impl Contract for Readiness {
    const NAME: &'static str = "readiness";
    const PEEPHOLES: bool = false;
    type Routine = Straight;
}

impl Keeps<ReadyEntry> for Readiness {}

/// POLLERR and POLLHUP: the answer is Rust's.
const RUST_LOOKS: u32 = 0x18;
