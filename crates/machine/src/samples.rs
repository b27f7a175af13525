//! A clock of samples (S-78, S-82).

use crate::{Entry, Fragment, SampleEntry, Slot};

/// A periodic interrupt of its own that goes straight to synthesized code, for devices with samples (S-78, S-82). The
/// interrupt is one jump through `slot`; who is bound there ends with `end`.
pub struct SampleClock {
    /// Holds the handler's entry; an aligned store replaces the handler while it is used. A handler may store another entry
    /// itself, the next interrupt's.
    pub slot: &'static Slot<SampleEntry>,
    /// Tells the interrupt controller and goes back to what was interrupted. Needs no register.
    pub end: Fragment,
    /// A store of the second to the first has `Upcalls::chained` called when the interrupt, and the kernel if it was in the
    /// midst of something, are done (S-80).
    pub chain: (u64, u32),
    /// A handler that saves what compiled code may use and calls `Upcalls::sample`.
    pub compiled: Entry<SampleEntry>,
}

/// A clock of samples, on a machine that has one.
pub trait Samples: Send + Sync {
    /// The sample clock, if the machine has one.
    fn sample_clock(&self) -> Option<SampleClock> {
        None
    }
    /// Stores a handler's entry into the slot.
    fn bind_sample_handler(&self, entry: Entry<SampleEntry>) {
        let _ = entry;
    }
    /// Starts the sample clock at about `hertz` interrupts a second, or stops it at 0; returns how many thousandths of an
    /// interrupt really come in a second. 0: this machine's clock only comes when it is raised.
    fn run_sample_clock(&self, hertz: u32) -> u64 {
        let _ = hertz;
        0
    }
}
