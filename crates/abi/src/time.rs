//! Clocks and times (`linux/time.h`, `linux/time_types.h`, `linux/times.h`).

use crate::record::{numbers, record};

numbers! {
    /// Clock ids.
    CLOCKS: u32 {
        CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_PROCESS_CPUTIME_ID = 2, CLOCK_THREAD_CPUTIME_ID = 3,
        CLOCK_MONOTONIC_RAW = 4, CLOCK_REALTIME_COARSE = 5, CLOCK_MONOTONIC_COARSE = 6, CLOCK_BOOTTIME = 7,
        CLOCK_REALTIME_ALARM = 8, CLOCK_BOOTTIME_ALARM = 9, CLOCK_TAI = 11,
    }
}
numbers! {
    /// Interval timers.
    INTERVAL_TIMERS: u32 { ITIMER_REAL = 0, ITIMER_VIRTUAL = 1, ITIMER_PROF = 2 }
}
numbers! {
    /// Flags of `clock_nanosleep` and `timer_settime`.
    TIMER_FLAGS: u32 { TIMER_ABSTIME = 1 }
}
/// `utimensat`: set to the present time.
pub const UTIME_NOW: i64 = 0x3fff_ffff;
/// `utimensat`: leave as it is.
pub const UTIME_OMIT: i64 = 0x3fff_fffe;
/// Clock ticks per second in `times` and in auxiliary vector entry `AT_CLKTCK`.
pub const USER_HZ: u64 = 100;

record! {
    /// `struct __kernel_timespec`.
    Timespec, 16 bytes { tv_sec: i64, tv_nsec: i64 }
}
record! {
    /// `struct timeval`.
    Timeval, 16 bytes { tv_sec: i64, tv_usec: i64 }
}
record! {
    /// `struct itimerval`.
    Itimerval, 32 bytes { it_interval: Timeval, it_value: Timeval }
}
record! {
    /// `struct __kernel_itimerspec`.
    Itimerspec, 32 bytes { it_interval: Timespec, it_value: Timespec }
}
record! {
    /// `struct timezone`.
    Timezone, 8 bytes { tz_minuteswest: i32, tz_dsttime: i32 }
}
record! {
    /// `struct tms`, in ticks of `USER_HZ`.
    Tms, 32 bytes { tms_utime: i64, tms_stime: i64, tms_cutime: i64, tms_cstime: i64 }
}
