//! The circumstances of one call on a stream.

use abi::Errno;
use machine::{Machine, Nanos, VirtAddr};

use crate::schedule::{Scheduler, WaitQueue};

/// Program memory named by a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserRange {
    pub address: VirtAddr,
    pub bytes: usize,
}

impl UserRange {
    /// The part behind the first `bytes` bytes.
    pub fn after(self, bytes: usize) -> UserRange {
        UserRange { address: VirtAddr(self.address.0.wrapping_add(bytes as u64)), bytes: self.bytes - bytes }
    }

    /// The first `bytes` bytes.
    pub fn first(self, bytes: usize) -> UserRange {
        UserRange { bytes: bytes.min(self.bytes), ..self }
    }
}

/// Who calls, and whether it may sleep.
pub struct Io<'a> {
    pub scheduler: &'static Scheduler,
    /// `O_NONBLOCK`: `EAGAIN` instead of sleeping.
    pub nonblocking: bool,
    /// A signal waits to be delivered to the calling thread.
    pub interrupted: &'a dyn Fn() -> bool,
}

impl Io<'_> {
    pub fn machine(&self) -> &'static dyn Machine {
        self.scheduler.machine()
    }

    /// Sleeps in `queue`; the caller looks again at what it waits for.
    ///
    /// Errors: `EAGAIN` when the call may not sleep, `EINTR` when a signal waits.
    pub fn wait(&self, queue: &WaitQueue) -> Result<(), Errno> {
        self.wait_until(queue, None)
    }

    /// As `wait`, for whatever happens first.
    pub fn wait_any(&self, queues: &[&WaitQueue]) -> Result<(), Errno> {
        self.wait_for(queues, None)
    }

    /// As `wait`, but no longer than to `deadline`; the caller compares the time.
    pub fn wait_until(&self, queue: &WaitQueue, deadline: Option<Nanos>) -> Result<(), Errno> {
        self.wait_for(&[queue], deadline)
    }

    fn wait_for(&self, queues: &[&WaitQueue], deadline: Option<Nanos>) -> Result<(), Errno> {
        if self.nonblocking {
            return Err(Errno::EAGAIN);
        }
        if (self.interrupted)() {
            return Err(Errno::EINTR);
        }
        self.scheduler.sleep(queues, deadline);
        if (self.interrupted)() { Err(Errno::EINTR) } else { Ok(()) }
    }
}
