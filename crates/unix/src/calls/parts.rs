//! Long work in parts, with a safe point between two (R9): interrupts come in, and who is due runs.
//!
//! Between two parts others see the work half done, as they may on Linux, where other processors see it so.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use kernel::schedule::Scheduler;
use kernel::space::{Access, FaultKind, Presence, Space};
use kernel::stream::UserRange;
use machine::{Held, KernelCell};

use crate::call::Call;
pub use crate::files::emptying::{LARGE_BYTES, RELEASE_BYTES, empty, is_long_to_empty, shorten};

/// Bytes that are copied between two safe points.
pub const COPY_BYTES: usize = 32 << 10;
/// The same for what is added to the end of a file: so much stays in one piece when others add, too.
pub const APPEND_BYTES: usize = 1 << 20;
/// Bytes of memory whose pages a fork shares between two safe points.
const SHARE_BYTES: u64 = 1 << 20;
/// Bytes of strings, and strings, that `execve` takes between two safe points.
pub const STRING_BYTES: usize = 8 << 10;
pub const STRINGS: usize = 64;

/// Carries `range` in parts of `most` bytes; `carry` gets each with the bytes before it. An error counts only where nothing
/// was carried before it. What ends the caller's thread ends the work.
pub fn carry(
    call: &Call<'_>,
    range: UserRange,
    most: usize,
    mut carry: impl FnMut(UserRange, usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    loop {
        let part = range.after(done).first(most);
        let carried = match carry(part, done) {
            Ok(carried) => carried,
            Err(error) if done == 0 => return Err(error),
            Err(_) => return Ok(done),
        };
        done += carried;
        // No more than this can be carried, or all has been.
        if carried < part.bytes || done == range.bytes {
            return Ok(done);
        }
        call.unix.scheduler.breathe(call.held);
        if call.task.is_ending() {
            return Ok(done);
        }
    }
}

/// Gives back the pages in a range of addresses that is about to go, if they are many; the areas stay. Whether there are none: it was
/// looked, and nobody else has run since.
pub fn release_pages(held: Held<'_>, scheduler: &Scheduler, space: &KernelCell<Space>, from: u64, to: u64) -> bool {
    let mut next = from;
    if to - from <= LARGE_BYTES {
        return false;
    }
    loop {
        // A `while let` would keep the quaspace borrowed while others run and fault in it.
        let released = space.borrow_mut().release_some(next, to, RELEASE_BYTES);
        let Some(at) = released else { return next == from };
        next = at;
        scheduler.breathe(held);
    }
}

/// Gives back the pages and areas of a quaspace that nobody uses any more, if they are many.
pub fn release_space(held: Held<'_>, scheduler: &Scheduler, space: &Arc<KernelCell<Space>>) {
    if Arc::strong_count(space) == 1 && space.borrow().takes_long_to_dismantle() {
        loop {
            let is_more = space.borrow_mut().dismantle_some();
            if !is_more {
                return;
            }
            scheduler.breathe(held);
        }
    }
}

/// Supplies the pages of a range ahead of use, as many as there is memory for; see [`Space::populate_some`].
pub fn populate(
    call: &Call<'_>,
    space: &Arc<KernelCell<Space>>,
    range: Range<u64>,
    access: Option<Access>,
) -> Result<(), FaultKind> {
    let end = space.borrow().populated_at_most(range.start, range.end);
    let mut next = Some(range.start);
    while let Some(from) = next
        && from < end
        && !call.task.is_ending()
    {
        next = call.unix.reach(call.held, space, |space| space.populate_some(from..end, access))?;
        if next.is_some() {
            call.unix.scheduler.breathe(call.held);
        }
    }
    Ok(())
}

/// What is mapped from now on is locked: its pages are supplied, as far as there is memory.
pub fn populate_locked(call: &Call<'_>, space: &Arc<KernelCell<Space>>, range: Range<u64>) {
    let is_locked = space.borrow().locks_future() == Some(Presence::Now);
    if is_locked {
        let _ = populate(call, space, range, None);
    }
}

/// Shares the pages of the caller's quaspace with the copy that a fork makes of it. Others run meanwhile unless they could change the
/// quaspace: the copy is of one moment. Error: `ENOMEM`.
pub fn share_pages(call: &Call<'_>, space: &Arc<KernelCell<Space>>, copy: &mut Space) -> Result<(), Errno> {
    // The process has it, and whoever calls this.
    let is_alone = call.process().live_tasks() == 1 && Arc::strong_count(space) == 2;
    let mut next = 0;
    loop {
        let shared = space.borrow_mut().share_some(copy, next, SHARE_BYTES);
        let Some(at) = shared.map_err(|_| Errno::ENOMEM)? else { return Ok(()) };
        next = at;
        if is_alone {
            call.unix.scheduler.breathe(call.held);
        }
    }
}

/// Gives back strings, the last first.
pub fn forget_strings(held: Held<'_>, scheduler: &Scheduler, mut strings: Vec<Vec<u8>>) {
    while strings.pop().is_some() {
        if strings.len() % (4 * STRINGS) == 4 * STRINGS - 1 {
            scheduler.breathe(held);
        }
    }
}
