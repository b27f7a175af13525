//! Time: the processor's counter, scaled to nanoseconds.

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::Nanos;

/// The counter at time zero.
pub static BASE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per tick, 32.32 fixed point.
pub static SCALE: AtomicU64 = AtomicU64::new(1 << 32);
/// Ticks per nanosecond, the same.
static TICKS: AtomicU64 = AtomicU64::new(1 << 32);

pub fn read_tsc() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Starts the clock at a value of the counter, which counts `hertz` ticks a second.
pub fn start(base: u64, hertz: u64) {
    SCALE.store(((Nanos::PER_SECOND as u128) << 32).div_euclid(hertz.max(1) as u128) as u64, Ordering::Relaxed);
    TICKS.store((((hertz as u128) << 32) / Nanos::PER_SECOND as u128) as u64, Ordering::Relaxed);
    BASE.store(base, Ordering::Relaxed);
}

pub fn now() -> Nanos {
    time_of(read_tsc())
}

/// The time at which the counter was `tsc`.
pub fn time_of(tsc: u64) -> Nanos {
    duration(tsc.wrapping_sub(BASE.load(Ordering::Relaxed)))
}

/// The time that so many ticks of the counter take.
pub fn duration(ticks: u64) -> Nanos {
    Nanos(((ticks as u128 * SCALE.load(Ordering::Relaxed) as u128) >> 32) as u64)
}

/// The counter's value at a time; rounded down.
pub fn counter_at(time: Nanos) -> u64 {
    let ticks = (time.0 as u128 * TICKS.load(Ordering::Relaxed) as u128) >> 32;
    BASE.load(Ordering::Relaxed).saturating_add(ticks.min(u64::MAX as u128) as u64)
}

/// Counter value at time zero, and the scale: what the programs' time page needs.
pub fn parameters() -> (u64, u64) {
    (BASE.load(Ordering::Relaxed), SCALE.load(Ordering::Relaxed))
}
