//! The numbers of these calls.

use abi::nr;

use super::{clocks, intervals, posix, sleeps, timerfd};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::CLOCK_GETTIME, |call, [a, b, ..]| clocks::clock_gettime(call, a as i32, b)),
    (nr::CLOCK_SETTIME, |call, [a, b, ..]| clocks::clock_settime(call, a as i32, b)),
    (nr::CLOCK_GETRES, |call, [a, b, ..]| clocks::clock_getres(call, a as i32, b)),
    (nr::CLOCK_NANOSLEEP, |call, [a, b, c, d, ..]| sleeps::clock_nanosleep(call, a as i32, b as u32, c, d)),
    (nr::NANOSLEEP, |call, [a, b, ..]| sleeps::nanosleep(call, a, b)),
    (nr::GETTIMEOFDAY, |call, [a, b, ..]| clocks::gettimeofday(call, a, b)),
    (nr::SETTIMEOFDAY, |call, [a, b, ..]| clocks::settimeofday(call, a, b)),
    (nr::ADJTIMEX, |call, [a, ..]| clocks::adjtimex(call, a)),
    (nr::CLOCK_ADJTIME, |call, [a, b, ..]| clocks::clock_adjtime(call, a as i32, b)),
    (nr::TIME, |call, [a, ..]| clocks::time(call, a)),
    (nr::TIMES, |call, [a, ..]| clocks::times(call, a)),
    (nr::GETRUSAGE, |call, [a, b, ..]| clocks::getrusage(call, a as i32, b)),
    (nr::ALARM, |call, [a, ..]| intervals::alarm(call, a as u32)),
    (nr::GETITIMER, |call, [a, b, ..]| intervals::getitimer(call, a as u32, b)),
    (nr::SETITIMER, |call, [a, b, c, ..]| intervals::setitimer(call, a as u32, b, c)),
    (nr::TIMER_CREATE, |call, [a, b, c, ..]| posix::timer_create(call, a as i32, b, c)),
    (nr::TIMER_SETTIME, |call, [a, b, c, d, ..]| posix::timer_settime(call, a as i32, b as u32, c, d)),
    (nr::TIMER_GETTIME, |call, [a, b, ..]| posix::timer_gettime(call, a as i32, b)),
    (nr::TIMER_GETOVERRUN, |call, [a, ..]| posix::timer_getoverrun(call, a as i32)),
    (nr::TIMER_DELETE, |call, [a, ..]| posix::timer_delete(call, a as i32)),
    (nr::TIMERFD_CREATE, |call, [a, b, ..]| timerfd::timerfd_create(call, a as u32, b as u32)),
    (nr::TIMERFD_SETTIME, |call, [a, b, c, d, ..]| timerfd::timerfd_settime(call, a, b as u32, c, d)),
    (nr::TIMERFD_GETTIME, |call, [a, b, ..]| timerfd::timerfd_gettime(call, a, b)),
];
