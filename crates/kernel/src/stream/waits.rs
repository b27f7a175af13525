//! The circumstances of one call on a stream.

use abi::Errno;
use machine::{Held, Machine, Nanos, UserFault, VirtAddr};

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

/// The thread that calls, as far as a stream may know it.
pub trait Caller {
    /// A signal waits to be delivered to it.
    fn is_interrupted(&self) -> bool;

    /// A copy to or from its memory has ended early. If that was because a page must come first, sleeps until it is here: the copy
    /// is made anew. The caller holds nothing that others may need, and looks at everything again.
    ///
    /// Errors: `EFAULT` if nothing would come, or if it could not; `EINTR` when the thread is to end.
    fn await_page(&self, held: Held<'_>) -> Result<(), Errno> {
        let _ = held;
        Err(Errno::EFAULT)
    }
}

/// Makes a copy anew that has ended early, as often as a page comes for it. Errors: those of [`Caller::await_page`].
#[cold]
#[inline(never)]
pub fn copy_anew(
    await_page: impl Fn() -> Result<(), Errno>,
    mut copy: impl FnMut() -> Result<(), UserFault>,
) -> Result<(), Errno> {
    loop {
        await_page()?;
        if copy().is_ok() {
            return Ok(());
        }
    }
}

/// What a call on a stream may sleep for.
#[derive(Clone, Copy)]
pub enum Waits<'a> {
    /// For whatever it is that it wants.
    ForAll(Held<'a>),
    /// `O_NONBLOCK`: for pages that must come first; else it ends with `EAGAIN`.
    ForPages(Held<'a>),
    /// Code called it, which cannot leave for another thread.
    ForNothing,
}

impl<'a> Waits<'a> {
    #[inline(always)]
    pub fn new(held: Held<'a>, is_nonblocking: bool) -> Waits<'a> {
        if is_nonblocking { Waits::ForPages(held) } else { Waits::ForAll(held) }
    }
}

/// Who calls, and whether it may sleep.
pub struct Io<'a> {
    pub waits: Waits<'a>,
    pub scheduler: &'static Scheduler,
    pub caller: &'a dyn Caller,
}

impl<'a> Io<'a> {
    /// What it may leave for another thread with.
    pub fn held(&self) -> Option<Held<'a>> {
        match self.waits {
            Waits::ForAll(held) | Waits::ForPages(held) => Some(held),
            Waits::ForNothing => None,
        }
    }

    pub fn is_nonblocking(&self) -> bool {
        !matches!(self.waits, Waits::ForAll(_))
    }

    /// [`Caller::await_page`], where the call may sleep at all.
    #[cold]
    pub fn await_page(&self) -> Result<(), Errno> {
        self.caller.await_page(self.held().ok_or(Errno::EFAULT)?)
    }

    pub fn machine(&self) -> &'static dyn Machine {
        self.scheduler.machine()
    }

    /// A safe point in the midst of much ([`Scheduler::breathe`]), where the call may leave for another thread. Nothing is borrowed.
    pub fn breathe(&self) {
        if let Some(held) = self.held() {
            self.scheduler.breathe(held);
        }
    }

    /// A signal waits to be delivered to the calling thread.
    pub fn is_interrupted(&self) -> bool {
        self.caller.is_interrupted()
    }

    /// Copies from the program; sleeps where a page must come first, so nothing is borrowed meanwhile.
    ///
    /// Errors: `EFAULT`; `EINTR` when the thread is to end.
    #[inline]
    pub fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), Errno> {
        match self.machine().copy_in(from, into) {
            Ok(()) => Ok(()),
            Err(_) => self.copy_in_anew(from, into),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_in_anew(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), Errno> {
        copy_anew(|| self.await_page(), || self.machine().copy_in(from, into))
    }

    /// Copies to the program. As `copy_in`.
    #[inline]
    pub fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), Errno> {
        match self.machine().copy_out(to, from) {
            Ok(()) => Ok(()),
            Err(_) => self.copy_out_anew(to, from),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_out_anew(&self, to: VirtAddr, from: &[u8]) -> Result<(), Errno> {
        copy_anew(|| self.await_page(), || self.machine().copy_out(to, from))
    }

    /// Fills the program's memory with zeros; how many bytes. As `copy_in`.
    pub fn zero_out(&self, to: UserRange) -> Result<usize, Errno> {
        let mut done = 0;
        loop {
            let rest = to.after(done);
            done += self.machine().zero_out(rest.address, rest.bytes);
            if done == to.bytes {
                return Ok(done);
            }
            match self.await_page() {
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
                Ok(()) => {}
            }
        }
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

    /// When a wait ends that begins now and lasts `timeout` at most; 0: it has no end (`SO_RCVTIMEO`).
    pub fn deadline(&self, timeout: Nanos) -> Option<Nanos> {
        (timeout.0 > 0).then(|| self.machine().now().saturating_add(timeout))
    }

    /// As `wait`, but no longer than to `deadline`; then it is `EAGAIN`, too.
    pub fn wait_until(&self, queue: &WaitQueue, deadline: Option<Nanos>) -> Result<(), Errno> {
        if deadline.is_some_and(|deadline| self.machine().now() >= deadline) {
            return Err(Errno::EAGAIN);
        }
        self.wait_for(&[queue], deadline)
    }

    fn wait_for(&self, queues: &[&WaitQueue], deadline: Option<Nanos>) -> Result<(), Errno> {
        let Waits::ForAll(held) = self.waits else { return Err(Errno::EAGAIN) };
        if self.is_interrupted() {
            return Err(Errno::EINTR);
        }
        self.scheduler.sleep(held, queues, deadline);
        if self.is_interrupted() { Err(Errno::EINTR) } else { Ok(()) }
    }
}
