//! What a process does with each signal: its 64 `sigaction`s.

use core::mem::offset_of;

use abi::Errno;
use abi::signal::{
    SA_EXPOSE_TAGBITS, SA_NOCLDSTOP, SA_NOCLDWAIT, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_RESTORER,
    SA_SIGINFO, SIG_DFL, SIG_IGN, SIGCHLD, SIGRTMAX, SigAction,
};

use super::set::{SignalSet, is_signal};

/// Flags that stay in a `sigaction`. Linux clears all others, so that a program can find out by
/// reading back what the kernel knows.
const KNOWN_FLAGS: u64 = SA_NOCLDSTOP
    | SA_NOCLDWAIT
    | SA_SIGINFO
    | SA_ONSTACK
    | SA_RESTART
    | SA_NODEFER
    | SA_RESETHAND
    | SA_EXPOSE_TAGBITS
    | SA_RESTORER;

const DEFAULT: SigAction = SigAction { sa_handler: SIG_DFL, sa_flags: 0, sa_restorer: 0, sa_mask: 0 };

/// The actions shared by the threads of a process (`CLONE_SIGHAND`). `fork` gives a clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actions {
    of: [SigAction; SIGRTMAX as usize],
}

/// What `sigaction` gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replaced {
    /// The action until now.
    pub old: SigAction,
    /// Remove these from every queue of the process, blocked or not: an ignored signal does not stay
    /// pending (POSIX 2.4.3).
    pub flush: SignalSet,
}

/// What a parent makes of a child's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildEnd {
    /// The child is reaped at once and no wait will find it.
    pub reap: bool,
    /// The parent is sent the signal.
    pub signal: bool,
}

impl Actions {
    /// Where routines find the actions, from signal 1 on.
    pub const OF_AT: usize = offset_of!(Actions, of);

    /// All default.
    pub const fn new() -> Actions {
        Actions { of: [DEFAULT; SIGRTMAX as usize] }
    }

    /// The action of `signal`; default for a number that is no signal.
    pub fn of(&self, signal: u32) -> SigAction {
        place(signal).and_then(|index| self.of.get(index)).copied().unwrap_or(DEFAULT)
    }

    /// The handler of each signal, from signal 1.
    pub fn handlers(&self) -> impl Iterator<Item = u64> {
        self.of.iter().map(|action| action.sa_handler)
    }

    /// `rt_sigaction` without a new action.
    ///
    /// Errors: `EINVAL` for a number that is no signal.
    pub fn get(&self, signal: u32) -> Result<SigAction, Errno> {
        if is_signal(signal) { Ok(self.of(signal)) } else { Err(Errno::EINVAL) }
    }

    /// `rt_sigaction` with a new action.
    ///
    /// Errors: `EINVAL` for a number that is no signal, and for `SIGKILL` and `SIGSTOP`.
    pub fn set(&mut self, signal: u32, action: &SigAction) -> Result<Replaced, Errno> {
        if !is_signal(signal) || SignalSet::UNBLOCKABLE.contains(signal) {
            return Err(Errno::EINVAL);
        }
        let old = self.of(signal);
        if let Some(kept) = self.place_mut(signal) {
            *kept = SigAction {
                sa_flags: action.sa_flags & KNOWN_FLAGS,
                sa_mask: SignalSet(action.sa_mask).blockable().0,
                ..*action
            };
        }
        let flush = if is_ignored(signal, action.sa_handler) { SignalSet::of(signal) } else { SignalSet::EMPTY };
        Ok(Replaced { old, flush })
    }

    /// Sets the handler alone to default, as a forced signal and `SA_RESETHAND` do: flags and mask stay.
    pub fn reset_handler(&mut self, signal: u32) {
        if let Some(action) = self.place_mut(signal) {
            action.sa_handler = SIG_DFL;
        }
    }

    /// What `execve` (and `CLONE_CLEAR_SIGHAND`) does: ignored signals stay ignored, the rest is default.
    pub fn reset_for_exec(&mut self) {
        for action in &mut self.of {
            let sa_handler = if action.sa_handler == SIG_IGN { SIG_IGN } else { SIG_DFL };
            *action = SigAction { sa_handler, ..DEFAULT };
        }
    }

    /// The signal would do nothing now: ignored, or default and ignored by default.
    pub fn ignores(&self, signal: u32) -> bool {
        is_ignored(signal, self.of(signal).sa_handler)
    }

    /// What this parent makes of the end of a child whose exit signal is `signal` (0: none).
    pub fn child_end(&self, signal: u32) -> ChildEnd {
        let action = self.of(SIGCHLD);
        let ignored = action.sa_handler == SIG_IGN;
        let reap = signal == SIGCHLD && (ignored || action.sa_flags & SA_NOCLDWAIT != 0);
        ChildEnd { reap, signal: is_signal(signal) && !(signal == SIGCHLD && ignored) }
    }

    /// This parent is sent `SIGCHLD` when a child stops or continues.
    pub fn wants_child_stops(&self) -> bool {
        let action = self.of(SIGCHLD);
        action.sa_handler != SIG_IGN && action.sa_flags & SA_NOCLDSTOP == 0
    }

    fn place_mut(&mut self, signal: u32) -> Option<&mut SigAction> {
        place(signal).and_then(|index| self.of.get_mut(index))
    }
}

impl Default for Actions {
    fn default() -> Actions {
        Actions::new()
    }
}

/// With `handler`, `signal` does nothing.
pub const fn is_ignored(signal: u32, handler: u64) -> bool {
    handler == SIG_IGN || (handler == SIG_DFL && SignalSet::DEFAULT_IGNORED.contains(signal))
}

fn place(signal: u32) -> Option<usize> {
    usize::try_from(signal.checked_sub(1)?).ok()
}
