//! `siginfo_t`: why a signal came (`asm-generic/siginfo.h`).

use crate::record::{Field, FieldPlace, numbers};

/// Sent by `kill`.
pub const SI_USER: i32 = 0;
/// Sent by the kernel.
pub const SI_KERNEL: i32 = 0x80;
/// Sent by `sigqueue`.
pub const SI_QUEUE: i32 = -1;
/// A POSIX timer expired.
pub const SI_TIMER: i32 = -2;
/// A message queue changed.
pub const SI_MESGQ: i32 = -3;
/// Asynchronous I/O ended.
pub const SI_ASYNCIO: i32 = -4;
/// Queued `SIGIO`.
pub const SI_SIGIO: i32 = -5;
/// Sent by `tkill` or `tgkill`.
pub const SI_TKILL: i32 = -6;

numbers! {
    /// Codes of `SIGILL`.
    ILL_CODES: i32 {
        ILL_ILLOPC = 1, ILL_ILLOPN = 2, ILL_ILLADR = 3, ILL_ILLTRP = 4, ILL_PRVOPC = 5, ILL_PRVREG = 6, ILL_COPROC = 7,
        ILL_BADSTK = 8,
    }
}
numbers! {
    /// Codes of `SIGFPE`.
    FPE_CODES: i32 {
        FPE_INTDIV = 1, FPE_INTOVF = 2, FPE_FLTDIV = 3, FPE_FLTOVF = 4, FPE_FLTUND = 5, FPE_FLTRES = 6, FPE_FLTINV = 7,
        FPE_FLTSUB = 8, FPE_FLTUNK = 14,
    }
}
numbers! {
    /// Codes of `SIGSEGV`.
    SEGV_CODES: i32 { SEGV_MAPERR = 1, SEGV_ACCERR = 2, SEGV_BNDERR = 3, SEGV_PKUERR = 4 }
}
numbers! {
    /// Codes of `SIGBUS`.
    BUS_CODES: i32 { BUS_ADRALN = 1, BUS_ADRERR = 2, BUS_OBJERR = 3 }
}
numbers! {
    /// Codes of `SIGTRAP`.
    TRAP_CODES: i32 { TRAP_BRKPT = 1, TRAP_TRACE = 2, TRAP_BRANCH = 3, TRAP_HWBKPT = 4, TRAP_UNK = 5 }
}
numbers! {
    /// Codes of `SIGCHLD`.
    CHILD_CODES: i32 {
        CLD_EXITED = 1, CLD_KILLED = 2, CLD_DUMPED = 3, CLD_TRAPPED = 4, CLD_STOPPED = 5, CLD_CONTINUED = 6,
    }
}
numbers! {
    /// Codes of `SIGIO`.
    IO_CODES: i32 { POLL_IN = 1, POLL_OUT = 2, POLL_MSG = 3, POLL_ERR = 4, POLL_PRI = 5, POLL_HUP = 6 }
}

/// Why a signal came, by kind; each kind fills other bytes of `siginfo_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Sent by a process (`SI_USER`, `SI_TKILL`) or, with zeros, by the kernel.
    Kill { pid: i32, uid: u32 },
    /// Sent by `sigqueue` with a value.
    Queue { pid: i32, uid: u32, value: u64 },
    /// A POSIX timer.
    Timer { id: i32, overrun: i32, value: u64 },
    /// A child changed state; times in ticks of `USER_HZ`.
    Child { pid: i32, uid: u32, status: i32, utime: i64, stime: i64 },
    /// A fault of the processor at `address`.
    Fault { address: u64 },
    /// A descriptor became ready (`SIGIO`).
    Poll { band: i64, fd: i32 },
    /// A forbidden call (`SIGSYS`).
    Call { address: u64, call: i32, architecture: u32 },
}

/// `siginfo_t` for a signal, ready to be written to a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigInfo {
    /// The signal's number.
    pub signo: i32,
    /// An error number, almost always zero.
    pub errno: i32,
    /// Why: one of `SI_…`, or a code of the signal.
    pub code: i32,
    /// The details.
    pub cause: Cause,
}

impl SigInfo {
    /// Size in a program's memory, in bytes.
    pub const BYTES: usize = 128;

    /// Where fields lie; several kinds share bytes.
    pub const FIELDS: &[FieldPlace] = &[
        FieldPlace { name: "si_signo", offset: 0, bytes: 4 },
        FieldPlace { name: "si_errno", offset: 4, bytes: 4 },
        FieldPlace { name: "si_code", offset: 8, bytes: 4 },
        FieldPlace { name: "si_pid", offset: PID, bytes: 4 },
        FieldPlace { name: "si_uid", offset: UID, bytes: 4 },
        FieldPlace { name: "si_status", offset: 24, bytes: 4 },
        FieldPlace { name: "si_utime", offset: 32, bytes: 8 },
        FieldPlace { name: "si_stime", offset: 40, bytes: 8 },
        FieldPlace { name: "si_value", offset: 24, bytes: 8 },
        FieldPlace { name: "si_tid", offset: PID, bytes: 4 },
        FieldPlace { name: "si_overrun", offset: 20, bytes: 4 },
        FieldPlace { name: "si_addr", offset: ADDRESS, bytes: 8 },
        FieldPlace { name: "si_band", offset: ADDRESS, bytes: 8 },
        FieldPlace { name: "si_fd", offset: 24, bytes: 4 },
        FieldPlace { name: "si_call_addr", offset: ADDRESS, bytes: 8 },
        FieldPlace { name: "si_syscall", offset: 24, bytes: 4 },
        FieldPlace { name: "si_arch", offset: 28, bytes: 4 },
    ];

    /// A signal that one process sent to another with `kill`.
    pub const fn kill(signal: u32, pid: i32, uid: u32) -> Self {
        Self { signo: signal as i32, errno: 0, code: SI_USER, cause: Cause::Kill { pid, uid } }
    }

    /// A signal that the kernel itself sends, such as `SIGINT` from the terminal.
    pub const fn kernel(signal: u32) -> Self {
        Self { signo: signal as i32, errno: 0, code: SI_KERNEL, cause: Cause::Kill { pid: 0, uid: 0 } }
    }

    /// A fault of the processor.
    pub const fn fault(signal: u32, code: i32, address: u64) -> Self {
        Self { signo: signal as i32, errno: 0, code, cause: Cause::Fault { address } }
    }

    /// A child's change of state: `status` is the exit code or the signal's number. `signal` is the one
    /// chosen at `clone`, `SIGCHLD` as a rule.
    pub const fn child(signal: u32, code: i32, pid: i32, uid: u32, status: i32) -> Self {
        let cause = Cause::Child { pid, uid, status, utime: 0, stime: 0 };
        Self { signo: signal as i32, errno: 0, code, cause }
    }

    /// The 128 bytes as they lie in a program's memory.
    pub fn to_bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        self.signo.put(&mut bytes[0..]);
        self.errno.put(&mut bytes[4..]);
        self.code.put(&mut bytes[8..]);
        match self.cause {
            Cause::Kill { pid, uid } => put_sender(&mut bytes, pid, uid),
            Cause::Queue { pid, uid, value } => {
                put_sender(&mut bytes, pid, uid);
                value.put(&mut bytes[24..]);
            }
            Cause::Timer { id, overrun, value } => {
                id.put(&mut bytes[PID..]);
                overrun.put(&mut bytes[UID..]);
                value.put(&mut bytes[24..]);
            }
            Cause::Child { pid, uid, status, utime, stime } => {
                put_sender(&mut bytes, pid, uid);
                status.put(&mut bytes[24..]);
                utime.put(&mut bytes[32..]);
                stime.put(&mut bytes[40..]);
            }
            Cause::Fault { address } => address.put(&mut bytes[ADDRESS..]),
            Cause::Poll { band, fd } => {
                band.put(&mut bytes[ADDRESS..]);
                fd.put(&mut bytes[24..]);
            }
            Cause::Call { address, call, architecture } => {
                address.put(&mut bytes[ADDRESS..]);
                call.put(&mut bytes[24..]);
                architecture.put(&mut bytes[28..]);
            }
        }
        bytes
    }

    /// Reads what a program gave to `rt_sigqueueinfo`, or what was written for a handler.
    ///
    /// Signal and code decide the kind, as in Linux; an unknown pair reads as `Cause::Queue`.
    pub fn from_bytes(bytes: &[u8; 128]) -> Self {
        let signo = i32::get(&bytes[0..]);
        let code = i32::get(&bytes[8..]);
        let (pid, uid) = (i32::get(&bytes[PID..]), u32::get(&bytes[UID..]));
        let status = i32::get(&bytes[24..]);
        let value = u64::get(&bytes[24..]);
        let address = u64::get(&bytes[ADDRESS..]);
        let cause = match (signo as u32, code) {
            (_, SI_USER | SI_TKILL | SI_KERNEL) => Cause::Kill { pid, uid },
            (_, SI_TIMER) => Cause::Timer { id: pid, overrun: uid as i32, value },
            (crate::signal::SIGCHLD, 1..=6) => {
                Cause::Child { pid, uid, status, utime: i64::get(&bytes[32..]), stime: i64::get(&bytes[40..]) }
            }
            (
                crate::signal::SIGILL
                | crate::signal::SIGFPE
                | crate::signal::SIGSEGV
                | crate::signal::SIGBUS
                | crate::signal::SIGTRAP,
                1..,
            ) => Cause::Fault { address },
            (crate::signal::SIGIO, 1..=6) | (_, SI_SIGIO) => Cause::Poll { band: address as i64, fd: status },
            (crate::signal::SIGSYS, 1..) => Cause::Call { address, call: status, architecture: u32::get(&bytes[28..]) },
            _ => Cause::Queue { pid, uid, value },
        };
        Self { signo, errno: i32::get(&bytes[4..]), code, cause }
    }
}

/// Offset of the sender's process id.
const PID: usize = 16;
/// Offset of the sender's user id.
const UID: usize = 20;
/// Offset of the faulting address.
const ADDRESS: usize = 16;

fn put_sender(bytes: &mut [u8; 128], pid: i32, uid: u32) {
    pid.put(&mut bytes[PID..]);
    uid.put(&mut bytes[UID..]);
}
