//! What a parent is told of its child: the details of `SIGCHLD` for each wait status.

use abi::process::WaitStatus;
use abi::siginfo::{CLD_CONTINUED, CLD_DUMPED, CLD_EXITED, CLD_KILLED, CLD_STOPPED, CLD_TRAPPED, Cause, SigInfo};
use abi::signal::SIGCONT;

/// Who changed state, as its parent sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Child {
    pub pid: i32,
    pub uid: u32,
    /// Time in the program and in the kernel, in ticks of `USER_HZ`.
    pub utime: i64,
    pub stime: i64,
}

/// The signal for a parent, `signal` being the child's exit signal (`SIGCHLD` for stops). `waitid` fills
/// the same fields, with `SIGCHLD` and without times.
pub fn child_info(signal: u32, child: &Child, status: WaitStatus) -> SigInfo {
    let (code, value) = match status {
        WaitStatus::Exited(code) => (CLD_EXITED, i32::from(code)),
        WaitStatus::Killed { signal, core: false } => (CLD_KILLED, i32::from(signal)),
        WaitStatus::Killed { signal, core: true } => (CLD_DUMPED, i32::from(signal)),
        WaitStatus::Stopped(signal) => (CLD_STOPPED, i32::from(signal)),
        WaitStatus::Trapped(code) => (CLD_TRAPPED, i32::from(code)),
        WaitStatus::Continued => (CLD_CONTINUED, SIGCONT as i32),
    };
    let Child { pid, uid, utime, stime } = *child;
    SigInfo { signo: signal as i32, errno: 0, code, cause: Cause::Child { pid, uid, status: value, utime, stime } }
}

/// The signal of `tkill` and `tgkill`.
pub const fn tkill_info(signal: u32, pid: i32, uid: u32) -> SigInfo {
    SigInfo { signo: signal as i32, errno: 0, code: abi::siginfo::SI_TKILL, cause: Cause::Kill { pid, uid } }
}
