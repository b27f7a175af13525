//! The quantum of a thread follows its need to execute: its rate of I/O (S-70, S-71, S-75).
//!
//! ```text
//!   gauge ─► operations / time run ─► wanted quantum ─► (7 q + wanted) / 8 ─► quantum
//! ```
//! The rate is measured, an interval is set: of the software locked loops (S-74) the kind that measures a frequency and
//! adjusts an interval. Nothing leads back from the quantum to the rate, so the law and the filter of `lockedloop` are all it needs.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::sync::atomic::Ordering;

use lockedloop::{LowPass, Straight};
use machine::{GAUGE_FULL, GAUGE_PERIOD_NS, Nanos, QUANTUM_LEAST_NS, QUANTUM_MOST_NS};

use crate::clock;
use crate::slots::Slots;
use crate::thread::TteRecord;

/// Fills in what depends on the counter's speed. The clock has been started.
pub fn start(slots: &mut Slots) {
    let ticks = |time: Nanos| clock::counter_at(time) - clock::counter_at(Nanos(0));
    slots.gauge_weight = Earned::weight(GAUGE_FULL, ticks(Nanos(1_000_000)));
    slots.gauge_period = ticks(Nanos(GAUGE_PERIOD_NS));
}

/// The straight line over the rate, and the filter that leads the quantum there.
type Earned = Straight<QUANTUM_LEAST_NS, QUANTUM_MOST_NS>;
type Filter = LowPass<8>;

/// Puts what the gauge has counted on the running thread's account, and adjusts its quantum if it has run long enough.
/// The pc's timer does the same by itself.
///
/// # Safety
/// Both are the running thread's, whose time is on its account, and nobody else changes them now.
pub unsafe fn take_gauge(tte: *mut TteRecord, cpu: *mut Slots) {
    // SAFETY: as the caller says.
    unsafe {
        let count = (*cpu).gauge.load(Ordering::Relaxed);
        (*tte).moved = (*tte).moved.wrapping_add(count.wrapping_sub((*cpu).gauge_seen));
        (*cpu).gauge_seen = count;
        let ticks = (*tte).ran.wrapping_sub((*tte).adjusted_at);
        if ticks >= (*cpu).gauge_period {
            let wanted = Earned::earned((*tte).moved, ticks, (*cpu).gauge_weight);
            (*tte).quantum = Filter::step((*tte).quantum, wanted);
            (*tte).moved = 0;
            (*tte).adjusted_at = (*tte).ran;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 1 GHz, as under an instruction count.
    const TICKS: u64 = 1_000_000;

    fn weight(ticks_per_ms: u64) -> u64 {
        Earned::weight(GAUGE_FULL, ticks_per_ms)
    }

    fn wanted(operations: u64, ticks: u64, weight: u64) -> u64 {
        Earned::earned(operations, ticks, weight)
    }

    fn after(turns: u32, mut quantum: u64, operations: u64) -> u64 {
        for _ in 0..turns {
            quantum = Filter::step(quantum, wanted(operations * quantum / TICKS, quantum, weight(TICKS)));
        }
        quantum
    }

    #[test]
    fn the_quantum_is_a_straight_line_over_the_rate_up_to_the_most() {
        let of = |rate| wanted(rate, TICKS, weight(TICKS));
        assert_eq!(of(0), QUANTUM_LEAST_NS);
        assert_eq!(of(GAUGE_FULL / 2), (QUANTUM_LEAST_NS + QUANTUM_MOST_NS) / 2);
        assert_eq!(of(GAUGE_FULL), QUANTUM_MOST_NS);
        assert_eq!(of(1000 * GAUGE_FULL), QUANTUM_MOST_NS);
    }

    #[test]
    fn the_counters_speed_does_not_matter() {
        assert_eq!(wanted(10, 3 * TICKS, weight(3 * TICKS)), wanted(10, TICKS, weight(TICKS)));
    }

    #[test]
    fn the_filter_settles_and_does_not_swing() {
        assert!(after(16, QUANTUM_MOST_NS, 0) < QUANTUM_LEAST_NS * 3 / 2);
        assert!(after(40, QUANTUM_MOST_NS, 0) < QUANTUM_LEAST_NS * 11 / 10);
        let (mut before, mut now) = (QUANTUM_LEAST_NS, after(1, QUANTUM_LEAST_NS, 1000));
        while now != before {
            assert!(now > before && now <= QUANTUM_MOST_NS);
            (before, now) = (now, after(1, now, 1000));
        }
        assert!(now > QUANTUM_MOST_NS - 8);
    }

    #[test]
    fn no_count_however_large_leaves_the_range() {
        for (operations, ticks) in [(u64::MAX, 1), (1 << 40, 0), (3, 1)] {
            let quantum = wanted(operations, ticks, weight(TICKS));
            assert!((QUANTUM_LEAST_NS..=QUANTUM_MOST_NS).contains(&quantum));
        }
    }
}
