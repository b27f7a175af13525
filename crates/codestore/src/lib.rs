//! Layer 2: the one door from data to code.
//!
//! A [`Draft`] goes in by value and comes out as [`Code`]: executable, never writable again (rule
//! R2). The store keeps two mappings of the same frames, one executable and one writable, and only
//! this crate knows the second. Each published routine has a birth certificate ([`Birth`]). Dropping
//! the last `Code` retires the routine: its bytes become `int3`, its place is reused.
//!
//! Publication is the caller's store of `Code::entry` into a slot (rule R3). Before that the store lets
//! the processor serialize (S-21): x86-64 keeps instruction fetch coherent with stores to the address that
//! is fetched, but these bytes were written through the other mapping (SDM vol. 3A, 9.1.3).
#![no_std]

extern crate alloc;

mod birth;
mod births;
mod places;
mod run;
mod store;

pub use birth::{Birth, Maker};
pub use run::{Asked, Ending, WordCall};
pub use store::{Code, CodeMemory, CodeStore, PublishError, Watch, Witness};
