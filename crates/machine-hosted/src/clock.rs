//! Time: how fast the processor's counter counts.

use machine::Nanos;
use machine_x86::read_tsc;

use crate::host;

/// Starts the clock now. `hertz` 0: measured against the host's clock.
pub fn start(hertz: u64) {
    let hertz = if hertz == 0 { measure() } else { hertz };
    machine_x86::start_clock(read_tsc(), hertz);
}

fn measure() -> u64 {
    const WINDOW_NS: u64 = 5_000_000;
    let (start, ticks) = (host::monotonic_nanos(), read_tsc());
    while host::monotonic_nanos() - start < WINDOW_NS {
        core::hint::spin_loop();
    }
    (read_tsc() - ticks) * Nanos::PER_SECOND / (host::monotonic_nanos() - start).max(1)
}

/// The host's wall clock at time zero.
pub fn epoch_nanos() -> u64 {
    host::wall_nanos().saturating_sub(machine_x86::now().0)
}
