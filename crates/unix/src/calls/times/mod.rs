//! Clocks, sleeping, timers.
//!
//! ```text
//!   clock.rs      which clock a number names, and reading it
//!   clocks.rs     asking and setting the time
//!   sleeps.rs     nanosleep and its kin
//!   timer.rs      something that goes off: the one mechanism below the three kinds of timers
//!   intervals.rs  setitimer, alarm: signals to the process
//!   limit.rs      the limit on processor time
//!   posix.rs      timer_create and its kin
//!   timerfd.rs    timers as streams
//! ```

mod clock;
mod clocks;
mod intervals;
mod limit;
mod posix;
mod sleeps;
mod timer;
mod timerfd;

pub use clock::process_time;
pub use clocks::account_end;
pub use limit::watch as watch_time_limit;
pub use posix::{delete_all as delete_posix_timers, heeded as heeded_by_timers};
pub use sleeps::deadline_after;
pub use timerfd::add_file;

use alloc::sync::Arc;

use abi::Errno;
use abi::siginfo::{SI_KERNEL, SI_TIMER, SigInfo};
use abi::signal::SIGALRM;
use abi::time::{Timespec, Timeval};
use kernel::charge::{Held, Kept};
use kernel::file::Time;
use machine::{KernelCell, Nanos, Sorted};

use super::Entry;
use crate::call::Call;
use crate::emulator::Unix;
use crate::task::Process;
use abi::nr;

/// The timers of one process.
pub struct ProcessTimers {
    intervals: KernelCell<[Option<Arc<timer::Timer>>; 3]>,
    limit: KernelCell<Option<Arc<timer::Timer>>>,
    posix: KernelCell<Sorted<i32, Arc<posix::PosixTimer>>>,
    next_id: KernelCell<i32>,
}

impl ProcessTimers {
    /// What they keep.
    pub fn held(&self) -> Held {
        let one = size_of::<posix::PosixTimer>() + size_of::<timer::Timer>();
        Held::new(Kept::Timers, self.posix.borrow().entries().len() * one)
    }

    pub const fn new() -> ProcessTimers {
        ProcessTimers {
            intervals: KernelCell::new([const { None }; 3]),
            limit: KernelCell::new(None),
            posix: KernelCell::new(Sorted::new()),
            next_id: KernelCell::new(0),
        }
    }
}

/// The least time between two signals of a timer: one that asks for a nanosecond's interval must leave time for its program.
/// What is missed in between is counted, so the program sees it as overruns.
const PAUSE: Nanos = Nanos(50_000);

/// The process has taken a signal: if it was a timer's, that goes on.
#[inline]
pub fn taken(unix: &Unix, process: &Process, info: &mut SigInfo) {
    if info.code == SI_TIMER || info.code == SI_KERNEL && info.signo as u32 == SIGALRM {
        taken_from_timer(unix, process, info);
    }
}

#[cold]
fn taken_from_timer(unix: &Unix, process: &Process, info: &mut SigInfo) {
    let soonest = unix.machine.now().saturating_add(PAUSE);
    if info.code == SI_TIMER {
        posix::taken(process, info, soonest);
    } else {
        intervals::taken(process, soonest);
    }
}

/// The process ends, and its timers with it.
pub fn end_timers(process: &Process) {
    delete_posix_timers(process);
    let intervals = core::mem::take(&mut *process.timers.intervals.borrow_mut());
    let limit = process.timers.limit.borrow_mut().take();
    intervals.iter().flatten().chain(&limit).for_each(|timer| timer.stop());
}

/// A duration or a time of day. Error: `EINVAL` for a negative one, or a billion nanoseconds or more.
pub fn nanos_of(time: Timespec) -> Result<Nanos, Errno> {
    if time.tv_sec < 0 || !(0..Nanos::PER_SECOND as i64).contains(&time.tv_nsec) {
        return Err(Errno::EINVAL);
    }
    Ok(Nanos((time.tv_sec as u64).saturating_mul(Nanos::PER_SECOND).saturating_add(time.tv_nsec as u64)))
}

/// As `nanos_of`, for microseconds.
pub fn nanos_of_timeval(time: Timeval) -> Result<Nanos, Errno> {
    if !(0..1_000_000).contains(&time.tv_usec) {
        return Err(Errno::EINVAL);
    }
    nanos_of(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 })
}

pub fn timespec_of(nanos: Nanos) -> Timespec {
    Timespec { tv_sec: (nanos.0 / Nanos::PER_SECOND) as i64, tv_nsec: (nanos.0 % Nanos::PER_SECOND) as i64 }
}

pub fn timeval_of(nanos: Nanos) -> Timeval {
    Timeval { tv_sec: (nanos.0 / Nanos::PER_SECOND) as i64, tv_usec: (nanos.0 % Nanos::PER_SECOND / 1000) as i64 }
}

/// Nanoseconds since 1970.
fn wall_nanos(time: Time) -> Nanos {
    Nanos(time.seconds as u64 * Nanos::PER_SECOND + u64::from(time.nanos))
}

fn read_duration(call: &Call<'_>, address: u64) -> Result<Nanos, Errno> {
    nanos_of(call.read(address)?)
}

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
