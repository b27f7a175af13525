//! Answers in a process's vDSO (S-88): writing one, and taking all back.
//!
//! An answer stands as long as the process is who it was and has its quaspace for itself; then [`withdraw`] puts the
//! question back. A child begins with the questions.

use abi::Errno;
use kernel::space::{AreaLabel, Space};
use machine::KernelCell;

use super::process::Process;

/// The kernel answers again: the process has another identity, or shares its memory with one that has.
pub fn withdraw(process: &Process) {
    if process.has_user_calls.get()
        && let Some(space) = process.space()
    {
        process.has_user_calls.set(false);
        // The page is the process's own since the answers were written: nothing can fail.
        let _ = put_back(&space);
    }
}

/// The same for a quaspace that was copied. Error: `ENOMEM`, the copy has no page of its own.
pub fn put_back(space: &KernelCell<Space>) -> Result<(), Errno> {
    // The program may have changed the rights of its vDSO: an answer that stands there is taken back all the same.
    let is_there = |_: &Space, _, _| true;
    vdso::USER_CALLS.iter().try_for_each(|number| write(&mut space.borrow_mut(), *number, vdso::slow_head(), is_there))
}

/// Replaces the head of a call, wherever the program has its vDSO, if it may be there. What is no such head is not the vDSO any
/// more.
pub fn write(
    space: &mut Space,
    number: u64,
    head: vdso::Head,
    may: impl Fn(&Space, u64, usize) -> bool,
) -> Result<(), Errno> {
    let is_vdso = |label: &AreaLabel<'_>| matches!(label, AreaLabel::Backing(backing) if backing.name() == b"[vdso]");
    let start = space.areas().find(|area| is_vdso(&area.label)).map(|area| area.start);
    let Some(at) = start.zip(vdso::user_call_offset(number)).map(|(start, offset)| start + offset as u64) else {
        return Ok(());
    };
    let mut before = vdso::Head::default();
    if may(space, at, head.len()) && space.peek_bytes(at, &mut before).is_ok() && vdso::is_head(&before) {
        return space.poke_bytes(at, &head).map_err(|_| Errno::ENOMEM);
    }
    Ok(())
}
