//! Process groups and sessions (POSIX 11.1).

use alloc::sync::Arc;

use abi::Errno;

use crate::call::{Call, CallResult};
use crate::task::process::Process;

/// The process with this number, 0 being the caller's. Error: `ESRCH`.
fn find(call: &Call<'_>, pid: u64) -> Result<Arc<Process>, Errno> {
    match pid as u32 {
        0 => Ok(call.process().clone()),
        pid => call.unix.tasks.process(pid).ok_or(Errno::ESRCH),
    }
}

pub fn getpgid(call: &Call<'_>, pid: u64) -> CallResult {
    Ok(find(call, pid)?.family.get().group.into())
}

pub fn getsid(call: &Call<'_>, pid: u64) -> CallResult {
    Ok(find(call, pid)?.family.get().session.into())
}

/// Errors: `EINVAL`, `ESRCH` for neither the caller nor its child, `EACCES` for a child that has executed a
/// program, `EPERM` for a session leader, another session, or a group that is not in the session.
pub fn setpgid(call: &Call<'_>, pid: u64, group: u64) -> CallResult {
    let group = group as i32;
    if group < 0 {
        return Err(Errno::EINVAL);
    }
    let own = call.process();
    let target = find(call, pid)?;
    let mut family = target.family.get();
    if !Arc::ptr_eq(own, &target) {
        let parent = target.parent.borrow().upgrade();
        if !parent.is_some_and(|parent| Arc::ptr_eq(&parent, own)) {
            return Err(Errno::ESRCH);
        }
        if family.session != own.family.get().session {
            return Err(Errno::EPERM);
        }
        if target.has_executed.get() {
            return Err(Errno::EACCES);
        }
    }
    if family.session == target.pid {
        return Err(Errno::EPERM);
    }
    let group = if group == 0 { target.pid } else { group as u32 };
    if group != target.pid && !session_has_group(call, family.session, group) {
        return Err(Errno::EPERM);
    }
    family.group = group;
    call.unix.tasks.set_family(&target, family);
    target.unbind_identity();
    Ok(0)
}

fn session_has_group(call: &Call<'_>, session: u32, group: u32) -> bool {
    call.unix.tasks.group(group).any(|process| process.family.get().session == session)
}

/// Error: `EPERM` for the leader of a group.
pub fn setsid(call: &Call<'_>) -> CallResult {
    let own = call.process();
    if call.unix.tasks.group(own.pid).next().is_some() {
        return Err(Errno::EPERM);
    }
    let mut family = own.family.get();
    (family.group, family.session, family.has_terminal) = (own.pid, own.pid, false);
    call.unix.tasks.set_family(own, family);
    own.unbind_identity();
    Ok(own.pid.into())
}
