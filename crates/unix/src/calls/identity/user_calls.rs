//! Calls that a program makes without the kernel (S-88): the answer is written into its vDSO, for the process alone.
//!
//! `task/user_calls.rs` writes it, and takes it back.

use alloc::sync::Arc;

use abi::{Errno, nr};
use kernel::space::Space;

use super::getpid;
use crate::call::{Call, CallResult};
use crate::task::user_calls::write;

/// `prctl(PR_SYNTHESIS_USER_CALL, number)`: does the call, and leaves its answer in the program.
///
/// Error: `EINVAL` for a call that has no user-level form.
pub fn ask(call: &Call<'_>, number: u64) -> CallResult {
    let process = call.process();
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    let value = match number {
        nr::GETPID => getpid(call)?,
        nr::GETUID => user.real.into(),
        nr::GETEUID => user.effective.into(),
        nr::GETGID => group.real.into(),
        nr::GETEGID => group.effective.into(),
        _ => return Err(Errno::EINVAL),
    };
    if let Some(space) = process.space()
        // One count is the process's, one is ours; any other is a child that has the memory until it executes.
        && Arc::strong_count(&space) <= 2
        && call.unix.makers().is_some()
        && !call.task.watch.is_traced()
    {
        process.has_user_calls.set(true);
        // Without memory the kernel is asked the next time, too.
        let _ = write(&mut space.borrow_mut(), number, vdso::constant_head(value as u32), Space::is_text);
    }
    Ok(value)
}
