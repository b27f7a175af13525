//! Signals: numbers, default actions, sets, `sigaction` and alternate stacks (`asm/signal.h`).

use crate::record::{numbers, record};

numbers! {
    /// Signals below the real-time ones.
    SIGNALS: u32 {
        SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8, SIGKILL = 9,
        SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGSTKFLT = 16,
        SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23, SIGXCPU = 24,
        SIGXFSZ = 25, SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29, SIGPWR = 30, SIGSYS = 31,
    }
}
/// First real-time signal as the kernel counts (the C library keeps 32 and 33 for itself).
pub const SIGRTMIN: u32 = 32;
/// Highest signal.
pub const SIGRTMAX: u32 = 64;
/// Bytes of a signal set; calls refuse any other size.
pub const SIGSET_BYTES: usize = 8;

/// What a signal does to a process that neither handles nor ignores it (signal(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultAction {
    /// End the process.
    Terminate,
    /// End the process and say so in the wait status' core bit.
    Core,
    /// Nothing.
    Ignore,
    /// Stop all threads.
    Stop,
    /// Continue a stopped process.
    Continue,
}

/// The default action of `signal`; real-time signals terminate.
pub const fn default_action(signal: u32) -> DefaultAction {
    match signal {
        SIGQUIT | SIGILL | SIGTRAP | SIGABRT | SIGBUS | SIGFPE | SIGSEGV | SIGXCPU | SIGXFSZ | SIGSYS => {
            DefaultAction::Core
        }
        SIGCHLD | SIGURG | SIGWINCH => DefaultAction::Ignore,
        SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU => DefaultAction::Stop,
        SIGCONT => DefaultAction::Continue,
        _ => DefaultAction::Terminate,
    }
}

/// The name of a signal below the real-time ones.
pub fn signal_name(signal: u32) -> Option<&'static str> {
    let index = usize::try_from(signal.checked_sub(1)?).ok()?;
    SIGNALS.iter().nth(index).map(|(name, _)| name)
}

/// The bit of `signal` (1 to 64) in a set; 0 for a number that is no signal.
pub const fn set_bit(signal: u32) -> u64 {
    if signal >= 1 && signal <= SIGRTMAX { 1 << (signal - 1) } else { 0 }
}

/// `sa_handler`: the default action.
pub const SIG_DFL: u64 = 0;
/// `sa_handler`: ignore the signal.
pub const SIG_IGN: u64 = 1;

numbers! {
    /// Flags of `sigaction`.
    SIGACTION_FLAGS: u64 {
        SA_RESTORER = 0x0400_0000, SA_ONSTACK = 0x0800_0000, SA_RESTART = 0x1000_0000, SA_NODEFER = 0x4000_0000,
        SA_RESETHAND = 0x8000_0000, SA_NOCLDSTOP = 1, SA_NOCLDWAIT = 2, SA_SIGINFO = 4, SA_UNSUPPORTED = 0x400,
        SA_EXPOSE_TAGBITS = 0x800,
    }
}
numbers! {
    /// How `rt_sigprocmask` changes the mask.
    MASK_CHANGES: u32 { SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2 }
}
numbers! {
    /// Flags of an alternate stack.
    STACK_FLAGS: u32 { SS_ONSTACK = 1, SS_DISABLE = 2, SS_AUTODISARM = 0x8000_0000 }
}
/// Smallest alternate stack that `sigaltstack` takes, in bytes.
pub const MINSIGSTKSZ: u64 = 2048;

record! {
    /// `struct sigaction` as `rt_sigaction` takes it, with a set of 64 signals.
    SigAction, 32 bytes { sa_handler: u64, sa_flags: u64, sa_restorer: u64, sa_mask: u64 }
}
record! {
    /// `stack_t`.
    StackT, 24 bytes { ss_sp: u64, ss_flags: i32, _pad: u32, ss_size: u64 }
}
