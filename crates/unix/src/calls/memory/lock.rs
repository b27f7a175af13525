//! Locked memory: `mlock` and its kin.

use alloc::sync::Arc;

use abi::Errno;
use abi::memory::{MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT};
use abi::process::CAP_IPC_LOCK;
use kernel::space::{FaultKind, Presence, Space};
use machine::KernelCell;

use super::{errno_of, space};
use crate::call::{Call, CallResult};
use crate::calls::parts;

/// Bytes that the caller may still lock.
pub fn lock_room(call: &Call<'_>, space: &Space) -> u64 {
    if call.can(CAP_IPC_LOCK) {
        return u64::MAX;
    }
    let limit = call.process().limits.borrow().locked_bytes();
    limit.saturating_sub(space.locked_bytes())
}

/// Errors: `EPERM` when the caller may lock nothing, `ENOMEM` when it may not lock that much, and for a gap; `EINVAL` for a
/// range that wraps around.
fn lock(call: &Call<'_>, start: u64, bytes: u64, presence: Presence) -> CallResult {
    if call.process().limits.borrow().locked_bytes() == 0 && !call.can(CAP_IPC_LOCK) {
        return Err(Errno::EPERM);
    }
    let Some((first, end)) = Space::touched(start, bytes) else { return Err(Errno::EINVAL) };
    let space = space(call)?;
    // What is locked already counts once.
    let fresh = end - first - space.borrow().locked_bytes_within(first, end).min(end - first);
    if fresh > lock_room(call, &space.borrow()) {
        return Err(Errno::ENOMEM);
    }
    let locked = space.borrow_mut().lock(start, bytes);
    locked.map_err(errno_of)?;
    match presence {
        Presence::OnFault => Ok(0),
        Presence::Now => match parts::populate(call, &space, first..end, None) {
            Ok(()) | Err(FaultKind::Denied) => Ok(0),
            Err(_) => Err(Errno::ENOMEM),
        },
    }
}

pub fn mlock(call: &Call<'_>, start: u64, bytes: u64) -> CallResult {
    lock(call, start, bytes, Presence::Now)
}

/// Errors: as `mlock`, and `EINVAL` for unknown flags.
pub fn mlock2(call: &Call<'_>, start: u64, bytes: u64, flags: u64) -> CallResult {
    const ON_FAULT: u32 = 1;
    match flags as u32 {
        0 => lock(call, start, bytes, Presence::Now),
        ON_FAULT => lock(call, start, bytes, Presence::OnFault),
        _ => Err(Errno::EINVAL),
    }
}

/// Errors: `ENOMEM` for a gap, `EINVAL` for a range that wraps around.
pub fn munlock(call: &Call<'_>, start: u64, bytes: u64) -> CallResult {
    let space = space(call)?;
    let unlocked = space.borrow_mut().unlock(start, bytes);
    unlocked.map(|()| 0).map_err(errno_of)
}

/// Errors: `EINVAL`; `EPERM` and `ENOMEM` as `mlock`.
pub fn mlockall(call: &Call<'_>, flags: u64) -> CallResult {
    let flags = flags as u32;
    let has = |flag: u32| flags & flag != 0;
    if flags == 0 || flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags == MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    let limit = call.process().limits.borrow().locked_bytes();
    let space = space(call)?;
    let is_free = call.can(CAP_IPC_LOCK);
    if limit == 0 && !is_free {
        return Err(Errno::EPERM);
    }
    if has(MCL_CURRENT) && space.borrow().usage().total > limit && !is_free {
        return Err(Errno::ENOMEM);
    }
    let presence = if has(MCL_ONFAULT) { Presence::OnFault } else { Presence::Now };
    space.borrow_mut().lock_future(has(MCL_FUTURE).then_some(presence));
    if has(MCL_CURRENT) {
        space.borrow_mut().lock_all();
        if presence == Presence::Now {
            populate_all(call, &space);
        }
    }
    Ok(0)
}

/// Pages that cannot be had are passed over, as on Linux.
fn populate_all(call: &Call<'_>, space: &Arc<KernelCell<Space>>) {
    let mut at = 0;
    loop {
        let next = space.borrow().area_behind(at);
        let Some(area) = next else { return };
        at = area.end;
        if parts::populate(call, space, area, None) == Err(FaultKind::OutOfMemory) {
            return;
        }
    }
}

pub fn munlockall(call: &Call<'_>) -> CallResult {
    space(call)?.borrow_mut().unlock_all();
    Ok(0)
}
