//! The numbers of these calls.

use abi::nr;

use super::{actions, descriptor, kill, timed};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::RT_SIGACTION, |call, [a, b, c, d, ..]| actions::rt_sigaction(call, a, b, c, d)),
    (nr::RT_SIGPROCMASK, |call, [a, b, c, d, ..]| actions::rt_sigprocmask(call, a, b, c, d)),
    (nr::RT_SIGPENDING, |call, [a, b, ..]| actions::rt_sigpending(call, a, b)),
    (nr::RT_SIGSUSPEND, |call, [a, b, ..]| actions::rt_sigsuspend(call, a, b)),
    (nr::RT_SIGRETURN, |call, _| actions::rt_sigreturn(call)),
    (nr::RT_SIGTIMEDWAIT, |call, [a, b, c, d, ..]| timed::rt_sigtimedwait(call, a, b, c, d)),
    (nr::RT_SIGQUEUEINFO, |call, [a, b, c, ..]| kill::rt_sigqueueinfo(call, a, b, c)),
    (nr::RT_TGSIGQUEUEINFO, |call, [a, b, c, d, ..]| kill::rt_tgsigqueueinfo(call, a, b, c, d)),
    (nr::SIGALTSTACK, |call, [a, b, ..]| actions::sigaltstack(call, a, b)),
    (nr::PAUSE, |call, _| actions::pause(call)),
    (nr::RESTART_SYSCALL, |call, _| actions::restart_syscall(call)),
    (nr::KILL, |call, [a, b, ..]| kill::kill(call, a, b)),
    (nr::TKILL, |call, [a, b, ..]| kill::tkill(call, a, b)),
    (nr::TGKILL, |call, [a, b, c, ..]| kill::tgkill(call, a, b, c)),
    (nr::SIGNALFD, |call, [a, b, c, ..]| descriptor::signalfd(call, a, b, c, 0)),
    (nr::SIGNALFD4, |call, [a, b, c, d, ..]| descriptor::signalfd(call, a, b, c, d)),
];
