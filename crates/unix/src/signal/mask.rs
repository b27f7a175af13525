//! Which signals a thread blocks.

use core::mem::offset_of;

use abi::Errno;
use abi::signal::{SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK};

use super::deliver::HandlerCall;
use super::set::SignalSet;

/// The signal mask of a thread, with what `sigsuspend` and `sigtimedwait` put aside for a while.
/// `fork` and `clone` give the new thread [`ThreadMask::inherited`]; `execve` keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadMask {
    blocked: SignalSet,
    /// The mask to come back after `sigsuspend`, `ppoll`, `pselect` or `epoll_pwait`.
    saved: Option<SignalSet>,
    /// The mask to come back after `sigtimedwait`.
    waiting: Option<SignalSet>,
}

impl ThreadMask {
    /// Where routines find what is blocked.
    pub const BLOCKED_AT: usize = offset_of!(ThreadMask, blocked);

    pub const fn new(blocked: SignalSet) -> ThreadMask {
        ThreadMask { blocked: blocked.blockable(), saved: None, waiting: None }
    }

    /// The mask of a new thread or process.
    pub const fn inherited(&self) -> ThreadMask {
        ThreadMask::new(self.blocked)
    }

    /// What the thread blocks now.
    pub const fn blocked(&self) -> SignalSet {
        self.blocked
    }

    /// What `sigtimedwait` has put aside: signals in it are not discarded and not fatal at once, even
    /// while the wait lets them through.
    pub fn put_aside(&self) -> SignalSet {
        self.waiting.unwrap_or_default()
    }

    /// A call has put the mask aside for its length.
    pub fn is_put_aside(&self) -> bool {
        self.saved.is_some() || self.waiting.is_some()
    }

    /// `rt_sigprocmask`; gives the mask until now. What becomes unblocked may already be pending.
    ///
    /// Errors: `EINVAL` for an unknown `how`.
    pub fn change(&mut self, how: u32, set: SignalSet) -> Result<SignalSet, Errno> {
        let old = self.blocked;
        let new = match how {
            SIG_BLOCK => old.union(set),
            SIG_UNBLOCK => old.minus(set),
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        self.set(new);
        Ok(old)
    }

    /// Blocks exactly `set`, less what nobody can block.
    pub fn set(&mut self, set: SignalSet) {
        self.blocked = set.blockable();
    }

    /// Lets `signal` through, as a forced signal must.
    pub fn unblock(&mut self, signal: u32) {
        self.blocked = self.blocked.minus(SignalSet::of(signal));
    }

    /// Blocks `set` for the length of a call (`sigsuspend`, `ppoll`, ...). A handler that ends the call
    /// runs with this mask still in force; the frame keeps the mask from before.
    pub fn suspend(&mut self, set: SignalSet) {
        self.saved = Some(self.blocked);
        self.set(set);
    }

    /// The call ended without a handler: the mask from before `suspend` comes back. True: there was one.
    pub fn put_back(&mut self) -> bool {
        let saved = self.saved.take();
        saved.into_iter().for_each(|saved| self.set(saved));
        saved.is_some()
    }

    /// `sigtimedwait` sleeps for `set`: its signals wake the thread though it blocks them.
    pub fn begin_wait(&mut self, set: SignalSet) {
        self.waiting = Some(self.blocked);
        self.blocked = self.blocked.minus(set.blockable());
    }

    /// `sigtimedwait` woke.
    pub fn end_wait(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.set(waiting);
        }
    }

    /// The mask that a signal frame keeps.
    pub fn to_save(&self) -> SignalSet {
        self.saved.unwrap_or(self.blocked)
    }

    /// The frame of `call` stands on the program's stack: its handler's mask comes into force.
    pub fn enter(&mut self, call: &HandlerCall) {
        self.saved = None;
        self.set(call.handler_mask);
    }
}
