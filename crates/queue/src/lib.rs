//! Layer 0: queues without locks, as in "Threads and Input/Output in the Synthesis Kernel" (SOSP'89, section 3).
//!
//! ```text
//!                        one consumer          many consumers
//!   one producer         spsc  (S-38)          spmc  (S-40)
//!   many producers       mpsc  (S-39)          mpmc  (S-41)
//!                        multi (S-42): many items inserted as a whole
//!   one thread           dedicated (S-36): no synchronization at all
//! ```
//!
//! Each module has one constructor, `pair(capacity)`, that gives the two ends. An end that only one thread may use
//! cannot be cloned and takes `&mut self`: "single producer" is a type, not a promise. The many-ended ones clone.
//!
//! No operation waits. A full queue gives the item back, an empty one says so; what follows from that is put around a
//! queue from outside: [`signalling`] calls back at full and empty (S-35), [`waiting`] sleeps (S-34). [`buffered`]
//! fills one element by several inserts (S-43), [`procedures`] queues procedures (S-44), [`serial`] lets the first caller
//! work for the others, [`stack`] and [`list`] are the other two structures that kernels need (S-49).
//!
//! Indices are 64 bits wide and only grow: an index names an item for ever, so no ABA. Capacities are powers of two.
#![cfg_attr(not(any(loom, test)), no_std)]

extern crate alloc;

pub mod buffered;
pub mod dedicated;
pub mod ends;
pub mod list;
pub mod mpmc;
pub mod mpsc;
pub mod multi;
pub mod procedures;
pub mod serial;
pub mod signalling;
pub mod spmc;
pub mod spsc;
pub mod stack;
pub mod waiting;

mod ring;
mod slots;
mod sync;

pub use ends::{Full, Get, Put};
