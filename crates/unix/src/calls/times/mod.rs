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

pub(crate) mod clock;
pub(crate) mod clocks;
mod intervals;
pub(crate) mod limit;
pub(crate) mod posix;
pub(crate) mod sleeps;
pub(super) mod table;
mod timer;
pub(crate) mod timerfd;

pub use posix::delete_all as delete_posix_timers;

use alloc::sync::Arc;

use abi::Errno;
use abi::siginfo::{SI_KERNEL, SI_TIMER, SigInfo};
use abi::signal::SIGALRM;
use abi::time::{Timespec, Timeval};
use kernel::charge::{Held, Kept};
use kernel::file::Time;
use machine::{KernelCell, Nanos, Sorted};

use crate::call::Call;
use crate::emulator::Unix;
use crate::task::process::Process;

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
