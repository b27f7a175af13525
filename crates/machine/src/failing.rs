//! Allocations that fail on purpose, from a seed. Only in images that are built for it (feature `failing`,
//! `bin/*/build.sh --failing`); elsewhere nothing of this is left.
//!
//! There are two kinds of allocation. Those that may fail ask first ([`crate::TryGrow`] and its neighbours): here chance
//! refuses them. All others are served from the kernel's reserve, and are therefore small and few ([`crate::ENTRY_BYTES_MAX`]):
//! here the bytes between two safe points are counted, and one byte too many ends the kernel with a sentence.

/// What happened so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    /// Requests that might fail, and those that did.
    pub asked: u64,
    pub refused: u64,
    /// Most bytes that were taken without asking between two safe points, and in one piece.
    pub entry_bytes: usize,
    pub block_bytes: usize,
}

#[cfg(feature = "failing")]
mod on {
    use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

    use super::Report;
    use crate::{BLOCK_BYTES_MAX, ENTRY_BYTES_MAX};

    static STATE: AtomicU64 = AtomicU64::new(0);
    /// One request of so many fails; 0: none.
    static RATE: AtomicU64 = AtomicU64::new(0);
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    /// Somebody who may be refused asks at this moment.
    static IS_ASKING: AtomicBool = AtomicBool::new(false);
    /// Somebody asks who may not be refused.
    static IS_SURE: AtomicBool = AtomicBool::new(false);
    /// Programs run: what is taken counts.
    static COUNTS: AtomicBool = AtomicBool::new(false);
    static ENTRY: AtomicUsize = AtomicUsize::new(0);
    static ENTRY_MOST: AtomicUsize = AtomicUsize::new(0);
    static BLOCK_MOST: AtomicUsize = AtomicUsize::new(0);

    pub fn arm(seed: u64, rate: u64) {
        // An odd state is never zero, and seeds that are neighbours begin far from each other.
        STATE.store(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, Relaxed);
        RATE.store(rate, Relaxed);
    }

    pub fn report() -> Report {
        Report {
            asked: ASKED.load(Relaxed),
            refused: REFUSED.load(Relaxed),
            entry_bytes: ENTRY_MOST.load(Relaxed),
            block_bytes: BLOCK_MOST.load(Relaxed),
        }
    }

    /// Whether this request is one of those that fail (xorshift64*).
    pub fn refuses() -> bool {
        let rate = RATE.load(Relaxed);
        if rate == 0 || is_sure() {
            return false;
        }
        ASKED.fetch_add(1, Relaxed);
        let mut state = STATE.load(Relaxed);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        STATE.store(state, Relaxed);
        let is_refused = (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).is_multiple_of(rate);
        if is_refused {
            REFUSED.fetch_add(1, Relaxed);
        }
        is_refused
    }

    pub fn asking<T>(request: impl FnOnce() -> T) -> T {
        let before = IS_ASKING.swap(true, Relaxed);
        let result = request();
        IS_ASKING.store(before, Relaxed);
        result
    }

    pub fn surely<R>(request: impl FnOnce() -> R) -> R {
        let before = IS_SURE.swap(true, Relaxed);
        let result = request();
        IS_SURE.store(before, Relaxed);
        result
    }

    pub fn is_sure() -> bool {
        IS_SURE.load(Relaxed)
    }

    pub fn safe_point() {
        COUNTS.store(true, Relaxed);
        ENTRY.store(0, Relaxed);
    }

    pub fn count(bytes: usize) {
        if IS_ASKING.load(Relaxed) || !COUNTS.load(Relaxed) {
            return;
        }
        let entry = ENTRY.fetch_add(bytes, Relaxed) + bytes;
        ENTRY_MOST.fetch_max(entry, Relaxed);
        BLOCK_MOST.fetch_max(bytes, Relaxed);
        if bytes > BLOCK_BYTES_MAX || entry > ENTRY_BYTES_MAX {
            // Once: what tells about it may take memory too.
            COUNTS.store(false, Relaxed);
            panic!("{bytes} bytes without asking, {entry} since the last safe point");
        }
    }
}

#[cfg(feature = "failing")]
pub use on::*;

/// The same where nothing fails on purpose.
#[cfg(not(feature = "failing"))]
mod off {
    /// Whether this request is one of those that fail.
    #[inline(always)]
    pub fn refuses() -> bool {
        false
    }

    /// Does what asks for memory and can be refused.
    #[inline(always)]
    pub fn asking<T>(request: impl FnOnce() -> T) -> T {
        request()
    }

    /// Does what asks and is not refused.
    #[inline(always)]
    pub fn surely<R>(request: impl FnOnce() -> R) -> R {
        request()
    }

    /// Whether it is being done.
    #[inline(always)]
    pub fn is_sure() -> bool {
        false
    }

    /// From here on another entry counts: a program came in, or a thread goes on that stood.
    #[inline(always)]
    pub fn safe_point() {}

    /// A block is taken from the heap.
    #[inline(always)]
    pub fn count(_bytes: usize) {}
}

#[cfg(not(feature = "failing"))]
pub use off::*;
