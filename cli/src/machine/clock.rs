//! The rate of the time-stamp counter, measured here so that the kernel need not spend its boot on it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Long enough for an error of about ten parts in a million: both ends are known to some 20 ns.
const MEASURE: Duration = Duration::from_millis(4);
/// Where the measurement begins: counter and clock.
static START: OnceLock<(u64, Instant)> = OnceLock::new();
/// Under `-icount shift=0` the counter advances by one a nanosecond of virtual time.
const ICOUNT_HZ: u64 = 1_000_000_000;

/// Ticks a second of the guest's time-stamp counter. Both accelerators pass the host's counter through, so the
/// host's rate is the guest's; 0 where that cannot be measured, and the kernel calibrates.
pub fn tsc_hz(icount: bool) -> u64 {
    if icount { ICOUNT_HZ } else { host_tsc_hz().unwrap_or(0) }
}

/// Begins to measure, so that what the tool does until it needs the rate counts as waiting.
#[cfg(target_arch = "x86_64")]
pub fn begin() {
    START.get_or_init(pair);
}

#[cfg(not(target_arch = "x86_64"))]
pub fn begin() {}

#[cfg(target_arch = "x86_64")]
fn host_tsc_hz() -> Option<u64> {
    let (start_ticks, start) = *START.get_or_init(pair);
    std::thread::sleep(MEASURE.saturating_sub(start.elapsed()));
    let (end_ticks, end) = pair();
    let nanos = end.duration_since(start).as_nanos();
    let ticks = end_ticks.checked_sub(start_ticks)?;
    u64::try_from(u128::from(ticks) * 1_000_000_000 / nanos).ok()
}

#[cfg(not(target_arch = "x86_64"))]
fn host_tsc_hz() -> Option<u64> {
    None
}

/// The counter and the clock, read as close together as three tries allow.
#[cfg(target_arch = "x86_64")]
fn pair() -> (u64, Instant) {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    let ticks = || unsafe { core::arch::x86_64::_rdtsc() };
    let tries = [(); 3].map(|()| {
        let (before, now, after) = (ticks(), Instant::now(), ticks());
        (after.wrapping_sub(before), before + after.wrapping_sub(before) / 2, now)
    });
    let (_, ticks, now) = tries.into_iter().min_by_key(|(gap, _, _)| *gap).unwrap_or((0, ticks(), Instant::now()));
    (ticks, now)
}
