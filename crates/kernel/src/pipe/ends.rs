//! The two ends of a pipe, as streams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi::Errno;
use codestore::Code;
use machine::try_arc;
use quaject::{Made, Makers, Quaject, create};

use super::ATOMIC_BYTES;
use super::ring::{CAPACITY_DEFAULT, PipeRing};
use super::template::{Body, PipeCallouts, PipeCode};
use crate::call::FileCode;
use crate::charge::{Held, Kept};
use crate::ready::Readiness;
use crate::ready::pipe::PipeReady;
use crate::schedule::WaitQueue;
use crate::stream::{Io, Nameless, Ownership, Progress, Ready, Stream, UserRange, take_number};

/// Bytes that are moved between two safe points: more than this only wide pipes hold.
const PART_BYTES: usize = CAPACITY_DEFAULT;

/// One pipe, shared by its ends.
pub struct Pipe {
    /// Present until the pipe is dropped.
    body: Option<Box<Made<Body>>>,
    readers: AtomicU32,
    writers: AtomicU32,
    /// Somebody has an end that does not wait: routines do not sleep.
    is_nonblocking: AtomicBool,
    /// All reads and writes go to Rust.
    is_diverted: AtomicBool,
    /// It leads from one socket to another: the queues are theirs, and Rust has room for what finds none in the ring.
    is_between_sockets: bool,
    /// Ever opened, for the rendezvous of a named pipe.
    pub opened_readers: AtomicU32,
    pub opened_writers: AtomicU32,
    /// No other pipe has it (`pipe:[N]`, `st_ino`).
    number: u64,
    ownership: Ownership,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Read,
    Write,
    /// A named pipe opened for both (Linux allows it).
    Both,
}

impl Side {
    pub fn reads(self) -> bool {
        self != Side::Write
    }

    pub fn writes(self) -> bool {
        self != Side::Read
    }
}

/// One open end. Dropping the last end of a side tells the other.
pub struct PipeEnd {
    pipe: Arc<Pipe>,
    side: Side,
    scheduler: &'static crate::schedule::Scheduler,
}

impl Pipe {
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// A pipe, with synthesized routines if `makers` are given (and have room). Error: `ENOMEM`.
    pub fn new(makers: Option<Makers>) -> Result<Arc<Pipe>, Errno> {
        let queue = || try_arc(WaitQueue::new());
        let body = create::allocate(|| {
            Ok::<_, Errno>(Body { ring: PipeRing::new()?, readable: queue()?, writable: queue()? })
        })?;
        Pipe::with(body, 0, take_number(), makers)
    }

    /// The way from one socket to another, where its reader and its writer sleep; it is diverted first: [`Pipe::divert`] says when it is
    /// no longer. Error: `ENOMEM`.
    pub fn between_sockets(
        makers: Makers,
        readable: Arc<WaitQueue>,
        writable: Arc<WaitQueue>,
    ) -> Result<Arc<Pipe>, Errno> {
        let body = create::allocate_new(|| Ok::<_, Errno>(Body { ring: PipeRing::new()?, readable, writable }))?;
        Pipe::with(body, 1, 0, Some(makers))
    }

    /// With so many sockets at each end.
    fn with(body: Box<Made<Body>>, sockets: u32, number: u64, makers: Option<Makers>) -> Result<Arc<Pipe>, Errno> {
        let pipe = Pipe {
            body: Some(body),
            readers: AtomicU32::new(sockets),
            writers: AtomicU32::new(sockets),
            is_nonblocking: AtomicBool::new(false),
            is_diverted: AtomicBool::new(sockets > 0),
            is_between_sockets: sockets > 0,
            opened_readers: AtomicU32::new(0),
            opened_writers: AtomicU32::new(0),
            number,
            ownership: Ownership::new(0o600),
        };
        if let Some(makers) = makers {
            pipe.body().synthesize(makers, &PipeCallouts {});
        }
        Ok(try_arc(pipe)?)
    }

    /// Whether reads and writes go to Rust.
    pub fn is_diverted(&self) -> bool {
        self.is_diverted.load(Ordering::Relaxed)
    }

    /// From now on they do, and reads that find something, too; or they do no longer.
    pub fn divert(&self, is_diverted: bool) {
        self.is_diverted.store(is_diverted, Ordering::Relaxed);
        self.writable().attend(is_diverted);
        self.note_ends();
    }

    /// Who reads does not wait: routines do not sleep.
    pub fn does_not_wait(&self) {
        self.is_nonblocking.store(true, Ordering::Relaxed);
        self.note_ends();
    }

    /// The synthesized routines, for a pipe of the default capacity.
    pub fn code(&self) -> Option<PipeCode> {
        if self.capacity() == CAPACITY_DEFAULT { self.body().callentries() } else { None }
    }

    /// The same as `makers` want them.
    pub fn code_for(&self, makers: Makers) -> PipeCode {
        self.code().and_then(|_| self.body().callentries_for(makers, &PipeCallouts {})).unwrap_or_default()
    }

    /// Whether there are routines that know where the bytes are now; a pipe that was resized never has some again.
    pub fn has_code(&self) -> bool {
        self.body().has_code()
    }

    /// The quaject behind the pipe.
    pub fn body(&self) -> &Made<Body> {
        self.body.as_ref().expect("a pipe has a body until it is dropped")
    }

    /// Copies what is in another pipe into this one and takes nothing out; returns the count. See [`PipeRing::copy_from`].
    pub fn copy_from(&self, other: &Pipe, wanted: usize) -> usize {
        self.ring().copy_from(other.ring(), wanted)
    }

    pub fn ring(&self) -> &PipeRing {
        &self.body().ring
    }

    /// Sleep here until something can be read.
    pub fn readable(&self) -> &WaitQueue {
        &self.body().readable
    }

    /// Sleep here until something can be written.
    pub fn writable(&self) -> &WaitQueue {
        &self.body().writable
    }

    pub fn fill(&self) -> usize {
        self.ring().fill()
    }

    pub fn capacity(&self) -> usize {
        self.ring().capacity()
    }

    pub fn readers(&self) -> u32 {
        self.readers.load(Ordering::Relaxed)
    }

    pub fn writers(&self) -> u32 {
        self.writers.load(Ordering::Relaxed)
    }

    /// Changes the capacity; see [`PipeRing::resize`]. The ends' synthesized code must be made anew.
    pub fn resize(&self, capacity: usize) -> Result<(), Errno> {
        self.ring().resize(capacity)?;
        // The routines know where the old bytes were.
        self.body().forget_code();
        self.note_ends();
        Ok(())
    }

    /// Has routines know who is there.
    fn note_ends(&self) {
        let words = &self.ring().words;
        let waits = !self.is_nonblocking.load(Ordering::Relaxed) && !self.is_diverted();
        let is_heard = self.readers() > 0 && !self.is_diverted();
        let limit = if is_heard { self.ring().capacity() as u64 } else { 0 };
        words.write_limit.store(limit, Ordering::Release);
        words.run_limit.store(limit + u64::from(is_heard), Ordering::Release);
        words.read_sleeps.store(u64::from(waits && self.writers() > 0), Ordering::Release);
        let sleeps_full = waits && self.readers() > 0 && !self.is_between_sockets;
        words.write_sleeps.store(u64::from(sleeps_full), Ordering::Release);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        if body.ring.capacity() == CAPACITY_DEFAULT && !self.is_between_sockets {
            body.ring.reset();
            Body::inactive().give(body);
        }
    }
}

impl PipeEnd {
    pub fn new(pipe: &Arc<Pipe>, side: Side, scheduler: &'static crate::schedule::Scheduler) -> PipeEnd {
        if side.reads() {
            pipe.readers.fetch_add(1, Ordering::Relaxed);
            pipe.opened_readers.fetch_add(1, Ordering::Relaxed);
        }
        if side.writes() {
            pipe.writers.fetch_add(1, Ordering::Relaxed);
            pipe.opened_writers.fetch_add(1, Ordering::Relaxed);
        }
        pipe.note_ends();
        PipeEnd { pipe: pipe.clone(), side, scheduler }
    }

    pub fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    pub fn side(&self) -> Side {
        self.side
    }

    /// `take` moves bytes to offset `done` on, at most `PART_BYTES`.
    fn read_with(
        &self,
        io: &Io<'_>,
        bytes: usize,
        take: &mut dyn FnMut(usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        if !self.side.reads() {
            return Err(Errno::EBADF);
        }
        if bytes == 0 {
            return Ok(0);
        }
        loop {
            if self.pipe.fill() > 0 {
                match take(0) {
                    // The buffer's page must come first; then perhaps another one has taken the bytes.
                    Err(Errno::EFAULT) => io.await_page()?,
                    Err(error) => return Err(error),
                    Ok(taken) => {
                        io.scheduler.wake(self.pipe.writable());
                        return Ok(if taken < PART_BYTES { taken } else { self.read_on(io, bytes, taken, take) });
                    }
                }
                continue;
            }
            if self.pipe.writers() == 0 {
                return Ok(0);
            }
            io.wait(self.pipe.readable())?;
        }
    }

    /// What a wide pipe has besides, with safe points in between.
    #[cold]
    fn read_on(
        &self,
        io: &Io<'_>,
        bytes: usize,
        first: usize,
        take: &mut dyn FnMut(usize) -> Result<usize, Errno>,
    ) -> usize {
        let mut done = first;
        while done < bytes && !io.is_interrupted() {
            io.breathe();
            match take(done) {
                Ok(taken @ 1..) => done += taken,
                _ => break,
            }
            io.scheduler.wake(self.pipe.writable());
        }
        done
    }

    /// `put` moves bytes from offset `done` on, at most its second argument.
    fn write_with(
        &self,
        io: &Io<'_>,
        bytes: usize,
        put: &mut dyn FnMut(usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        if !self.side.writes() {
            return Err(Errno::EBADF);
        }
        if bytes == 0 {
            return Ok(0);
        }
        let mut done = 0;
        loop {
            if self.pipe.readers() == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EPIPE) };
            }
            // A small write waits until it fits whole. One that has begun has been cut by a fault.
            let needed = if bytes <= ATOMIC_BYTES && done == 0 { bytes } else { 1 };
            if self.pipe.ring().room() >= needed {
                match put(done) {
                    Ok(0) => {}
                    Ok(part) => {
                        done += part;
                        io.scheduler.wake(self.pipe.readable());
                        if part == PART_BYTES {
                            io.breathe();
                        }
                    }
                    Err(error) => {
                        let again = if error == Errno::EFAULT { io.await_page() } else { Err(error) };
                        match again {
                            Ok(()) => continue,
                            Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
                        }
                    }
                }
                if done == bytes {
                    return Ok(done);
                }
            }
            if self.pipe.ring().room() >= needed.min(bytes - done) {
                continue;
            }
            if let Err(error) = io.wait(self.pipe.writable()) {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        }
    }
}

impl Stream for PipeEnd {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.pipe.fill())
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        self.read_with(io, to.bytes, &mut |done| {
            self.pipe.ring().give_to(io.machine(), to.after(done).first(PART_BYTES))
        })
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        self.write_with(io, from.bytes, &mut |done| {
            self.pipe.ring().take_from(io.machine(), from.after(done).first(PART_BYTES))
        })
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        self.read_with(io, into.len(), &mut |done| {
            let end = into.len().min(done + PART_BYTES);
            Ok(self.pipe.ring().get(&mut into[done..end]))
        })
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        self.write_with(io, from.len(), &mut |done| {
            let end = from.len().min(done + PART_BYTES);
            Ok(self.pipe.ring().put(&from[done..end]))
        })
    }

    fn ready(&self) -> Ready {
        let mut ready = Ready::NONE;
        if self.side.reads() {
            ready = ready.with_if(self.pipe.fill() > 0, Ready::READABLE);
            ready = ready.with_if(self.pipe.writers() == 0, Ready::HANG_UP);
        }
        if self.side.writes() {
            ready = ready.with_if(self.pipe.ring().room() >= ATOMIC_BYTES, Ready::WRITABLE);
            ready = ready.with_if(self.pipe.readers() == 0, Ready::ERROR);
        }
        ready
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn does_not_wait(&self) {
        self.pipe.does_not_wait();
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        if self.side.reads() {
            visit(self.pipe.readable());
        }
        if self.side.writes() {
            visit(self.pipe.writable());
        }
    }

    /// A named pipe's node is one of its holders.
    fn held(&self) -> Held {
        let bytes = self.pipe.ring().capacity() + size_of::<Body>() + size_of::<Pipe>();
        Held::new(Kept::Pipes, bytes / Arc::strong_count(&self.pipe))
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        let code = self.pipe.code_for(makers);
        FileCode { read: code.read, write: code.write, ..FileCode::default() }
    }

    fn readiness(&self, makers: Makers) -> Option<Code<Readiness>> {
        let words = &self.pipe.ring().words;
        let ready = PipeReady {
            head: words.head.as_ptr() as u64,
            tail: words.tail.as_ptr() as u64,
            write_limit: words.write_limit.as_ptr() as u64,
            readers: self.pipe.readers.as_ptr() as u64,
            writers: self.pipe.writers.as_ptr() as u64,
        };
        match self.side {
            Side::Read => ready.of_read_end(makers),
            Side::Write => ready.of_write_end(makers),
            Side::Both => None,
        }
    }

    fn progress(&self) -> Option<Progress> {
        let words = &self.pipe.ring().words;
        Some(Progress { arrived: words.head.load(Ordering::Acquire), departed: words.tail.load(Ordering::Acquire) })
    }

    fn nameless(&self) -> Nameless {
        Nameless::Pipe(self.pipe.number)
    }

    fn ownership(&self) -> Option<&Ownership> {
        Some(&self.pipe.ownership)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        if self.side.reads() {
            self.pipe.readers.fetch_sub(1, Ordering::Relaxed);
            self.pipe.note_ends();
            self.scheduler.wake(self.pipe.writable());
        }
        if self.side.writes() {
            self.pipe.writers.fetch_sub(1, Ordering::Relaxed);
            self.pipe.note_ends();
            self.scheduler.wake(self.pipe.readable());
        }
    }
}
