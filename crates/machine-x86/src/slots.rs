//! What both machines keep of one processor for synthesized code and the entries.

use core::ptr::null_mut;
use core::sync::atomic::AtomicU64;

use machine::{ScheduleWords, WaitWords};

use crate::thread::{CALLS, TteRecord};
use crate::vector::LEGACY;

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
    /// What of it lies above SSE and is not saved at every entry of the kernel.
    pub vector_wide: u64,
    /// Bytes of an XSAVE image.
    pub vector_bytes: usize,
    /// Not 0 on the way from a thread that sleeps by code to another one: vector registers are live, not saved.
    pub vectors_live: u64,
    pub words: ScheduleWords,
    /// The thread of the ready ring to which the idle thread leads; null: the ring is empty.
    pub first: *mut TteRecord,
    pub idle: *mut TteRecord,
    /// Counter value since when the running thread's time is not on its account.
    pub since: u64,
    /// Counts operations on streams; `gauge_seen` of them are on some thread's account.
    pub gauge: AtomicU64,
    pub gauge_seen: u64,
    /// See [`crate::quantum`]: what an operation in a tick weighs, and the ticks over which a rate is taken.
    pub gauge_weight: u64,
    pub gauge_period: u64,
    /// The queue of those who were answered and have not run yet; nobody looks at it.
    pub answered: WaitWords,
    /// Routines of calls that are the same for all threads, by call number.
    pub common_calls: [AtomicU64; CALLS],
}

machine::relies_on_one_processor!(
    "routines and the code of threads have the addresses of one processor's words folded in"
);

impl Slots {
    pub const fn new() -> Slots {
        Slots {
            dispatch: 0,
            vector_owner: 0,
            vector_mask: 0,
            vector_wide: 0,
            vector_bytes: 0,
            vectors_live: 0,
            words: ScheduleWords::new(),
            first: null_mut(),
            idle: null_mut(),
            since: 0,
            gauge: AtomicU64::new(0),
            gauge_seen: 0,
            gauge_weight: 0,
            gauge_period: 0,
            answered: WaitWords::new(),
            common_calls: [const { AtomicU64::new(0) }; CALLS],
        }
    }

    /// The kernel manages the vector state `mask`, whose image has so many bytes.
    pub fn manage_vectors(&mut self, mask: u64, bytes: usize) {
        (self.vector_mask, self.vector_wide, self.vector_bytes) = (mask, mask & !LEGACY, bytes);
    }
}

impl Default for Slots {
    fn default() -> Slots {
        Slots::new()
    }
}
