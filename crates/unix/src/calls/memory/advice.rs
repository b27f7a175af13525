//! What programs say about memory they have mapped, and what they ask about it.

use alloc::sync::Arc;
use core::ops::Range;

use abi::Errno;
use abi::memory::*;
use kernel::space::{Access, Advice, AtFork, FaultKind, Identity, Space, USER_LIMIT};
use kernel::stream::UserRange;
use machine::{KernelCell, PAGE_BYTES, VirtAddr};

use super::{errno_of, space};
use crate::call::{Call, CallResult};
use crate::calls::parts;
use crate::files::backing::NodeBacking;

const PAGE: u64 = PAGE_BYTES as u64;

fn is_aligned(address: u64) -> bool {
    address & (PAGE - 1) == 0
}

fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_add(PAGE - 1).map(|sum| sum & !(PAGE - 1))
}

pub fn madvise(call: &Call<'_>, start: u64, bytes: u64, advice: u64) -> CallResult {
    let advice = advice as u32;
    let is_known = matches!(advice, MADV_REMOVE | MADV_POPULATE_READ | MADV_POPULATE_WRITE);
    if !is_known && known_advice(advice).is_none() || !is_aligned(start) {
        return Err(Errno::EINVAL);
    }
    let length = round_up(bytes).ok_or(Errno::EINVAL)?;
    start.checked_add(length).ok_or(Errno::EINVAL)?;
    if length == 0 {
        return Ok(0);
    }
    let space = space(call)?;
    match advice {
        MADV_REMOVE => return remove(call, start, length),
        MADV_POPULATE_READ => return populate(call, &space, start..start + length, Access::Read),
        MADV_POPULATE_WRITE => return populate(call, &space, start..start + length, Access::Write),
        _ => {}
    }
    let mut advice = known_advice(advice).ok_or(Errno::EINVAL)?;
    let may_take_long = length > parts::LARGE_BYTES && space.borrow().permits_release(start, length, advice);
    if may_take_long && parts::release_pages(call.held, call.unix.scheduler, &space, start, start + length) {
        // Nobody looks there again: of the stack of a thread that ends, most was never touched.
        advice = Advice::Nothing;
    }
    call.unix.change(call.held, &space, |space| space.advise(start, length, advice)).map(|()| 0)
}

/// Errors: `EINVAL` for what may not be accessed so, `EFAULT` behind the end of a file, `ENOMEM`.
fn populate(call: &Call<'_>, space: &Arc<KernelCell<Space>>, range: Range<u64>, access: Access) -> CallResult {
    parts::populate(call, space, range, Some(access)).map(|()| 0).map_err(|failure| match failure {
        FaultKind::Denied => Errno::EINVAL,
        FaultKind::PastEndOfFile | FaultKind::Failed | FaultKind::Coming => Errno::EFAULT,
        FaultKind::Unmapped | FaultKind::OutOfMemory => Errno::ENOMEM,
    })
}

/// What an advice means here; `None` for one that a kernel without huge pages and poisoned memory refuses.
fn known_advice(advice: u32) -> Option<Advice> {
    Some(match advice {
        MADV_DONTNEED => Advice::DontNeed,
        MADV_DONTNEED_LOCKED => Advice::DontNeedLocked,
        MADV_FREE => Advice::Free,
        MADV_DONTFORK => Advice::AtFork(AtFork::Omit),
        MADV_DOFORK | MADV_KEEPONFORK => Advice::AtFork(AtFork::Share),
        MADV_WIPEONFORK => Advice::AtFork(AtFork::Wipe),
        MADV_DONTDUMP => Advice::AtDump { omit: true },
        MADV_DODUMP => Advice::AtDump { omit: false },
        MADV_NORMAL | MADV_RANDOM | MADV_SEQUENTIAL | MADV_WILLNEED | MADV_MERGEABLE | MADV_UNMERGEABLE
        | MADV_HUGEPAGE | MADV_NOHUGEPAGE | MADV_COLD | MADV_PAGEOUT => Advice::Nothing,
        _ => return None,
    })
}

/// `MADV_REMOVE` of shared memory: it reads as zeros afterwards, for everyone.
///
/// Errors: `ENOMEM` for a gap, `EINVAL` for private memory, `EACCES` for a map without write.
fn remove(call: &Call<'_>, start: u64, bytes: u64) -> CallResult {
    let space = space(call)?;
    space.borrow().check_mapped(start, bytes).map_err(errno_of)?;
    if space.borrow().locked_bytes_within(start, start + bytes) != 0 {
        return Err(Errno::EINVAL);
    }
    match space.borrow().identity(start) {
        Some(Identity::Shared { .. }) => {}
        _ => return Err(Errno::EINVAL),
    }
    let cleared = call.with_io(false, |io| io.zero_out(UserRange { address: VirtAddr(start), bytes: bytes as usize }));
    if cleared == Ok(bytes as usize) { Ok(0) } else { Err(Errno::EACCES) }
}

/// Files are memory: what a map wrote is in the file already.
pub fn msync(call: &Call<'_>, start: u64, bytes: u64, flags: u64) -> CallResult {
    let known = MS_ASYNC | MS_INVALIDATE | MS_SYNC;
    let flags = flags as u32;
    let both = MS_ASYNC | MS_SYNC;
    if flags & !known != 0 || !is_aligned(start) || flags & both == both {
        return Err(Errno::EINVAL);
    }
    // A length that rounds to nothing behind 2^64 is an empty range to Linux.
    let length = round_up(bytes).unwrap_or(0);
    start.checked_add(length).ok_or(Errno::ENOMEM)?;
    let space = space(call)?;
    let mapped = space.borrow().check_mapped(start, length);
    if flags & MS_SYNC != 0 {
        space.borrow().sync(start, length);
        sync_kept(call, &space, start, length)?;
    }
    mapped.map(|()| 0).map_err(errno_of)
}

/// What shared areas have written to files that are kept elsewhere goes there. One file after the other: it takes its time, and the
/// areas may be others afterwards.
///
/// Errors: `EIO`, `ENOMEM`, `EINTR`.
fn sync_kept(call: &Call<'_>, space: &KernelCell<Space>, start: u64, bytes: u64) -> Result<(), Errno> {
    let (mut at, end) = (start, start.saturating_add(bytes));
    loop {
        let next = space.borrow().next_shared(at, end);
        let Some((backing, part_end)) = next else { return Ok(()) };
        let node = backing.as_any().and_then(|any| any.downcast_ref::<NodeBacking>()).map(NodeBacking::node);
        if let Some(content) = node.and_then(|node| node.content()) {
            crate::calls::transfer::extent::flush(call, content, 0..u64::MAX)?;
        }
        at = part_end;
    }
}

/// One byte per page: 1 if it is in memory. What was found before an error has been written.
pub fn mincore(call: &Call<'_>, start: u64, bytes: u64, vector: u64) -> CallResult {
    const PIECE: u64 = 128;
    if !is_aligned(start) {
        return Err(Errno::EINVAL);
    }
    if start.checked_add(bytes).is_none_or(|end| end > USER_LIMIT) {
        return Err(Errno::ENOMEM);
    }
    let pages = bytes.div_ceil(PAGE);
    if vector.checked_add(pages).is_none_or(|end| end > USER_LIMIT) {
        return Err(Errno::EFAULT);
    }
    let space = space(call)?;
    let mut done = 0;
    while done < pages {
        let mut piece = [0; PIECE as usize];
        let piece = &mut piece[..(pages - done).min(PIECE) as usize];
        for (index, byte) in piece.iter_mut().enumerate() {
            let page = start + (done + index as u64) * PAGE;
            *byte = u8::from(space.borrow().is_in_core(page).map_err(errno_of)?);
        }
        call.copy_out(vector + done, piece)?;
        done += piece.len() as u64;
        call.unix.scheduler.breathe(call.held);
        if call.task.is_ending() {
            break;
        }
    }
    Ok(0)
}
