//! Time: how fast the counter counts, and the date.

use machine::Nanos;
use machine_x86::read_tsc;

use crate::apic;

/// Starts the clock at the counter value of kernel entry. `hertz` 0: measured against the APIC timer,
/// which hypervisors run at 1 GHz.
pub fn start(entry_tsc: u64, hertz: u64) {
    let hertz = if hertz == 0 { measure() } else { hertz };
    machine_x86::start_clock(entry_tsc, hertz);
}

fn measure() -> u64 {
    const WINDOW_NS: u32 = 2_000_000;
    apic::start_timer(u32::MAX);
    let first = apic::timer_count();
    let start = read_tsc();
    while first.wrapping_sub(apic::timer_count()) < WINDOW_NS {
        core::hint::spin_loop();
    }
    let ticks = read_tsc() - start;
    apic::start_timer(0);
    ticks * (Nanos::PER_SECOND / WINDOW_NS as u64)
}

/// Seconds since 1970 from the CMOS clock (Motorola MC146818, BCD or binary), UTC.
pub fn cmos_seconds() -> u64 {
    let read = |register: u8| {
        // SAFETY: ports 0x70/0x71 are the CMOS clock on every PC; reading registers 0..=11 has no effect.
        unsafe {
            crate::registers::out8(0x70, register);
            crate::registers::in8(0x71)
        }
    };
    let sample = || [0, 2, 4, 7, 8, 9].map(read);
    // Two equal samples in a row are not torn by an update; a missing clock reads 0xFF at once.
    let mut values = sample();
    for _ in 0..100 {
        let again = sample();
        if again == values {
            break;
        }
        values = again;
    }
    let status = read(11);
    let number =
        |value: u8| if status & 4 == 0 { (value & 15) as u64 + (value >> 4) as u64 * 10 } else { value as u64 };
    let [second, minute, hour, day, month, year] = values.map(number);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return 0;
    }
    days_from_civil(2000 + year % 100, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
}

/// Days from 1970-01-01 to a Gregorian date.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + BEFORE[month as usize - 1]
        + u64::from(leap && month > 2)
        + day
        - 1
}
