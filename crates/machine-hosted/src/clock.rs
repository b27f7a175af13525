//! Time: the processor's counter, scaled to nanoseconds.

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::Nanos;

use crate::host;

static BASE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per tick, 32.32 fixed point.
static SCALE: AtomicU64 = AtomicU64::new(1 << 32);

fn read_tsc() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Starts the clock now. `hertz` 0: measured against the host's clock.
pub fn start(hertz: u64) {
    let hertz = if hertz == 0 { measure() } else { hertz };
    SCALE.store(((Nanos::PER_SECOND as u128) << 32).div_euclid(hertz.max(1) as u128) as u64, Ordering::Relaxed);
    BASE.store(read_tsc(), Ordering::Relaxed);
}

fn measure() -> u64 {
    const WINDOW_NS: u64 = 5_000_000;
    let (start, ticks) = (host::monotonic_nanos(), read_tsc());
    while host::monotonic_nanos() - start < WINDOW_NS {
        core::hint::spin_loop();
    }
    (read_tsc() - ticks) * Nanos::PER_SECOND / (host::monotonic_nanos() - start).max(1)
}

pub fn now() -> Nanos {
    time_of(read_tsc())
}

/// The time at which the counter was `tsc`.
pub fn time_of(tsc: u64) -> Nanos {
    let ticks = tsc.wrapping_sub(BASE.load(Ordering::Relaxed));
    Nanos(((ticks as u128 * SCALE.load(Ordering::Relaxed) as u128) >> 32) as u64)
}

/// Counter value at time zero, and the scale: what the programs' time page needs.
pub fn parameters() -> (u64, u64) {
    (BASE.load(Ordering::Relaxed), SCALE.load(Ordering::Relaxed))
}

/// The host's wall clock at time zero.
pub fn epoch_nanos() -> u64 {
    host::wall_nanos().saturating_sub(now().0)
}
