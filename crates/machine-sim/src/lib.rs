//! Layer 2, for tests: a machine whose clock, interrupts and input come from a seed (STYLE 23: one seed, one run).
//!
//! The kernel and the emulator above it are the real ones. What is simulated is what they stand on: frames are a vector,
//! page tables a map, the program's instructions Rust functions ([`Program`]) that make system calls through a [`User`].
//!
//! ```text
//!   host thread 1 ── idle ───────── parked                one baton: only its holder runs, so that
//!   host thread 2 ── program 0 ──── RUNS ◄── baton        a run is one sequence of steps, and the
//!   host thread 3 ── program 1 ──── parked                same seed makes the same sequence
//! ```
//! Each step of a program is a place where the real machine could take an interrupt, and here the seed decides: time
//! passes, devices have news, the timer goes off, too early too. A kernel that has lost a wake-up ends in an idle thread
//! that nothing will ever wake: [`End::Deadlock`], told with the last events of the trace.

mod baton;
mod channels;
mod entry;
mod lines;
mod machine;
mod memory;
mod program;
mod store;
mod trace;
mod translation;
mod tte;

pub use crate::machine::{Check, Plan, SimMachine};
pub use baton::{End, Outcome};
pub use means::Random;
pub use program::{COMPUTE, PROGRAMS, Program, TEXT, TEXT_BYTES, User, entry};
pub use store::code_store;
