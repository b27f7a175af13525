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
pub(super) mod table;
pub(crate) mod user_calls;
mod users;

use core::sync::atomic::Ordering;

use abi::Errno;

use crate::call::{Call, CallResult};
use crate::calls::ptrace::attach::may_access;

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
