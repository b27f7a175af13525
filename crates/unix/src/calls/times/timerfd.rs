//! Timers as streams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::clock::Clock;
use super::timer::{After, Timer, durations};
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::files::descriptors::Slot;
use crate::files::open_file::OpenFile;
use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::poll::{TFD_CLOEXEC, TFD_NONBLOCK, TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET};
use abi::time::{
    CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, Itimerspec,
};
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Progress, Ready, Stream, UserRange};
use machine::{KernelValue, Nanos};

/// Expirations that nobody has read.
struct Count {
    unread: AtomicU64,
    ever: AtomicU64,
    changed: WaitQueue,
}

pub struct TimerStream {
    timer: Arc<Timer>,
    count: Arc<Count>,
    unix: &'static Unix,
    is_of_day: bool,
    /// The setting of the time of day that its reader knows of; `None`: it does not want to (`TFD_TIMER_CANCEL_ON_SET`).
    known: KernelValue<Option<u64>>,
}

/// Error: `EINVAL` for another clock or flag.
pub fn timerfd_create(call: &Call<'_>, clock: u32, flags: u32) -> CallResult {
    const CLOCKS: [u32; 5] =
        [CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM];
    if flags & !(TFD_CLOEXEC | TFD_NONBLOCK) != 0 || !CLOCKS.contains(&clock) {
        return Err(Errno::EINVAL);
    }
    let (unix, clock) = (call.unix, Clock::named(call, clock as i32)?);
    let count = Arc::new(Count { unread: AtomicU64::new(0), ever: AtomicU64::new(0), changed: WaitQueue::new() });
    let expired = {
        let count = count.clone();
        move |times: u64| {
            let unread = count.unread.swap(0, Relaxed);
            count.unread.fetch_add(unread.saturating_add(times), Relaxed);
            count.ever.fetch_add(times, Relaxed);
            unix.scheduler.wake(&count.changed);
        }
    };
    let is_of_day = matches!(clock, Clock::Wall);
    let timer = Timer::new(unix, clock, After::Quiet, Box::new(expired))?;
    timer.count_by_code(count.changed.count_word(), &count.unread, &count.ever);
    let stream = TimerStream { timer, count, unix, is_of_day, known: KernelValue::new(None) };
    let file = OpenFile::stream(Arc::new(stream), O_RDWR | flags & O_NONBLOCK);
    add_file(call, file, flags & O_CLOEXEC != 0)
}

/// Puts a new file behind the lowest free descriptor.
pub fn add_file(call: &Call<'_>, file: OpenFile, close_on_exec: bool) -> CallResult {
    let limit = call.process().limits.borrow().descriptors();
    let slot = Slot { file: Arc::new(file), close_on_exec };
    call.files().add(slot, 0, limit).map(|descriptor| descriptor.0.into())
}

/// Errors: `EFAULT`, `EINVAL`, also for what is no timer; `EBADF`; `ECANCELED` when the time of day was set before, and nobody has
/// been told: the timer is set.
pub fn timerfd_settime(call: &Call<'_>, descriptor: u64, flags: u32, from: u64, old: u64) -> CallResult {
    let record: Itimerspec = call.read(from)?;
    let (value, interval) = durations(&record)?;
    if flags & !(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL);
    }
    let file = call.file(descriptor)?;
    let stream = file.stream_of::<TimerStream>().ok_or(Errno::EINVAL)?;
    let before = (old != 0).then(|| stream.timer.record());
    let forget = || stream.count.unread.store(0, Relaxed);
    stream.timer.set_meanwhile(value, interval, flags & TFD_TIMER_ABSTIME != 0, forget);
    let is_set = value != Nanos(0);
    let is_told = flags & TFD_TIMER_CANCEL_ON_SET != 0 && flags & TFD_TIMER_ABSTIME != 0 && stream.is_of_day;
    stream.known.set(is_told.then(|| stream.known.get().unwrap_or(call.unix.clock_sets.get())));
    if is_set && stream.take_cancelled() {
        return Err(Errno::ECANCELED);
    }
    if let Some(before) = before {
        call.write(old, &before)?;
    }
    Ok(0)
}

pub fn timerfd_gettime(call: &Call<'_>, descriptor: u64, into: u64) -> CallResult {
    let file = call.file(descriptor)?;
    let stream = file.stream_of::<TimerStream>().ok_or(Errno::EINVAL)?;
    call.write(into, &stream.timer.record())?;
    Ok(0)
}

impl TimerStream {
    /// The time of day has been set, and the reader does not know.
    fn is_cancelled(&self) -> bool {
        self.known.get().is_some_and(|known| known != self.unix.clock_sets.get())
    }

    /// The same; from now on it knows, and what was counted is forgotten.
    fn take_cancelled(&self) -> bool {
        let is_cancelled = self.is_cancelled();
        if is_cancelled {
            self.known.set(Some(self.unix.clock_sets.get()));
            self.count.unread.store(0, Relaxed);
        }
        is_cancelled
    }

    fn take(&self, io: &Io<'_>, room: usize) -> Result<u64, Errno> {
        if room < 8 {
            return Err(Errno::EINVAL);
        }
        loop {
            if self.take_cancelled() {
                return Err(Errno::ECANCELED);
            }
            let unread = self.count.unread.swap(0, Relaxed).saturating_add(self.timer.go_on(Nanos(0)));
            if unread > 0 {
                return Ok(unread);
            }
            io.wait_any(&[&self.count.changed, &self.unix.clock_set])?;
        }
    }
}

impl Stream for TimerStream {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let unread = self.take(io, to.bytes)?;
        io.copy_out(to.address, &unread.to_le_bytes())?;
        Ok(8)
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let unread = self.take(io, into.len())?;
        into[..8].copy_from_slice(&unread.to_le_bytes());
        Ok(8)
    }

    fn held(&self) -> Held {
        Held::new(Kept::Timers, size_of::<TimerStream>() + size_of::<Timer>() + size_of::<Count>())
    }

    fn ready(&self) -> Ready {
        Ready::NONE.with_if(self.count.unread.load(Relaxed) > 0 || self.is_cancelled(), Ready::IN)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.count.changed);
        visit(&self.unix.clock_set);
    }

    fn progress(&self) -> Option<Progress> {
        let sets = self.known.get().map_or(0, |_| self.unix.clock_sets.get());
        Some(Progress { arrived: self.count.ever.load(Relaxed) + sets, departed: 0 })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
