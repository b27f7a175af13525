//! Interval timers of a process: `setitimer`, `alarm`.

use alloc::boxed::Box;
use alloc::sync::Arc;

use abi::Errno;
use abi::siginfo::SigInfo;
use abi::signal::{SIGALRM, SIGPROF, SIGVTALRM};
use abi::time::{ITIMER_PROF, ITIMER_REAL, Itimerval};
use machine::{Nanos, NoMemory};

use super::clock::Clock;
use super::timer::{After, Timer};
use super::{nanos_of_timeval, timeval_of};
use crate::call::{Call, CallResult};
use crate::calls::signals::send::send_to_process;
use crate::task::process::Process;

/// The process's timer of this kind, made when it is first set.
///
/// VIRTUAL and PROF both count all processor time: the kernel does not keep its own part apart.
fn timer(call: &Call<'_>, which: u32) -> Result<Arc<Timer>, NoMemory> {
    let known = call.process().timers.intervals.borrow()[which as usize].clone();
    let timer = known.map_or_else(|| make(call, which), Ok)?;
    call.process().timers.intervals.borrow_mut()[which as usize] = Some(timer.clone());
    Ok(timer)
}

fn make(call: &Call<'_>, which: u32) -> Result<Arc<Timer>, NoMemory> {
    let (unix, process) = (call.unix, Arc::downgrade(call.process()));
    // Processor time passes only while the process runs, and is looked at no more often than every millisecond.
    let (clock, signal, after) = match which {
        ITIMER_REAL => (Clock::Boot, SIGALRM, After::Quiet),
        ITIMER_PROF => (Clock::Process(process.clone()), SIGPROF, After::Again),
        _ => (Clock::Process(process.clone()), SIGVTALRM, After::Again),
    };
    let expired = move |_times| {
        if let Some(process) = process.upgrade() {
            send_to_process(unix, &process, &SigInfo::kernel(signal));
        }
    };
    Timer::new(unix, clock, after, Box::new(expired))
}

/// What is left and the interval, without making a timer.
fn remaining(call: &Call<'_>, which: u32) -> (Nanos, Nanos) {
    let timer = call.process().timers.intervals.borrow()[which as usize].clone();
    timer.map_or((Nanos(0), Nanos(0)), |timer| {
        let (left, interval) = timer.remaining();
        // As on Linux, nothing is left until its signal has been taken.
        if timer.is_quiet() { (Nanos(0), interval) } else { (left, interval) }
    })
}

/// The signal of the timer for real time has been taken.
pub fn taken(process: &Process, soonest: Nanos) {
    let timer = process.timers.intervals.borrow()[ITIMER_REAL as usize].clone();
    timer.iter().for_each(|timer| _ = timer.go_on(soonest));
}

/// Errors: `EINVAL` for an unknown timer, `EFAULT`.
pub fn getitimer(call: &Call<'_>, which: u32, into: u64) -> CallResult {
    if which > ITIMER_PROF {
        return Err(Errno::EINVAL);
    }
    write_record(call, into, remaining(call, which))
}

fn write_record(call: &Call<'_>, into: u64, (value, interval): (Nanos, Nanos)) -> CallResult {
    // Less than a microsecond left still is something.
    let value = if value == Nanos(0) { value } else { value.max(Nanos(1000)) };
    call.write(into, &Itimerval { it_interval: timeval_of(interval), it_value: timeval_of(value) })?;
    Ok(0)
}

/// A null `from` stops the timer, as Linux has it.
pub fn setitimer(call: &Call<'_>, which: u32, from: u64, old: u64) -> CallResult {
    let record = if from == 0 { Itimerval::zeroed() } else { call.read(from)? };
    let (value, interval) = (nanos_of_timeval(record.it_value), nanos_of_timeval(record.it_interval));
    let (value, interval) = (value?, interval?);
    if which > ITIMER_PROF {
        return Err(Errno::EINVAL);
    }
    let before = remaining(call, which);
    timer(call, which)?.set(value, if value == Nanos(0) { Nanos(0) } else { interval }, false);
    if old == 0 { Ok(0) } else { write_record(call, old, before) }
}

/// Returns the seconds that were left, rounded, but never to zero.
pub fn alarm(call: &Call<'_>, seconds: u32) -> CallResult {
    let (left, _) = remaining(call, ITIMER_REAL);
    if seconds != 0 || left != Nanos(0) {
        timer(call, ITIMER_REAL)?.set(Nanos(u64::from(seconds) * Nanos::PER_SECOND), Nanos(0), false);
    }
    let rounded = (left.0 + Nanos::PER_SECOND / 2) / Nanos::PER_SECOND;
    Ok(if left == Nanos(0) { 0 } else { rounded.max(1) })
}
