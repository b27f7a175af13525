//! Sets of signals.

use abi::signal::{
    SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGILL, SIGKILL, SIGRTMAX, SIGRTMIN, SIGSEGV, SIGSTOP, SIGSYS, SIGTRAP, SIGTSTP,
    SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, set_bit,
};

/// A set of the signals 1 to 64, with the bits of Linux's `sigset_t`. Numbers that are no signals
/// are never in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct SignalSet(pub u64);

impl SignalSet {
    pub const EMPTY: SignalSet = SignalSet(0);
    /// Nobody can block, ignore or handle these.
    pub const UNBLOCKABLE: SignalSet = SignalSet(set_bit(SIGKILL) | set_bit(SIGSTOP));
    /// Raised by an instruction, delivered first so that the frame shows that instruction.
    pub const SYNCHRONOUS: SignalSet = SignalSet(
        set_bit(SIGSEGV) | set_bit(SIGBUS) | set_bit(SIGILL) | set_bit(SIGTRAP) | set_bit(SIGFPE) | set_bit(SIGSYS),
    );
    /// Stop the process by default.
    pub const STOPS: SignalSet = SignalSet(set_bit(SIGSTOP) | set_bit(SIGTSTP) | set_bit(SIGTTIN) | set_bit(SIGTTOU));
    /// Do nothing by default. `SIGCONT` is among them: it continues when sent, not when delivered.
    pub const DEFAULT_IGNORED: SignalSet =
        SignalSet(set_bit(SIGCONT) | set_bit(SIGCHLD) | set_bit(SIGWINCH) | set_bit(SIGURG));

    /// The set of `signal` alone; empty for a number that is no signal.
    pub const fn of(signal: u32) -> SignalSet {
        SignalSet(set_bit(signal))
    }

    pub const fn contains(self, signal: u32) -> bool {
        self.0 & set_bit(signal) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn with(self, signal: u32) -> SignalSet {
        SignalSet(self.0 | set_bit(signal))
    }

    #[must_use]
    pub const fn union(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 | other.0)
    }

    #[must_use]
    pub const fn intersection(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & other.0)
    }

    /// Those of `self` that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & !other.0)
    }

    /// The set as a mask: without the signals nobody can block.
    #[must_use]
    pub const fn blockable(self) -> SignalSet {
        self.minus(SignalSet::UNBLOCKABLE)
    }

    /// The signal to take first: synchronous ones before others, then the lowest number.
    pub const fn first(self) -> Option<u32> {
        let urgent = self.intersection(SignalSet::SYNCHRONOUS);
        let choice = if urgent.is_empty() { self } else { urgent };
        if choice.is_empty() { None } else { Some(choice.0.trailing_zeros() + 1) }
    }
}

/// The number names a signal, 1 to 64.
pub const fn is_signal(signal: u32) -> bool {
    signal >= 1 && signal <= SIGRTMAX
}

/// Real-time signals queue; others are pending at most once in each queue.
pub const fn is_real_time(signal: u32) -> bool {
    signal >= SIGRTMIN && signal <= SIGRTMAX
}
