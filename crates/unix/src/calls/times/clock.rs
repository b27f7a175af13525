//! Which clock a number names, and reading it.

use alloc::sync::{Arc, Weak};

use abi::Errno;
use abi::time::{
    CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW,
    CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, CLOCK_REALTIME_COARSE, CLOCK_TAI,
    CLOCK_THREAD_CPUTIME_ID,
};
use machine::Nanos;

use super::wall_nanos;
use crate::call::Call;
use crate::emulator::Unix;
use crate::task::process::Process;
use crate::task::thread::Task;

/// What a clock counts.
#[derive(Clone)]
pub enum Clock {
    /// Time of day. TAI is the same here: nobody has told us of leap seconds.
    Wall,
    /// Time since boot.
    Boot,
    /// Processor time of a process.
    Process(Weak<Process>),
    /// Processor time of a thread.
    Thread(Weak<Task>),
}

impl Clock {
    /// The clock behind a number. Error: `EINVAL`.
    pub fn named(call: &Call<'_>, id: i32) -> Result<Clock, Errno> {
        if id < 0 {
            return processor_clock(call, id);
        }
        match id as u32 {
            CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_REALTIME_ALARM | CLOCK_TAI => Ok(Clock::Wall),
            CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME | CLOCK_BOOTTIME_ALARM => {
                Ok(Clock::Boot)
            }
            CLOCK_PROCESS_CPUTIME_ID => Ok(Clock::Process(Arc::downgrade(call.process()))),
            CLOCK_THREAD_CPUTIME_ID => Ok(Clock::Thread(Arc::downgrade(call.task))),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Reads the clock; zero when its process or thread is gone.
    pub fn read(&self, unix: &Unix) -> Nanos {
        match self {
            Clock::Wall => wall_nanos(unix.wall_time()),
            Clock::Boot => unix.machine.now(),
            Clock::Process(process) => process.upgrade().map_or(Nanos(0), |process| process_time(unix, &process)),
            Clock::Thread(task) => task.upgrade().map_or(Nanos(0), |task| unix.scheduler.ran(&task.thread)),
        }
    }

    /// A time since boot at which the clock cannot yet have passed `at`, or has just reached it.
    ///
    /// The time of day may be set meanwhile and processor time stands still while others run, so for these
    /// clocks one looks again then. No later than in a second for the time of day.
    pub fn earliest(&self, unix: &Unix, at: Nanos) -> Nanos {
        let now = unix.machine.now();
        let left = at.saturating_sub(self.read(unix));
        let step = match self {
            Clock::Boot => left,
            Clock::Wall => left.min(Nanos(Nanos::PER_SECOND)),
            // Looking more often than this costs more than a timer's lateness does.
            Clock::Process(_) | Clock::Thread(_) => left.max(Nanos::from_micros(1000)),
        };
        now.saturating_add(step)
    }

    /// Processor clocks stand still sometimes.
    pub fn is_processor(&self) -> bool {
        matches!(self, Clock::Process(_) | Clock::Thread(_))
    }
}

/// Negative numbers name processor clocks: the inverted id shifted by 3, bit 2 for one thread, and the kind
/// (`linux/posix-timers.h`). Error: `EINVAL`, also for what is no task.
fn processor_clock(call: &Call<'_>, id: i32) -> Result<Clock, Errno> {
    let (number, per_thread, kind) = (!(id >> 3), id & 4 != 0, id & 3);
    if kind == 3 {
        return Err(Errno::EINVAL);
    }
    if per_thread {
        let task = if number == 0 { Some(call.task.clone()) } else { call.unix.tasks.task(number as u32) };
        let task = task.filter(|task| Arc::ptr_eq(&task.process, call.process())).ok_or(Errno::EINVAL)?;
        return Ok(Clock::Thread(Arc::downgrade(&task)));
    }
    let process = if number == 0 { Some(call.process().clone()) } else { call.unix.tasks.process(number as u32) };
    process.map(|process| Clock::Process(Arc::downgrade(&process))).ok_or(Errno::EINVAL)
}

/// Processor time of all threads a process has and had.
pub fn process_time(unix: &Unix, process: &Process) -> Nanos {
    let mut total = process.usage.get().user;
    process.each_task(|task| total = total.saturating_add(unix.scheduler.ran(&task.thread)));
    total
}
