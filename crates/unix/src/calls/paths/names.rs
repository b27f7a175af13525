//! Making, removing and changing names.

use abi::Errno;
use abi::file::{
    AT_EMPTY_PATH, AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, RENAME_EXCHANGE, RENAME_NOREPLACE, S_IFBLK, S_IFCHR,
    S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, major, minor,
};
use abi::process::CAP_DAC_READ_SEARCH;
use kernel::file::{FinalLink, LinkTarget, NewSpecial, NodeKind, RenameMode};

use super::locate::{check_flags, final_link_kept, locate, lookup};
use crate::call::{Call, CallResult, int};
use crate::calls::parts;

fn masked(call: &Call<'_>, mode: u64) -> u32 {
    mode as u32 & 0o7777 & !call.process().place.borrow().borrow().umask
}

pub fn mkdir(call: &Call<'_>, directory: u64, path: u64, mode: u64) -> CallResult {
    let path = call.read_path(path)?;
    let mode = masked(call, mode);
    call.with_view(directory, &path, |view| call.unix.names.make_directory(view, &path, mode, call.now()))?;
    Ok(0)
}

pub fn rmdir(call: &Call<'_>, directory: u64, path: u64) -> CallResult {
    let path = call.read_path(path)?;
    call.with_view(directory, &path, |view| call.unix.names.remove_directory(view, &path, call.now()))?;
    Ok(0)
}

pub fn unlink(call: &Call<'_>, directory: u64, path: u64) -> CallResult {
    let path = call.read_path(path)?;
    let node = call.with_view(directory, &path, |view| call.unix.names.unlink(view, &path, call.now()))?;
    parts::empty(call.held, call.unix.scheduler, &node);
    Ok(0)
}

pub fn unlinkat(call: &Call<'_>, directory: u64, path: u64, flags: u64) -> CallResult {
    let flags = check_flags(flags, AT_REMOVEDIR)?;
    if flags & AT_REMOVEDIR != 0 { rmdir(call, directory, path) } else { unlink(call, directory, path) }
}

/// `old` and `new` are a directory descriptor and the address of a path.
///
/// Errors: `EINVAL` for flags that are unknown or contradict each other; those of a renaming.
pub fn rename(call: &Call<'_>, old: [u64; 2], new: [u64; 2], flags: u64) -> CallResult {
    let mode = match check_flags(flags, RENAME_NOREPLACE | RENAME_EXCHANGE)? {
        0 => RenameMode::Replace,
        RENAME_NOREPLACE => RenameMode::Keep,
        RENAME_EXCHANGE => RenameMode::Exchange,
        _ => return Err(Errno::EINVAL),
    };
    let (old_path, new_path) = (call.read_path(old[1])?, call.read_path(new[1])?);
    call.with_view(old[0], &old_path, |from| {
        call.with_view(new[0], &new_path, |to| {
            call.unix.names.rename((from, &old_path), (to, &new_path), mode, call.now())
        })
    })?;
    Ok(0)
}

/// Errors: `EINVAL` for unknown flags, `ENOENT` for an empty path without privilege; those of a link.
pub fn link(call: &Call<'_>, old: [u64; 2], new: [u64; 2], flags: u64) -> CallResult {
    let mut flags = check_flags(flags, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
    if !call.can(CAP_DAC_READ_SEARCH) {
        flags &= !AT_EMPTY_PATH;
    }
    let node = locate(call, old[0], old[1], flags, final_link_kept(flags))?.node(Errno::EXDEV)?;
    let path = call.read_path(new[1])?;
    call.with_view(new[0], &path, |view| call.unix.names.link_node(&node, view, &path, call.now()))?;
    Ok(0)
}

pub fn symlink(call: &Call<'_>, target: u64, directory: u64, path: u64) -> CallResult {
    let target = call.read_path(target)?;
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    let path = call.read_path(path)?;
    call.with_view(directory, &path, |view| call.unix.names.make_symlink(view, &target, &path, call.now()))?;
    Ok(0)
}

/// Copies as much of the target as fits, without a NUL.
///
/// Errors: `EINVAL` for no room, or for what is not a symlink; those of a lookup.
pub fn readlink(call: &Call<'_>, directory: u64, path: u64, address: u64, bytes: u64) -> CallResult {
    if int(bytes) <= 0 {
        return Err(Errno::EINVAL);
    }
    let path = call.read_path(path)?;
    // An empty path means the link that the descriptor was opened on.
    let empty = path.is_empty();
    let node = if empty && int(directory) != AT_FDCWD {
        call.any_file(directory)?.node().cloned().ok_or(Errno::ENOENT)?
    } else {
        lookup(call, directory, &path, FinalLink::Keep)?
    };
    if !node.is_symlink() {
        return Err(if empty { Errno::ENOENT } else { Errno::EINVAL });
    }
    let target = match node.link_target()? {
        LinkTarget::Path(target) | LinkTarget::Node(_, target) => target,
    };
    let copied = target.len().min(int(bytes) as usize);
    call.copy_out(address, &target[..copied])?;
    Ok(copied as u64)
}

/// Errors: `EPERM` for a directory, `EINVAL` for another kind that cannot be made; those of a creation.
pub fn mknod(call: &Call<'_>, directory: u64, path: u64, mode: u64, device: u64) -> CallResult {
    // The call's device number has 32 bits.
    let device = u64::from(device as u32);
    let kind = match mode as u32 & S_IFMT {
        0 | S_IFREG => NodeKind::Regular,
        S_IFCHR => NodeKind::CharDevice(major(device), minor(device)),
        S_IFBLK => NodeKind::BlockDevice(major(device), minor(device)),
        S_IFIFO => NodeKind::Fifo,
        S_IFSOCK => NodeKind::Socket,
        S_IFDIR => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    };
    let path = call.read_path(path)?;
    let special = NewSpecial { kind, mode: masked(call, mode) };
    call.with_view(directory, &path, |view| call.unix.names.make_special(view, &path, special, call.now()))?;
    Ok(0)
}
