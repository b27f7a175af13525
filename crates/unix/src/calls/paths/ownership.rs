//! Who may use a file: access, chmod, chown, umask.

use abi::Errno;
use abi::file::{AT_EACCESS, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, R_OK, W_OK, X_OK};
use abi::process::SECBIT_NO_SETUID_FIXUP;
use kernel::file::{Access, Capabilities, Credentials, FinalLink, Node, View};

use super::locate::{Located, check_flags, final_link, locate};
use crate::call::{Call, CallResult};
use crate::files::open_file::OpenFile;

/// `access` asks for the real ids, which is what a set-user program wants to know.
///
/// Errors: `EINVAL` for unknown modes or flags, those of a lookup, `EACCES`, `EROFS`.
pub fn access(call: &Call<'_>, directory: u64, path: u64, mode: u64, flags: u64) -> CallResult {
    let mode = mode as u32;
    if mode & !(R_OK | W_OK | X_OK) != 0 {
        return Err(Errno::EINVAL);
    }
    let flags = check_flags(flags, AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    let who = if flags & AT_EACCESS != 0 { call.process().credentials.borrow().clone() } else { real(call) };
    let path_bytes = call.read_path(path)?;
    if path_bytes.is_empty() && flags & AT_EMPTY_PATH != 0 {
        return match locate(call, directory, path, flags, FinalLink::Follow)? {
            Located::Node(node) => check(&who, &node, mode),
            Located::File(file) => match (file.node(), file.as_stream().and_then(|stream| stream.ownership())) {
                (Some(node), _) => check(&who, node, mode),
                (None, Some(ownership)) => ownership.permit(&who, wish(mode)).map(|()| 0),
                (None, None) => Err(Errno::EACCES),
            },
        };
    }
    let names = &call.unix.names;
    let found = call.with_view(directory, &path_bytes, |view| {
        let (view, last) = (View { credentials: &who, ..view }, final_link(flags));
        // Whether there is something at all takes no node.
        if mode == 0 {
            return names.look(view, &path_bytes, last).map(|_| None);
        }
        names.lookup(view, &path_bytes, last).map(Some)
    })?;
    found.map_or(Ok(0), |node| check(&who, &node, mode))
}

fn wish(mode: u32) -> Access {
    let has = |bit: u32| mode & bit != 0;
    Access { read: has(R_OK), write: has(W_OK), execute: has(X_OK) }
}

fn check(who: &Credentials, node: &Node, mode: u32) -> CallResult {
    let access = wish(mode);
    if access == Access::default() { Ok(0) } else { who.permit(node, access).map(|()| 0) }
}

fn real(call: &Call<'_>) -> Credentials {
    let process = call.process();
    let (user, group) = (process.user_ids.get().real, process.group_ids.get().real);
    let held = process.capabilities();
    // What the process could use as its real user.
    let capabilities = match (process.settings.get().secure_bits & SECBIT_NO_SETUID_FIXUP, user) {
        (0, 0) => held.permitted,
        (0, _) => Capabilities::NONE,
        _ => held.effective,
    };
    Credentials { user, group, capabilities, ..process.credentials.borrow().clone() }
}

pub fn chmod(call: &Call<'_>, directory: u64, path: u64, mode: u64, flags: u64) -> CallResult {
    let flags = check_flags(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    match locate(call, directory, path, flags, final_link(flags))? {
        Located::Node(node) => set_mode(call, &node, mode),
        Located::File(file) => set_mode_of(call, &file, mode),
    }
}

pub fn fchmod(call: &Call<'_>, descriptor: u64, mode: u64) -> CallResult {
    set_mode_of(call, &*call.file(descriptor)?, mode)
}

fn set_mode_of(call: &Call<'_>, file: &OpenFile, mode: u64) -> CallResult {
    let who = call.process().credentials.borrow();
    match (file.node(), file.as_stream().and_then(|stream| stream.ownership())) {
        (Some(node), _) => set_mode(call, node, mode),
        (None, Some(ownership)) => ownership.set_mode(&who, mode as u32).map(|()| 0),
        // All files of one kind without anything of their own share one mode on Linux, and nobody looks at it.
        (None, None) => Ok(0),
    }
}

fn set_mode(call: &Call<'_>, node: &Node, mode: u64) -> CallResult {
    let who = call.process().credentials.borrow();
    call.unix.names.set_mode(&who, node, mode as u32 & 0o7777, call.now()).map(|()| 0)
}

pub fn chown(call: &Call<'_>, directory: u64, path: u64, ids: [u64; 2], flags: u64) -> CallResult {
    let flags = check_flags(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    match locate(call, directory, path, flags, final_link(flags))? {
        Located::Node(node) => set_owner(call, &node, ids),
        Located::File(file) => set_owner_of(call, &file, ids),
    }
}

pub fn fchown(call: &Call<'_>, descriptor: u64, ids: [u64; 2]) -> CallResult {
    set_owner_of(call, &*call.file(descriptor)?, ids)
}

fn set_owner_of(call: &Call<'_>, file: &OpenFile, ids: [u64; 2]) -> CallResult {
    let who = call.process().credentials.borrow();
    let [user, group] = wanted(ids);
    match (file.node(), file.as_stream().and_then(|stream| stream.ownership())) {
        (Some(node), _) => set_owner(call, node, ids),
        (None, Some(ownership)) => ownership.set_owner(&who, user, group).map(|()| 0),
        (None, None) => Ok(0),
    }
}

/// An id of -1 stays as it is.
fn wanted(ids: [u64; 2]) -> [Option<u32>; 2] {
    ids.map(|id| Some(id as u32).filter(|id| *id != u32::MAX))
}

fn set_owner(call: &Call<'_>, node: &Node, ids: [u64; 2]) -> CallResult {
    let [user, group] = wanted(ids);
    let who = call.process().credentials.borrow();
    call.unix.names.set_owner(&who, node, user, group, call.now()).map(|()| 0)
}

pub fn umask(call: &Call<'_>, mask: u64) -> CallResult {
    let place = call.process().place.borrow();
    Ok(core::mem::replace(&mut place.borrow_mut().umask, mask as u32 & 0o777).into())
}
