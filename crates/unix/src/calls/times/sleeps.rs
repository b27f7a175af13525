//! Sleeping for a time or until a time.

use abi::Errno;
use abi::time::{
    CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_THREAD_CPUTIME_ID,
    TIMER_ABSTIME,
};
use machine::Nanos;

use super::clock::Clock;
use super::{read_duration, timespec_of};
use crate::call::Function;
use crate::call::{Call, CallResult};
use crate::calls::resume::interrupted_with;

/// The time since boot that is `duration` from now.
pub fn deadline_after(call: &Call<'_>, duration: Nanos) -> Nanos {
    call.unix.machine.now().saturating_add(duration)
}

pub fn nanosleep(call: &Call<'_>, duration: u64, remaining: u64) -> CallResult {
    let duration = read_duration(call, duration)?;
    resume(call, CLOCK_MONOTONIC as i32, deadline_after(call, duration), remaining)
}

/// Errors: `EINVAL`, `EOPNOTSUPP` for a clock one cannot sleep by, `EFAULT`, `EINTR`.
pub fn clock_nanosleep(call: &Call<'_>, id: i32, flags: u32, time: u64, remaining: u64) -> CallResult {
    let clock = Clock::named(call, id)?;
    const SLEEPLESS: [u32; 4] =
        [CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_THREAD_CPUTIME_ID];
    if SLEEPLESS.iter().any(|sleepless| *sleepless as i32 == id) {
        return Err(Errno::ENOTSUP);
    }
    let time = read_duration(call, time)?;
    if let Clock::Thread(task) = &clock
        && task.upgrade().is_some_and(|task| task.tid == call.task.tid)
    {
        return Err(Errno::EINVAL);
    }
    if flags & TIMER_ABSTIME != 0 {
        return sleep(call, &clock, time).map(|()| 0);
    }
    if clock.is_processor() {
        return resume(call, id, clock.read(call.unix).saturating_add(time), remaining);
    }
    // A relative sleep does not care when the time of day is set.
    resume(call, CLOCK_MONOTONIC as i32, deadline_after(call, time), remaining)
}

/// Sleeps on until `deadline` by a clock; tells what was left when a signal came.
fn resume(call: &Call<'_>, id: i32, deadline: Nanos, remaining: u64) -> CallResult {
    let clock = Clock::named(call, id)?;
    if sleep(call, &clock, deadline).is_ok() {
        return Ok(0);
    }
    let left = deadline.saturating_sub(clock.read(call.unix));
    if left == Nanos(0) {
        return Ok(0);
    }
    call.write_if(remaining, &timespec_of(left))?;
    let again: Function = |call, [id, deadline, remaining, ..]| resume(call, id as i32, Nanos(deadline), remaining);
    Err(interrupted_with(call, again, [id as u64, deadline.0, remaining, 0, 0, 0]))
}

/// Error: `EINTR`.
fn sleep(call: &Call<'_>, clock: &Clock, until: Nanos) -> Result<(), Errno> {
    loop {
        if clock.read(call.unix) >= until {
            return Ok(());
        }
        if call.task.is_interrupted() {
            return Err(Errno::EINTR);
        }
        call.unix.scheduler.sleep(call.held, &[], Some(clock.earliest(call.unix, until)));
    }
}
