//! What both machines keep of one processor for synthesized code and the entries.

use core::sync::atomic::AtomicU64;

/// The words of a processor that do not depend on the machine; each machine's own record begins with them. Synthesized
/// code has their addresses folded in.
#[repr(C)]
pub struct Slots {
    /// Slot: the running thread's synthesized dispatch; a call jumps through it.
    pub dispatch: u64,
    /// The area of the thread whose vector state is in the registers.
    pub vector_owner: u64,
    /// XCR0: which vector state is managed.
    pub vector_mask: u64,
    /// Bytes of an XSAVE image.
    pub vector_bytes: usize,
    /// Counter value from which on the timer's interrupt is the kernel's business; until then it means that the quantum
    /// is over.
    pub preempt_until: u64,
    /// Switches made by the timer's interrupt alone.
    pub preemptions: AtomicU64,
    /// Counter value since when the running thread's time is not on its account.
    pub since: u64,
    /// Counts operations on streams; `gauge_seen` of them are on some thread's account.
    pub gauge: AtomicU64,
    pub gauge_seen: u64,
    /// See [`crate::quantum`]: what an operation in a tick weighs, and the ticks over which a rate is taken.
    pub gauge_weight: u64,
    pub gauge_period: u64,
}

impl Slots {
    pub const fn new() -> Slots {
        Slots {
            dispatch: 0,
            vector_owner: 0,
            vector_mask: 0,
            vector_bytes: 0,
            preempt_until: 0,
            preemptions: AtomicU64::new(0),
            since: 0,
            gauge: AtomicU64::new(0),
            gauge_seen: 0,
            gauge_weight: 0,
            gauge_period: 0,
        }
    }
}

impl Default for Slots {
    fn default() -> Slots {
        Slots::new()
    }
}
