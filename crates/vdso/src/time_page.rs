//! The record from which the vDSO tells the time. The same source is compiled into the vDSO.

/// Bytes of the page that holds a [`TimePage`] at its start.
pub const TIME_PAGE_BYTES: usize = 4096;

/// In [`TimePage::features`]: `RDTSCP` is there and IA32_TSC_AUX holds the processor's number in
/// bits 0..12 and its node in the bits above, on every processor. Without it `getcpu` is a call.
pub const PROCESSOR_IN_TSC_AUX: u32 = 1;

/// How to turn the time stamp counter into nanoseconds.
///
/// `monotonic = mono_base_ns + ((tsc - tsc_base) * mult >> 32)`,
/// `realtime = monotonic + realtime_offset_ns`. With `mult` 0 the counter cannot be trusted and
/// every function of the vDSO makes the kernel call instead; so a page of zeros is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct TimePage {
    /// Odd while the kernel writes; a reader starts again when it was odd or has changed.
    pub seq: u32,
    pub features: u32,
    /// Counter at `mono_base_ns`. A counter below it (another processor's) counts as equal.
    pub tsc_base: u64,
    /// Nanoseconds per tick, in units of 2^-32.
    pub mult: u64,
    /// CLOCK_MONOTONIC at `tsc_base`, nanoseconds.
    pub mono_base_ns: u64,
    /// What to add for CLOCK_REALTIME, nanoseconds.
    pub realtime_offset_ns: u64,
}

impl TimePage {
    /// The multiplier for a counter of `hertz` ticks per second; 0 when that is 0.
    pub const fn mult_of(hertz: u64) -> u64 {
        match hertz {
            0 => 0,
            _ => ((1_000_000_000u128 << 32) / hertz as u128) as u64,
        }
    }

    /// Nanoseconds on CLOCK_MONOTONIC at `tsc`: what the vDSO computes, for kernel calls that must
    /// agree with it to the nanosecond.
    pub const fn monotonic_ns(&self, tsc: u64) -> u64 {
        let ticks = tsc.saturating_sub(self.tsc_base);
        self.mono_base_ns.wrapping_add(((ticks as u128 * self.mult as u128) >> 32) as u64)
    }

    /// Writes this record over the one whose sequence number was `self.seq` (even), as pairs of
    /// byte offset and value, in an order that a reader on another processor can follow; `store`
    /// must not reorder. Returns the new sequence number.
    pub fn publish(&self, mut store: impl FnMut(usize, u64)) -> u32 {
        let first_word = |seq: u32| seq as u64 | (self.features as u64) << 32;
        store(0, first_word(self.seq.wrapping_add(1)));
        store(core::mem::offset_of!(TimePage, tsc_base), self.tsc_base);
        store(core::mem::offset_of!(TimePage, mult), self.mult);
        store(core::mem::offset_of!(TimePage, mono_base_ns), self.mono_base_ns);
        store(core::mem::offset_of!(TimePage, realtime_offset_ns), self.realtime_offset_ns);
        let next = self.seq.wrapping_add(2);
        store(0, first_word(next));
        next
    }
}
