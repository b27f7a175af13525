//! The synchronous (partial) switch (S-62): a thread that leaves by its own will has nothing but a stack pointer.
//!
//! The instructions stand in the Rust code that leaves, so the compiler itself saves what is live there, and only that,
//! as it does around every call. A thread that the timer takes the processor from is left by the full switch, which is
//! the machine's.
#![allow(unsafe_code, reason = "the compiler has to see which registers a switch loses")]

use core::arch::asm;

use crate::Held;

/// The entry of the running thread's `sw_out`.
#[derive(Clone, Copy, Debug)]
pub struct SwitchOut {
    entry: u64,
    /// What the simulated machine does instead. The other machines' builds have no such field.
    #[cfg(feature = "simulated")]
    procedure: Option<fn()>,
}

impl SwitchOut {
    /// # Safety
    /// `entry` is code that is entered by `call`, stores the stack pointer and comes back with it by `ret`, at any time; all
    /// other registers are lost. It belongs to the thread that calls [`SwitchOut::leave`].
    pub unsafe fn new(entry: u64) -> SwitchOut {
        SwitchOut {
            entry,
            #[cfg(feature = "simulated")]
            procedure: None,
        }
    }

    /// A switch that is a Rust function, through which a stack can be unwound.
    #[cfg(feature = "simulated")]
    pub fn procedure(procedure: fn()) -> SwitchOut {
        SwitchOut { entry: 0, procedure: Some(procedure) }
    }

    /// Gives the lock up and leaves the running thread for its successor; returns, and has the lock again, when somebody switches
    /// back.
    #[inline(always)]
    #[track_caller]
    pub fn leave(self, held: Held<'_>) {
        // SAFETY: the switch leaves for another thread and touches the processor's words alone.
        unsafe { held.given_up(|| self.switch()) }
    }

    #[inline(always)]
    fn switch(self) {
        #[cfg(feature = "simulated")]
        if let Some(procedure) = self.procedure {
            return procedure();
        }
        // SAFETY: 1. Every register that the compiler may use is named as lost, but rbx and rbp, which it keeps for itself:
        // these two are saved here. 2. The entry keeps the stack.
        unsafe {
            asm!(
                "push rbx",
                "push rbp",
                "call rax",
                "pop rbp",
                "pop rbx",
                inout("rax") self.entry => _,
                out("r12") _,
                out("r13") _,
                out("r14") _,
                out("r15") _,
                clobber_abi("C"),
            );
        }
    }
}
