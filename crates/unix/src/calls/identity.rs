//! Who a process is.

use super::Entry;
use crate::call::{Call, CallResult};
use abi::nr;
use core::sync::atomic::Ordering;

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
        return Err(abi::Errno::EINVAL);
    }
    call.task.robust_list.store(head, Ordering::Relaxed);
    Ok(0)
}

pub const CALLS: &[Entry] = &[
    (nr::GETPID, |call, _| getpid(call)),
    (nr::GETPPID, |call, _| getppid(call)),
    (nr::GETTID, |call, _| gettid(call)),
    (nr::SET_TID_ADDRESS, |call, [a, ..]| set_tid_address(call, a)),
    (nr::SET_ROBUST_LIST, |call, [a, b, ..]| set_robust_list(call, a, b)),
];
