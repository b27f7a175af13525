//! Layer 3: quajects (S-25): what they are, who makes them, who connects them.
//!
//! A quaject is data and the procedures that know its addresses. [`quaject!`] declares one; the two makers of the papers
//! (SOSP'89 2.3) are two modules whose public functions are the stages:
//!
//! ```text
//!   create:     allocate ─► factor ─► optimize ─► publish          a quaject and its callentries
//!   interface:  combine  ─► factor ─► optimize ─► link             two quajects, or a quaject and a thread
//! ```
//! What a closed quaject leaves behind waits on its class's [`Inactive`] list for the next one (R4). A callentry is typed by
//! its register contract, so a slot takes no code of another one: that does not compile, or is a [`Mismatch`].
//!
//! Must never know what a quaject is for, nor a call by its number, nor a machine by its name.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod choice;
mod class;
mod connection;
mod contract;
pub mod create;
mod declare;
mod fragments;
mod inactive;
pub mod interface;
mod slot;

pub use choice::{Way, cheapest};
pub use class::{Callback, Callentry, Class, Field, Gauges};
pub use connection::{Activity, CONNECTIONS, Connection, End, Number, Offer};
pub use contract::{Contract, List, Makers, Routine, Straight, Watch};
pub use create::{Factored, Made, Quaject, Whole};
pub use inactive::Inactive;
pub use machine::{Entry, Slot};
pub use slot::{AnyCode, Mismatch};

#[doc(hidden)]
pub mod parts {
    //! What the expansion of [`quaject!`](crate::quaject) names.
    pub use crate::class::Declared;
    pub use codestore::Code;
    pub use core::mem::{offset_of, size_of};
    pub use synth::{Draft, MadeOf, Template};

    /// From now on it is the stage factor.
    #[inline(always)]
    pub fn factoring() -> impl Sized {
        machine::stages::enter(machine::stages::Stage::Factor)
    }
}
