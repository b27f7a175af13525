//! The pure part of UNIX signals: what Linux on x86-64 decides, without waking or stopping anybody.
//!
//! ```text
//!   kill, fault, timer ─ generate ─► Generated: queues to flush, keep it or not
//!                       └ Pending::post ─► a queue of the thread or of its process
//!                       └ choose_thread ─► Wake: who must look at its queues
//!
//!   before_user ─ next_delivery ─► Handler ─ restart ─ frame::build ─ ThreadMask::enter ─► the program
//!               │                ├ Terminate, Stop
//!               └                └ None ─ restart ─ ThreadMask::put_back
//!   rt_sigreturn ─ frame::restore ─► registers, mask, vector state, alternate stack
//! ```
//!
//! Wanted differences from Linux: process 1 is not protected, and a blocked
//! signal is never delivered ([`Pending::take_synchronous`]).

pub mod actions;
pub mod altstack;
pub mod child;
pub mod deliver;
pub mod fault;
pub mod frame;
pub mod generate;
pub mod mask;
pub mod pending;
pub mod restart;
pub mod set;

#[cfg(test)]
mod tests;

pub use actions::Actions;
pub use altstack::AltStack;
pub use deliver::{Delivery, HandlerCall, next_delivery};
pub use fault::{FaultDetail, TrapRecord, fault_signal};
pub use frame::{Frame, FrameRequest, Restored, VectorFormat, VectorRestore};
pub use generate::{Fate, Generated, Target, Wake, choose_thread, force, generate};
pub use mask::ThreadMask;
pub use pending::{Pending, Posted};
pub use restart::{RestartKind, restart};
pub use set::SignalSet;
