//! User and group ids (credentials(7)).

use alloc::collections::BinaryHeap;

use abi::process::{CAP_SETGID, CAP_SETUID};
use abi::{Errno, Field};
use machine::{KernelCell, try_arc_slice, try_collect};

use crate::call::{Call, CallResult};
use crate::task::process::Ids;

/// As an argument: leave this id.
const KEEP: u32 = u32::MAX;
/// Most supplementary groups (`NGROUPS_MAX`).
const GROUPS_MAX: u64 = 65_536;

/// Which of the two kinds of ids a call is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Group,
}

impl Kind {
    fn cell<'a>(self, call: &'a Call<'_>) -> &'a KernelCell<Ids> {
        let process = call.process();
        if self == Kind::User { &process.user_ids } else { &process.group_ids }
    }

    /// Whether the caller may take any ids.
    fn is_free(self, call: &Call<'_>) -> bool {
        call.can(if self == Kind::User { CAP_SETUID } else { CAP_SETGID })
    }
}

/// Takes new ids; the file-system id follows the effective one, and the capabilities follow the users.
fn set(call: &Call<'_>, kind: Kind, ids: Ids) {
    let before = core::mem::replace(&mut *kind.cell(call).borrow_mut(), ids);
    let mut credentials = call.process().credentials.borrow_mut();
    match kind {
        Kind::User => credentials.user = ids.effective,
        Kind::Group => credentials.group = ids.effective,
    }
    drop(credentials);
    if kind == Kind::User {
        let secure_bits = call.process().settings.get().secure_bits;
        call.process().hold(call.process().capabilities().after_user_change(before, ids, secure_bits));
    }
    call.process().unbind_identity();
    if before.effective != ids.effective {
        // Who changes its user may know secrets that the new user must not read.
        let mut settings = call.process().settings.borrow_mut();
        settings.dumpable = 0;
        settings.parent_death_signal = 0;
    }
}

/// Error: `EFAULT`.
pub fn get_three(call: &Call<'_>, ids: Ids, [real, effective, saved]: [u64; 3]) -> CallResult {
    call.write(real, &ids.real)?;
    call.write(effective, &ids.effective)?;
    call.write(saved, &ids.saved)?;
    Ok(0)
}

pub fn setuid(call: &Call<'_>, id: u64) -> CallResult {
    set_one(call, Kind::User, id as u32)
}

pub fn setgid(call: &Call<'_>, id: u64) -> CallResult {
    set_one(call, Kind::Group, id as u32)
}

/// Errors: `EINVAL` for no id, `EPERM` for one that is neither real nor saved.
fn set_one(call: &Call<'_>, kind: Kind, id: u32) -> CallResult {
    if id == KEEP {
        return Err(Errno::EINVAL);
    }
    let mut ids = kind.cell(call).get();
    if kind.is_free(call) {
        ids = Ids { real: id, effective: id, saved: id };
    } else if id == ids.real || id == ids.saved {
        ids.effective = id;
    } else {
        return Err(Errno::EPERM);
    }
    set(call, kind, ids);
    Ok(0)
}

pub fn setreuid(call: &Call<'_>, real: u64, effective: u64) -> CallResult {
    set_two(call, Kind::User, real as u32, effective as u32)
}

pub fn setregid(call: &Call<'_>, real: u64, effective: u64) -> CallResult {
    set_two(call, Kind::Group, real as u32, effective as u32)
}

/// Error: `EPERM`.
fn set_two(call: &Call<'_>, kind: Kind, real: u32, effective: u32) -> CallResult {
    let old = kind.cell(call).get();
    let mut new = old;
    let privileged = kind.is_free(call);
    if real != KEEP {
        if !privileged && real != old.real && real != old.effective {
            return Err(Errno::EPERM);
        }
        new.real = real;
    }
    if effective != KEEP {
        // Linux's setregid, unlike setreuid, takes the saved group too; both do today.
        if !privileged && ![old.real, old.effective, old.saved].contains(&effective) {
            return Err(Errno::EPERM);
        }
        new.effective = effective;
    }
    if real != KEEP || effective != KEEP && effective != old.real {
        new.saved = new.effective;
    }
    set(call, kind, new);
    Ok(0)
}

pub fn setresuid(call: &Call<'_>, ids: [u64; 3]) -> CallResult {
    set_three(call, Kind::User, ids)
}

pub fn setresgid(call: &Call<'_>, ids: [u64; 3]) -> CallResult {
    set_three(call, Kind::Group, ids)
}

/// Error: `EPERM` for an id that is none of the three.
fn set_three(call: &Call<'_>, kind: Kind, ids: [u64; 3]) -> CallResult {
    let old = kind.cell(call).get();
    let known = [old.real, old.effective, old.saved];
    let privileged = kind.is_free(call);
    let [mut real, mut effective, mut saved] = known;
    for (place, id) in [&mut real, &mut effective, &mut saved].into_iter().zip(ids) {
        let id = id as u32;
        if id == KEEP {
            continue;
        }
        if !privileged && !known.contains(&id) {
            return Err(Errno::EPERM);
        }
        *place = id;
    }
    set(call, kind, Ids { real, effective, saved });
    Ok(0)
}

/// Gives the id until now; a refused one is no error.
pub fn setfsuid(call: &Call<'_>, id: u64) -> CallResult {
    let id = id as u32;
    let ids = call.process().user_ids.get();
    let process = call.process();
    let old = process.credentials.borrow().user;
    if id != KEEP && (call.can(CAP_SETUID) || [ids.real, ids.effective, ids.saved, old].contains(&id)) {
        process.credentials.borrow_mut().user = id;
        process.hold(process.capabilities().after_file_user_change(old, id, process.settings.get().secure_bits));
    }
    process.unbind_opens();
    Ok(old.into())
}

/// As `setfsuid`.
pub fn setfsgid(call: &Call<'_>, id: u64) -> CallResult {
    let id = id as u32;
    let ids = call.process().group_ids.get();
    let privileged = call.can(CAP_SETGID);
    let mut credentials = call.process().credentials.borrow_mut();
    let old = credentials.group;
    if id != KEEP && (privileged || [ids.real, ids.effective, ids.saved, old].contains(&id)) {
        credentials.group = id;
    }
    drop(credentials);
    call.process().unbind_opens();
    Ok(old.into())
}

/// Errors: `EINVAL` when there are more than fit, `EFAULT`.
pub fn getgroups(call: &Call<'_>, count: u64, list: u64) -> CallResult {
    let groups = call.process().credentials.borrow().groups.clone();
    let count = count as i32;
    if count < 0 || count != 0 && (count as usize) < groups.len() {
        return Err(Errno::EINVAL);
    }
    if count != 0 {
        let bytes = try_collect(groups.iter().flat_map(|group| group.to_le_bytes()))?;
        call.copy_out(list, &bytes)?;
    }
    Ok(groups.len() as u64)
}

/// Errors: `EPERM`, `EINVAL` for too many, `EFAULT`.
pub fn setgroups(call: &Call<'_>, count: u64, list: u64) -> CallResult {
    call.require(CAP_SETGID)?;
    let count = u64::from(count as u32);
    if count > GROUPS_MAX {
        return Err(Errno::EINVAL);
    }
    let bytes = call.read_bytes(list, count as usize * 4)?;
    let groups = BinaryHeap::from(try_collect(bytes.chunks_exact(4).map(u32::get))?);
    call.process().credentials.borrow_mut().groups = try_arc_slice(&groups.into_sorted_vec())?;
    call.process().unbind_opens();
    Ok(0)
}
