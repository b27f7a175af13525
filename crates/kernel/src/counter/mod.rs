//! Event counters (`eventfd`): a number that writers add to, and readers take.

mod template;

use alloc::boxed::Box;
use core::any::Any;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use abi::Errno;
use codestore::Code;
use quaject::{Made, Makers, Quaject, create};

pub use template::{Body, CounterCallouts, CounterCode};

use crate::call::FileCode;
use crate::charge::{Held, Kept};
use crate::ready::Readiness;
use crate::ready::counter::CounterReady;
use crate::schedule::{Scheduler, WaitQueue};
use crate::stream::{Io, Nameless, Progress, Ready, Stream, UserRange};

/// The largest count; one more than it never is.
const COUNT_MAX: u64 = u64::MAX - 1;

pub struct EventCounter {
    /// Present until the counter is dropped.
    body: Option<Box<Made<Body>>>,
    /// A read takes one, not all.
    is_semaphore: bool,
}

impl EventCounter {
    /// A counter that stands at `count`. Error: `ENOMEM`.
    pub fn new(count: u64, is_semaphore: bool) -> Result<EventCounter, Errno> {
        let body = create::allocate(|| {
            let word = || AtomicU64::new(0);
            let (readable, writable) = (WaitQueue::new(), WaitQueue::new());
            let [count, arrived, departed, read_sleeps] = [word(), word(), word(), word()];
            Ok::<_, Errno>(Body { count, arrived, departed, read_sleeps, readable, writable })
        })?;
        body.count.store(count, Relaxed);
        body.read_sleeps.store(1, Relaxed);
        [&body.arrived, &body.departed].into_iter().for_each(|word| word.store(0, Relaxed));
        Ok(EventCounter { body: Some(body), is_semaphore })
    }

    /// Has the counter's routines made, where it did not come with some.
    pub fn synthesize(&self, makers: Makers) {
        self.body().synthesize(makers, &CounterCallouts {});
    }

    fn body(&self) -> &Made<Body> {
        self.body.as_ref().expect("a counter has a body until it is dropped")
    }

    /// Counts one event that the kernel tells of; a full counter stays as it is.
    pub fn count_one(&self, scheduler: &Scheduler) {
        let body = self.body();
        body.count.store(body.count.load(Relaxed).saturating_add(1).min(COUNT_MAX), Relaxed);
        body.arrived.fetch_add(1, Relaxed);
        scheduler.wake(&body.readable);
    }

    fn take(&self, io: &Io<'_>, room: usize) -> Result<u64, Errno> {
        if room < 8 {
            return Err(Errno::EINVAL);
        }
        let body = self.body();
        loop {
            let count = body.count.load(Relaxed);
            if count > 0 {
                let taken = if self.is_semaphore { 1 } else { count };
                body.count.store(count - taken, Relaxed);
                body.departed.fetch_add(1, Relaxed);
                io.scheduler.wake(&body.writable);
                return Ok(taken);
            }
            io.wait(&body.readable)?;
        }
    }

    fn add(&self, io: &Io<'_>, more: u64) -> Result<usize, Errno> {
        if more == u64::MAX {
            return Err(Errno::EINVAL);
        }
        let body = self.body();
        loop {
            if let Some(sum) = body.count.load(Relaxed).checked_add(more).filter(|sum| *sum <= COUNT_MAX) {
                body.count.store(sum, Relaxed);
                body.arrived.fetch_add(1, Relaxed);
                io.scheduler.wake(&body.readable);
                return Ok(8);
            }
            io.wait(&body.writable)?;
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
        Held::new(Kept::EventCounters, size_of::<EventCounter>() + size_of::<Body>())
    }

    fn ready(&self) -> Ready {
        let count = self.body().count.load(Relaxed);
        Ready::NONE.with_if(count > 0, Ready::IN).with_if(count < COUNT_MAX, Ready::OUT)
    }

    fn does_not_wait(&self) {
        self.body().read_sleeps.store(0, Relaxed);
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.body().readable);
        visit(&self.body().writable);
    }

    /// A semaphore's count is taken in Rust.
    fn callentries(&self, makers: Makers) -> FileCode {
        let code = self.body().callentries_for(makers, &CounterCallouts {}).unwrap_or_default();
        FileCode { read: code.read.filter(|_| !self.is_semaphore), write: code.write, ..FileCode::default() }
    }

    fn readiness(&self, makers: Makers) -> Option<Code<Readiness>> {
        CounterReady { count: self.body().count.as_ptr() as u64 }.code(makers)
    }

    fn progress(&self) -> Option<Progress> {
        let body = self.body();
        Some(Progress { arrived: body.arrived.load(Relaxed), departed: body.departed.load(Relaxed) })
    }

    fn nameless(&self) -> Nameless {
        Nameless::Anonymous("[eventfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for EventCounter {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            Body::inactive().give(body);
        }
    }
}
