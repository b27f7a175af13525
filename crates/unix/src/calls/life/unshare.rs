//! `unshare`: the caller's own copies of what it shares with others; and the namespaces that there are not.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::*;
use machine::KernelCell;

use super::birth;
use crate::call::{Call, CallResult};

/// Those that a birth refuses, and the one that only this call names.
const NAMESPACES: u64 = birth::NAMESPACES | CLONE_NEWTIME;

/// Errors: `EINVAL` for unknown flags, for what only a process of one thread can have for itself, and for namespaces; `EPERM`
/// for those to a caller who may not make any; `ENOMEM`.
pub fn unshare(call: &Call<'_>, flags: u64) -> CallResult {
    const ALONE: u64 = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    if flags & !(ALONE | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | NAMESPACES) != 0 {
        return Err(Errno::EINVAL);
    }
    let process = call.process();
    let has_company = process.live_tasks() > 1
        || flags & (CLONE_SIGHAND | CLONE_VM) != 0 && Arc::strong_count(&process.actions()) > 2
        || flags & CLONE_VM != 0 && process.space().is_some_and(|space| Arc::strong_count(&space) > 2);
    // Who leaves a user namespace leaves the others of the process, too.
    let needs_alone = flags & (ALONE | CLONE_NEWUSER) != 0;
    if needs_alone && has_company {
        return Err(Errno::EINVAL);
    }
    if flags & NAMESPACES != 0 {
        if flags & NAMESPACES != CLONE_NEWUSER {
            call.require(CAP_SYS_ADMIN)?;
        }
        return Err(Errno::EINVAL);
    }
    if flags & CLONE_FILES != 0 {
        call.task.unshare_files()?;
    }
    if flags & CLONE_FS != 0 {
        let place = process.place.borrow().clone();
        let own = Arc::new(KernelCell::new(place.borrow().clone()));
        *process.place.borrow_mut() = own;
    }
    Ok(0)
}

/// Joins a namespace. Errors: `EBADF`; `EINVAL` for any file, since none is a namespace's, and none of another process can be
/// joined (Linux: `setns` on a kernel without namespaces).
pub fn setns(call: &Call<'_>, descriptor: u64, _kind: u32) -> CallResult {
    call.file(descriptor)?;
    Err(Errno::EINVAL)
}
