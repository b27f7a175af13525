//! Resource limits (`prlimit64`).

use abi::Errno;
use abi::process::{
    CAP_SYS_RESOURCE, RLIM_NLIMITS, RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_STACK,
    Rlimit,
};
use alloc::sync::Arc;

use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::calls::times::limit::watch as watch_time_limit;
use crate::emulator::Unix;
use crate::task::process::Process;
use abi::nr;

/// The process whose limits are meant. Errors: `ESRCH`, `EPERM` for another user's.
fn process(call: &Call<'_>, pid: u64) -> Result<Arc<Process>, Errno> {
    if pid as u32 == 0 {
        return Ok(call.process().clone());
    }
    let process = call.unix.tasks.task(pid as u32).ok_or(Errno::ESRCH)?.process.clone();
    let (own, theirs) = (call.process().user_ids.get(), process.user_ids.get());
    let same = [theirs.real, theirs.effective, theirs.saved].iter().all(|id| *id == own.real);
    let permitted = same || call.can(CAP_SYS_RESOURCE);
    if permitted { Ok(process) } else { Err(Errno::EPERM) }
}

/// Errors: `EINVAL` for an unknown resource or a soft limit above the hard one, `EPERM` to raise the hard one,
/// `ESRCH`, `EFAULT`.
fn prlimit(call: &Call<'_>, pid: u64, resource: u32, new: u64, old: u64) -> CallResult {
    let new = if new == 0 { None } else { Some(call.read::<Rlimit>(new)?) };
    let process = process(call, pid)?;
    let index = resource as usize;
    if index >= RLIM_NLIMITS {
        return Err(Errno::EINVAL);
    }
    let (soft, hard) = process.limits.borrow().0[index];
    if let Some(new) = new {
        let privileged = call.can(CAP_SYS_RESOURCE);
        if new.rlim_cur > new.rlim_max {
            return Err(Errno::EINVAL);
        }
        // More descriptors than the table can have: nobody may (Linux: fs.nr_open).
        let too_many = resource == RLIMIT_NOFILE && new.rlim_max > call.unix.families.tunables.descriptors.get();
        if too_many || new.rlim_max > hard && !privileged {
            return Err(Errno::EPERM);
        }
        process.limits.borrow_mut().0[index] = (new.rlim_cur, new.rlim_max);
        let is_applied = apply(call.unix, &process, resource);
        is_applied.inspect_err(|_| process.limits.borrow_mut().0[index] = (soft, hard))?;
    }
    call.write_if(old, &Rlimit { rlim_cur: soft, rlim_max: hard })?;
    Ok(0)
}

/// Limits that the quaspace watches itself, those that synthesized routines do not know, and the one that a timer watches.
/// Error: `ENOMEM`, and nothing has changed.
fn apply(unix: &'static Unix, process: &Arc<Process>, resource: u32) -> Result<(), Errno> {
    match resource {
        RLIMIT_CPU => watch_time_limit(unix, process)?,
        RLIMIT_NOFILE => process.unbind_opens(),
        RLIMIT_FSIZE => {
            // Who shares a table (CLONE_FILES) has a limit of its own.
            process.each_files(|files| {
                let is_limited = |other: &Arc<Process>| {
                    let mut shares = false;
                    other.each_files(|theirs| shares |= Arc::ptr_eq(theirs, files));
                    shares && other.limits.borrow().file_bytes() != u64::MAX
                };
                files.limit_writes(unix.tasks.processes().any(|other| is_limited(&other)));
            });
        }
        _ => {}
    }
    if !matches!(resource, RLIMIT_AS | RLIMIT_DATA | RLIMIT_STACK) {
        return Ok(());
    }
    let limits = process.limits.borrow().space();
    if let Some(space) = process.space() {
        space.borrow_mut().set_limits(limits);
    }
    Ok(())
}

fn getrlimit(call: &Call<'_>, resource: u32, into: u64) -> CallResult {
    let limits = call.process().limits.borrow().0.get(resource as usize).copied();
    let (rlim_cur, rlim_max) = limits.ok_or(Errno::EINVAL)?;
    call.write(into, &Rlimit { rlim_cur, rlim_max })?;
    Ok(0)
}

fn setrlimit(call: &Call<'_>, resource: u32, from: u64) -> CallResult {
    if from == 0 { Err(Errno::EFAULT) } else { prlimit(call, 0, resource, from, 0) }
}

pub const CALLS: &[Entry] = &[
    (nr::PRLIMIT64, |call, [a, b, c, d, ..]| prlimit(call, a, b as u32, c, d)),
    (nr::GETRLIMIT, |call, [a, b, ..]| getrlimit(call, a as u32, b)),
    (nr::SETRLIMIT, |call, [a, b, ..]| setrlimit(call, a as u32, b)),
];
