//! Signals that came and have not been taken: one queue for each thread, one for each process.

use alloc::collections::VecDeque;
use core::mem::offset_of;

use abi::Errno;
use abi::siginfo::{SI_USER, SigInfo};
use abi::signal::SIGKILL;
use machine::TryQueue;

use super::set::{SignalSet, is_real_time, is_signal};

/// What became of a signal put into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// It is pending now.
    Queued,
    /// A standard signal that was pending already; the first one's details stay.
    AlreadyPending,
}

/// A queue of pending signals. A new thread or process starts with an empty one; `execve` keeps it.
///
/// Invariant: each queued `SigInfo` names a signal of `set`. A signal of `set` need not be queued:
/// `SIGKILL` has no details, and those of others are lost when there is no room.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pending {
    set: SignalSet,
    queue: VecDeque<SigInfo>,
}

impl Pending {
    /// Where routines find which signals wait.
    pub const SET_AT: usize = offset_of!(Pending, set);

    pub const fn new() -> Pending {
        Pending { set: SignalSet::EMPTY, queue: VecDeque::new() }
    }

    /// The signals that are pending here.
    pub const fn set(&self) -> SignalSet {
        self.set
    }

    /// How many of a user's `RLIMIT_SIGPENDING` this queue holds.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Adds a signal. `room`: how many more queued signals `RLIMIT_SIGPENDING` allows the receiver's user.
    ///
    /// Without room a standard signal from the kernel or `kill` is queued all the same; any other is
    /// pending without details, but a real-time one that is not from `kill` is refused.
    ///
    /// Errors: `EAGAIN` for that; `EINVAL` for a number that is no signal.
    pub fn post(&mut self, info: &SigInfo, room: usize) -> Result<Posted, Errno> {
        let signal = u32::try_from(info.signo).ok().filter(|signal| is_signal(*signal)).ok_or(Errno::EINVAL)?;
        let real_time = is_real_time(signal);
        if !real_time && self.set.contains(signal) {
            return Ok(Posted::AlreadyPending);
        }
        if signal != SIGKILL {
            let free = !real_time && info.code >= SI_USER;
            if (free || room > 0) && self.queue.room_for(1).is_ok() {
                self.queue.put_back(*info);
            } else if real_time && info.code != SI_USER {
                return Err(Errno::EAGAIN);
            }
        }
        self.set = self.set.with(signal);
        Ok(Posted::Queued)
    }

    /// Forgets all of `signals`.
    pub fn flush(&mut self, signals: SignalSet) {
        self.set = self.set.minus(signals);
        self.queue.retain(|info| !signals.contains(info.signo as u32));
    }

    /// Takes the next signal that is not in `blocked`.
    pub fn take(&mut self, blocked: SignalSet) -> Option<SigInfo> {
        let signal = self.set.minus(blocked).first()?;
        if self.queue.front().is_some_and(|info| info.signo as u32 == signal) {
            return self.take_at(0);
        }
        let Some(index) = self.queue.iter().position(|info| info.signo as u32 == signal) else {
            self.set = self.set.minus(SignalSet::of(signal));
            return Some(SigInfo::kill(signal, 0, 0));
        };
        self.take_at(index)
    }

    /// Takes the oldest unblocked signal that an instruction of this thread raised (one with a code of
    /// the kernel, not one that somebody sent). Linux may take a blocked one here while another is not
    /// blocked; only a process that forges its own faults could tell.
    pub fn take_synchronous(&mut self, blocked: SignalSet) -> Option<SigInfo> {
        let urgent = self.set.minus(blocked).intersection(SignalSet::SYNCHRONOUS);
        if urgent.is_empty() {
            return None;
        }
        let index = self.queue.iter().position(|info| info.code > SI_USER && urgent.contains(info.signo as u32))?;
        self.take_at(index)
    }

    fn take_at(&mut self, index: usize) -> Option<SigInfo> {
        let info = if index == 0 { self.queue.pop_front()? } else { self.queue.remove(index)? };
        if self.queue.is_empty() {
            // Those without details stay.
            self.set = self.set.minus(SignalSet::of(info.signo as u32));
        } else if !self.queue.iter().any(|other| other.signo == info.signo) {
            self.set = self.set.minus(SignalSet::of(info.signo as u32));
        }
        Some(info)
    }
}

/// Takes the next signal not in `blocked`, from the thread's queue before the process's: what
/// `sigtimedwait` and `signalfd` read (there `blocked` is the complement of the wanted set).
pub fn take_next(thread: &mut Pending, process: &mut Pending, blocked: SignalSet) -> Option<SigInfo> {
    thread.take(blocked).or_else(|| process.take(blocked))
}
