//! Signals as code: one that a thread sends to itself and handles, and the way back from a handler.
//!
//! A thread that comes back from handlers often gets its own `rt_sigreturn`: the frame is read where it lies, the registers are loaded
//! from it, vector registers too, and nothing is copied. It takes the frame as the kernel wrote it, whatever the handler has changed of
//! registers, mask and vector state; a frame of another shape, another alternate stack, a signal that is let through now: all that is
//! Rust's, which begins anew with the program's registers.

mod raise;
mod template;

use codestore::Code;
use machine::Tte;
use quaject::Makers;

pub use raise::{InitialState, RaiseCallouts, RaiseCode, Raises};
pub use template::{ReturnCallouts, ReturnCode, Returns};

use crate::call::CallCode;

/// Each returns `None` where the machine cannot give all registers back by code, or without room.
impl Raises {
    /// `kill` of one thread.
    pub fn kill(&self, makers: Makers, tte: &dyn Tte) -> Option<Code<CallCode>> {
        let callouts = RaiseCallouts { tte: Some(tte), leave: Some(makers.machine.leave_whole()?) };
        RaiseCode::kill(self, makers, &callouts).create(makers)
    }

    /// Its `tgkill`.
    pub fn tgkill(&self, makers: Makers, tte: &dyn Tte) -> Option<Code<CallCode>> {
        let callouts = RaiseCallouts { tte: Some(tte), leave: Some(makers.machine.leave_whole()?) };
        RaiseCode::tgkill(self, makers, &callouts).create(makers)
    }
}

impl Returns {
    /// `rt_sigreturn` of one thread. `None` where the machine cannot give all registers back by code, or without room.
    pub fn code(&self, makers: Makers, tte: &dyn Tte) -> Option<Code<CallCode>> {
        let leave = makers.machine.leave_whole()?;
        let callouts = ReturnCallouts { tte: Some(tte), leave: Some(leave) };
        ReturnCode::sigreturn(self, makers, &callouts).create(makers)
    }
}
