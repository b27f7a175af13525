//! Who a process is: its numbers, users and groups, its place among groups of processes, its settings.
//!
//! ```text
//!   users.rs        user and group ids
//!   capabilities.rs what a process may do beyond its users
//!   groups.rs       process groups and sessions
//!   settings.rs     prctl
//!   user_calls.rs   answers that stand in the program
//! ```

mod capabilities;
mod groups;
mod settings;
pub(crate) mod user_calls;
mod users;

use core::sync::atomic::Ordering;

use abi::{Errno, nr};

use super::Entry;
use super::ptrace::may_access;
use crate::call::{Call, CallResult};

pub fn getpid(call: &Call<'_>) -> CallResult {
    Ok(call.process().pid.into())
}

pub fn getppid(call: &Call<'_>) -> CallResult {
    Ok(call.process().parent.borrow().upgrade().map_or(0, |parent| parent.pid.into()))
}

pub fn gettid(call: &Call<'_>) -> CallResult {
    Ok(call.task.tid.into())
}

pub fn set_tid_address(call: &Call<'_>, address: u64) -> CallResult {
    call.task.clear_child_tid.store(address, Ordering::Relaxed);
    Ok(call.task.tid.into())
}

/// Error: `EINVAL` for another size of the list head.
pub fn set_robust_list(call: &Call<'_>, head: u64, bytes: u64) -> CallResult {
    if bytes != 24 {
        return Err(Errno::EINVAL);
    }
    call.task.robust_list.store(head, Ordering::Relaxed);
    Ok(0)
}

/// Errors: `ESRCH`, `EPERM` for a thread that the caller may not look into, `EFAULT`.
pub fn get_robust_list(call: &Call<'_>, tid: u64, head: u64, bytes: u64) -> CallResult {
    let task = match tid as u32 {
        0 => call.task.clone(),
        tid => call.unix.tasks.task(tid).ok_or(Errno::ESRCH)?,
    };
    if !may_access(call.process(), &task.process) {
        return Err(Errno::EPERM);
    }
    call.write(bytes, &24u64)?;
    call.write(head, &task.robust_list.load(Ordering::Relaxed))?;
    Ok(0)
}

pub const CALLS: &[Entry] = &[
    (nr::GETPID, |call, _| getpid(call)),
    (nr::GETPPID, |call, _| getppid(call)),
    (nr::GETTID, |call, _| gettid(call)),
    (nr::SET_TID_ADDRESS, |call, [a, ..]| set_tid_address(call, a)),
    (nr::SET_ROBUST_LIST, |call, [a, b, ..]| set_robust_list(call, a, b)),
    (nr::GET_ROBUST_LIST, |call, [a, b, c, ..]| get_robust_list(call, a, b, c)),
    (nr::GETPGRP, |call, _| groups::getpgid(call, 0)),
    (nr::GETPGID, |call, [a, ..]| groups::getpgid(call, a)),
    (nr::SETPGID, |call, [a, b, ..]| groups::setpgid(call, a, b)),
    (nr::GETSID, |call, [a, ..]| groups::getsid(call, a)),
    (nr::SETSID, |call, _| groups::setsid(call)),
    (nr::GETUID, |call, _| Ok(call.process().user_ids.get().real.into())),
    (nr::GETEUID, |call, _| Ok(call.process().user_ids.get().effective.into())),
    (nr::GETGID, |call, _| Ok(call.process().group_ids.get().real.into())),
    (nr::GETEGID, |call, _| Ok(call.process().group_ids.get().effective.into())),
    (nr::GETRESUID, |call, [a, b, c, ..]| users::get_three(call, call.process().user_ids.get(), [a, b, c])),
    (nr::GETRESGID, |call, [a, b, c, ..]| users::get_three(call, call.process().group_ids.get(), [a, b, c])),
    (nr::SETUID, |call, [a, ..]| users::setuid(call, a)),
    (nr::SETGID, |call, [a, ..]| users::setgid(call, a)),
    (nr::SETREUID, |call, [a, b, ..]| users::setreuid(call, a, b)),
    (nr::SETREGID, |call, [a, b, ..]| users::setregid(call, a, b)),
    (nr::SETRESUID, |call, [a, b, c, ..]| users::setresuid(call, [a, b, c])),
    (nr::SETRESGID, |call, [a, b, c, ..]| users::setresgid(call, [a, b, c])),
    (nr::SETFSUID, |call, [a, ..]| users::setfsuid(call, a)),
    (nr::SETFSGID, |call, [a, ..]| users::setfsgid(call, a)),
    (nr::GETGROUPS, |call, [a, b, ..]| users::getgroups(call, a, b)),
    (nr::SETGROUPS, |call, [a, b, ..]| users::setgroups(call, a, b)),
    (nr::CAPGET, |call, [a, b, ..]| capabilities::capget(call, a, b)),
    (nr::CAPSET, |call, [a, b, ..]| capabilities::capset(call, a, b)),
    (nr::PRCTL, |call, [a, b, c, d, e, _]| settings::prctl(call, [a, b, c, d, e])),
];
