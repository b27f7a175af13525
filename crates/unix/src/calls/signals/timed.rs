//! Waiting for a signal without a handler (`rt_sigtimedwait`).

use abi::Errno;
use abi::siginfo::SigInfo;
use abi::time::Timespec;
use machine::Nanos;

use super::actions::check_set_size;
use crate::call::{Call, CallResult};
use crate::calls::times;
use crate::signal::pending::take_next;
use crate::signal::set::SignalSet;

/// Errors: `EAGAIN` when the time is up, `EINTR` for another signal, `EINVAL`, `EFAULT`.
pub fn rt_sigtimedwait(call: &Call<'_>, set: u64, info: u64, timeout: u64, set_bytes: u64) -> CallResult {
    check_set_size(set_bytes)?;
    let wanted = SignalSet(call.read(set)?).blockable();
    let wait = if timeout == 0 { None } else { Some(nanos(&call.read::<Timespec>(timeout)?)?) };
    let found = match take(call, wanted) {
        Some(found) => found,
        None if wait == Some(Nanos(0)) => return Err(Errno::EAGAIN),
        None => sleep(call, wanted, wait)?,
    };
    if info != 0 {
        call.copy_out(info, &found.to_bytes())?;
    }
    Ok(found.signo as u64)
}

fn nanos(time: &Timespec) -> Result<Nanos, Errno> {
    if time.tv_sec < 0 || !(0..1_000_000_000).contains(&time.tv_nsec) {
        return Err(Errno::EINVAL);
    }
    Ok(Nanos((time.tv_sec as u64).saturating_mul(Nanos::PER_SECOND).saturating_add(time.tv_nsec as u64)))
}

fn take(call: &Call<'_>, wanted: SignalSet) -> Option<SigInfo> {
    let blocked = SignalSet(!wanted.0);
    let mut taken = take_next(&mut call.task.pending.borrow_mut(), &mut call.process().pending.borrow_mut(), blocked)?;
    times::taken(call.unix, call.process(), &mut taken);
    Some(taken)
}

/// The wanted signals count as unblocked meanwhile, so that they wake the thread.
fn sleep(call: &Call<'_>, wanted: SignalSet, wait: Option<Nanos>) -> Result<SigInfo, Errno> {
    let deadline = wait.map(|wait| call.unix.machine.now().saturating_add(wait));
    call.task.change_mask(|mask| mask.begin_wait(wanted));
    let is_over = || deadline.is_some_and(|at| at <= call.unix.machine.now());
    while !call.task.is_interrupted() && !is_over() {
        call.unix.scheduler.sleep(call.held, &[], deadline);
    }
    call.task.change_mask(|mask| mask.end_wait());
    match take(call, wanted) {
        Some(found) => Ok(found),
        None if is_over() && !call.task.is_interrupted() => Err(Errno::EAGAIN),
        None => Err(Errno::EINTR),
    }
}
