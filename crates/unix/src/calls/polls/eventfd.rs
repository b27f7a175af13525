//! Event counters as streams.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::poll::{EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE};
use kernel::charge::{Held, Kept};
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::stream::{Io, Progress, Ready, Stream, UserRange};
use machine::KernelCell;

use crate::call::{Call, CallResult};
use crate::calls::times::timerfd::add_file;
use crate::files::open_file::OpenFile;

/// The largest count; one more than it never is.
const COUNT_MAX: u64 = u64::MAX - 1;

pub struct EventCounter {
    count: KernelCell<u64>,
    /// A read takes one, not all.
    semaphore: bool,
    progress: KernelCell<Progress>,
    changed: WaitQueue,
}

/// Error: `EINVAL` for unknown flags.
pub fn eventfd(call: &Call<'_>, count: u32, flags: u32) -> CallResult {
    if flags & !(EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let counter = EventCounter {
        count: KernelCell::new(count.into()),
        semaphore: flags & EFD_SEMAPHORE != 0,
        progress: KernelCell::new(Progress::default()),
        changed: WaitQueue::new(),
    };
    let file = OpenFile::stream(Arc::new(counter), O_RDWR | flags & O_NONBLOCK);
    add_file(call, file, flags & O_CLOEXEC != 0)
}

impl EventCounter {
    /// Counts one event that the kernel tells of; a full counter stays as it is.
    pub fn count_one(&self, scheduler: &Scheduler) {
        self.count.set(self.count.get().saturating_add(1).min(COUNT_MAX));
        self.progress.borrow_mut().arrived += 1;
        scheduler.wake(&self.changed);
    }

    fn take(&self, io: &Io<'_>, room: usize) -> Result<u64, Errno> {
        if room < 8 {
            return Err(Errno::EINVAL);
        }
        loop {
            let count = self.count.get();
            if count > 0 {
                let taken = if self.semaphore { 1 } else { count };
                self.count.set(count - taken);
                self.progress.borrow_mut().departed += 1;
                io.scheduler.wake(&self.changed);
                return Ok(taken);
            }
            io.wait(&self.changed)?;
        }
    }

    fn add(&self, io: &Io<'_>, more: u64) -> Result<usize, Errno> {
        if more == u64::MAX {
            return Err(Errno::EINVAL);
        }
        loop {
            if let Some(sum) = self.count.get().checked_add(more).filter(|sum| *sum <= COUNT_MAX) {
                self.count.set(sum);
                self.progress.borrow_mut().arrived += 1;
                io.scheduler.wake(&self.changed);
                return Ok(8);
            }
            io.wait(&self.changed)?;
        }
    }
}

impl Stream for EventCounter {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let taken = self.take(io, to.bytes)?;
        io.copy_out(to.address, &taken.to_le_bytes())?;
        Ok(8)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        if from.bytes < 8 {
            return Err(Errno::EINVAL);
        }
        let mut more = [0; 8];
        io.copy_in(from.address, &mut more)?;
        self.add(io, u64::from_le_bytes(more))
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let taken = self.take(io, into.len())?;
        into[..8].copy_from_slice(&taken.to_le_bytes());
        Ok(8)
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        let Some(more) = from.first_chunk() else { return Err(Errno::EINVAL) };
        self.add(io, u64::from_le_bytes(*more))
    }

    fn held(&self) -> Held {
        Held::new(Kept::EventCounters, size_of::<EventCounter>())
    }

    fn ready(&self) -> Ready {
        let count = self.count.get();
        Ready::NONE.with_if(count > 0, Ready::IN).with_if(count < COUNT_MAX, Ready::OUT)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.changed);
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.progress.get())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
