//! The calls that send signals.

use alloc::sync::Arc;

use abi::Errno;
use abi::nr;
use abi::process::CAP_KILL;
use abi::siginfo::{SI_TKILL, SigInfo};
use abi::signal::{SIGCONT, SIGPIPE, SIGRTMAX};

use super::routines;
use super::send::{send_to_process, send_to_task, try_send_to_process, try_send_to_task};
use crate::call::{Call, CallResult};
use crate::signal::child::tkill_info;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Errors: `EINVAL` for no signal, `ESRCH` for nobody, `EPERM` when none of them may be sent it.
pub fn kill(call: &Call<'_>, pid: u64, signal: u64) -> CallResult {
    let signal = check(signal)?;
    let own = call.process();
    let info = SigInfo::kill(signal, own.pid as i32, own.user_ids.get().real);
    let group = match pid as i32 {
        i32::MIN => return Err(Errno::ESRCH),
        -1 => return kill_all(call, &info),
        0 => own.family.get().group,
        group @ ..0 => group.unsigned_abs(),
        pid => {
            let process = find(call, pid as u32)?;
            permit(call, &process, signal)?;
            send(call, &process, &info);
            if Arc::ptr_eq(&process, own) {
                routines::raised(call, call.task, nr::KILL);
            }
            return Ok(0);
        }
    };
    kill_each(call, call.unix.tasks.group(group), &info)
}

/// Success if one of them may be sent the signal.
fn kill_each(call: &Call<'_>, processes: impl Iterator<Item = Arc<Process>>, info: &SigInfo) -> CallResult {
    let mut result = Err(Errno::ESRCH);
    for process in processes {
        match permit(call, &process, info.signo as u32) {
            Ok(()) => {
                send(call, &process, info);
                result = Ok(0);
            }
            Err(error) if result.is_err() => result = Err(error),
            Err(_) => {}
        }
    }
    result
}

/// All but the first process and the caller's own.
fn kill_all(call: &Call<'_>, info: &SigInfo) -> CallResult {
    let is_other = |process: &Arc<Process>| process.pid != 1 && !Arc::ptr_eq(process, call.process());
    match kill_each(call, call.unix.tasks.processes().filter(is_other), info) {
        // Those that may not be sent it do not count here.
        Err(Errno::EPERM) => Ok(0),
        result => result,
    }
}

fn send(call: &Call<'_>, process: &Arc<Process>, info: &SigInfo) {
    if info.signo != 0 {
        send_to_process(call.unix, process, info);
    }
}

/// Errors: `EINVAL`, `ESRCH`, `EPERM`.
pub fn tkill(call: &Call<'_>, tid: u64, signal: u64) -> CallResult {
    if tid as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    kill_task(call, None, tid as u32, signal)
}

/// Errors: `EINVAL`, `ESRCH` also for a thread of another process, `EPERM`.
pub fn tgkill(call: &Call<'_>, pid: u64, tid: u64, signal: u64) -> CallResult {
    if tid as i32 <= 0 || pid as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    kill_task(call, Some(pid as u32), tid as u32, signal)
}

fn kill_task(call: &Call<'_>, pid: Option<u32>, tid: u32, signal: u64) -> CallResult {
    let task = find_task(call, pid, tid)?;
    let signal = check(signal)?;
    permit(call, &task.process, signal)?;
    if signal != 0 {
        let own = call.process();
        let info = tkill_info(signal, own.pid as i32, own.user_ids.get().real);
        send_to_task(call.unix, &task, &info);
        if pid.is_some() {
            routines::raised(call, &task, nr::TGKILL);
        }
    }
    Ok(0)
}

/// Errors: `EPERM` for details that only the kernel gives, `EINVAL`, `ESRCH`, `EAGAIN`, `EFAULT`.
pub fn rt_sigqueueinfo(call: &Call<'_>, pid: u64, signal: u64, info: u64) -> CallResult {
    let info = read_info(call, signal, info)?;
    if pid as u32 != call.process().pid && is_forged(&info) {
        return Err(Errno::EPERM);
    }
    let process = find(call, pid as u32)?;
    let signal = check(signal)?;
    permit(call, &process, signal)?;
    if signal != 0 {
        try_send_to_process(call.unix, &process, &info)?;
    }
    Ok(0)
}

/// Errors: as `rt_sigqueueinfo`.
pub fn rt_tgsigqueueinfo(call: &Call<'_>, pid: u64, tid: u64, signal: u64, info: u64) -> CallResult {
    let info = read_info(call, signal, info)?;
    if tid as i32 <= 0 || pid as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    if pid as u32 != call.process().pid && is_forged(&info) {
        return Err(Errno::EPERM);
    }
    let task = find_task(call, Some(pid as u32), tid as u32)?;
    let signal = check(signal)?;
    permit(call, &task.process, signal)?;
    if signal != 0 {
        try_send_to_task(call.unix, &task, &info)?;
    }
    Ok(0)
}

fn read_info(call: &Call<'_>, signal: u64, address: u64) -> Result<SigInfo, Errno> {
    let mut bytes = [0; SigInfo::BYTES];
    call.copy_in(address, &mut bytes)?;
    bytes[..4].copy_from_slice(&(signal as u32).to_le_bytes());
    Ok(SigInfo::from_bytes(&bytes))
}

/// The details look as if the kernel or `tkill` had sent the signal.
fn is_forged(info: &SigInfo) -> bool {
    info.code >= 0 || info.code == SI_TKILL
}

/// Error: `EINVAL` for a number that is neither a signal nor 0.
pub fn check(signal: u64) -> Result<u32, Errno> {
    let signal = signal as u32;
    if signal <= SIGRTMAX { Ok(signal) } else { Err(Errno::EINVAL) }
}

/// The process with this number, or that of the thread with it. Error: `ESRCH`.
fn find(call: &Call<'_>, pid: u32) -> Result<Arc<Process>, Errno> {
    let tasks = &call.unix.tasks;
    tasks.process(pid).or_else(|| tasks.task(pid).map(|task| task.process.clone())).ok_or(Errno::ESRCH)
}

fn find_task(call: &Call<'_>, pid: Option<u32>, tid: u32) -> Result<Arc<Task>, Errno> {
    let task = call.unix.tasks.task(tid).ok_or(Errno::ESRCH)?;
    if pid.is_none_or(|pid| pid == task.process.pid) { Ok(task) } else { Err(Errno::ESRCH) }
}

/// Error: `EPERM` unless the users fit; `SIGCONT` may always be sent within the session.
pub fn permit(call: &Call<'_>, process: &Arc<Process>, signal: u32) -> Result<(), Errno> {
    let own = call.process();
    let (mine, theirs) = (own.user_ids.get(), process.user_ids.get());
    let fits = |user: u32| user == theirs.real || user == theirs.saved;
    let same_session = own.family.get().session == process.family.get().session;
    let allowed = Arc::ptr_eq(own, process)
        || own.can(CAP_KILL)
        || fits(mine.effective)
        || fits(mine.real)
        || signal == SIGCONT && same_session;
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

/// A write met a stream that nobody reads: the writer is told by a signal, too.
pub fn broken_pipe(call: &Call<'_>) {
    let own = call.process();
    let info = SigInfo::kill(SIGPIPE, own.pid as i32, own.user_ids.get().real);
    send_to_task(call.unix, call.task, &info);
}
