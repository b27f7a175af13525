//! Where the kernel is entered, and its lock taken.

use machine::Entered;

use crate::{SimMachine, baton};

impl SimMachine {
    /// The test boots the kernel, and gives what it gets to `run`.
    pub fn enter(&self) -> Entered {
        machine::arm(baton::this_processor);
        baton::join();
        // SAFETY: no simulated thread runs; `run` gives the lock back.
        unsafe { Entered::new() }
    }
}

/// A simulated thread's host thread enters the kernel, which it has the baton for.
pub(crate) fn entered() -> Entered {
    // SAFETY: callers are in a program, and drop it before that goes on.
    unsafe { Entered::new() }
}
