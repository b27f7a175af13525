//! Frames and entries for tests, which have neither memory nor code behind them.
#![allow(unsafe_code, reason = "numbers that nobody follows")]

use core::ops::Range;

use machine::{Entry, Frames};

/// Frames of a test's own memory, which is a vector.
pub fn frames(range: Range<u32>) -> Frames {
    // SAFETY: each access is checked against the vector's length.
    unsafe { Frames::new(range) }
}

/// An entry to be told from others.
pub fn entry<C>(address: u64) -> Entry<C> {
    // SAFETY: nobody enters it.
    unsafe { Entry::new(address) }
}
