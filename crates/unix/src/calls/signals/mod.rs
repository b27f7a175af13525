//! Sending, blocking and handling signals.
//!
//! ```text
//!   actions.rs      rt_sigaction, masks, sigaltstack, rt_sigreturn, pause
//!   kill.rs         the calls that send
//!   timed.rs        rt_sigtimedwait
//!   descriptor.rs   signalfd
//!   send.rs         into a queue, waking who must look
//!   deliver.rs      before a thread goes back to its program; faults
//!   crash.rs        what the host tool is told of a program that crashes
//!   routines.rs     when the way back from handlers becomes code
//!   stop.rs         stopping and continuing
//! ```

mod actions;
mod crash;
pub(crate) mod deliver;
mod descriptor;
pub mod dump;
pub(crate) mod kill;
mod routines;
pub(crate) mod send;
mod stop;
pub(super) mod table;
mod timed;
