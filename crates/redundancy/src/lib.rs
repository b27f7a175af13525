//! Valued redundancy (H. Massalin, C. Pu: *A Brief Overview of the Synthesis Operating System*, section 3.4): objects are
//! replicated by their value. The value of a copy is computed from what it costs (to make it, to keep it, to bring it up to
//! date), from what it is used for (who reads, who writes, how often) and from the goals (mean access time, availability over
//! attempted accesses).
//!
//! The crate decides; it moves nothing. Whoever has memory to share out implements [`Store`] and tells [`Valued`] of reads,
//! writes and crashes. A page cache of one machine is a store with one node.
//!
//! - [`Costs`], [`Goals`]: seconds of each kind of access, and what a failed one counts.
//! - [`Usage`]: reads and writes per second, estimated with a half-life.
//! - [`Formula`]: several formulas of value, in seconds saved per second.
//! - [`Change`]: when a difference of values is worth a change.
//! - [`Keeper`]: the copies of one node, and what should go first.
//! - [`Valued`]: all together.
//! - [`plan`]: the same for rates that are known, all at once.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "mutants")]
extern crate std;

mod change;
mod costs;
mod index;
mod keeper;
pub mod mutant;
pub mod plan;
mod usage;
mod value;
mod valued;

pub use change::Change;
pub use costs::{Costs, Goals};
pub use index::Index;
pub use keeper::{Ghosts, Keeper, Kept, Victim};
pub use usage::{HalfLife, Usage};
pub use value::{Demand, Formula, Standing};
pub use valued::{NodeId, ObjectId, Outages, Settings, Store, Valued};
