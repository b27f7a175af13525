//! Time, and what a handler of the timer is made of.

use crate::{Entry, Fragment, Nanos, TimerEntry};

/// What a handler of the timer's interrupt is made of (S-78). It may run in the midst of the kernel's Rust.
pub struct TimerCode {
    /// Reads the clock. Out: rax = nanoseconds since boot. Clobbers rdx.
    pub now: Fragment,
    /// Has the timer go off in ecx nanoseconds, at least 1.
    pub arm: Fragment,
    /// Lets interrupts of higher levels in.
    pub open: Fragment,
    /// Keeps all interrupts out.
    pub close: Fragment,
    /// Ends the interrupt. Needs no register.
    pub end: Fragment,
    /// Where the interrupt goes that is not the handler's, with registers and stack as they were: to a switch or to
    /// `Upcalls::timer`; if it came into the kernel's Rust, as soon as that is left.
    pub kernel: Entry<TimerEntry>,
}

/// Time, and the one timer.
pub trait Clock: Send + Sync {
    /// Time since boot, never going back.
    fn now(&self) -> Nanos;
    /// The time at which the processor's counter had this value.
    fn time_of_counter(&self, counter: u64) -> Nanos;
    /// Asks for `Upcalls::timer` at `at`, and at no other time.
    fn set_alarm(&self, at: Nanos);
    /// Puts the time since the last call, or since the machine pre-empted, on the account of the running thread
    /// (`Tte::ran`). Returns the time.
    fn charge(&self) -> Nanos {
        self.now()
    }
    /// What a handler of the timer's interrupt is made of, if the machine has such.
    fn timer_code(&self) -> Option<TimerCode> {
        None
    }
    /// Has the timer's interrupt go to `plain`, and to `nesting` while interrupts nest in the kernel.
    fn bind_timer(&self, plain: Entry<TimerEntry>, nesting: Entry<TimerEntry>) {
        let _ = (plain, nesting);
    }
}
