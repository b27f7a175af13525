//! Where a process stands: chdir, fchdir, chroot, getcwd.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::CAP_SYS_CHROOT;
use kernel::file::{Access, FinalLink, Node};
use machine::TryGrow;

use super::HERE;
use super::locate::lookup;
use crate::call::{Call, CallResult};

/// Errors: those of a lookup, `ENOTDIR`, `EACCES`.
pub fn chdir(call: &Call<'_>, path: u64) -> CallResult {
    let node = directory(call, path)?;
    enter(call, node)
}

pub fn fchdir(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.any_file(descriptor)?;
    let node = file.node().filter(|node| node.is_directory()).ok_or(Errno::ENOTDIR)?;
    call.permit(node, Access::SEARCH)?;
    enter(call, node.clone())
}

fn enter(call: &Call<'_>, node: Arc<Node>) -> CallResult {
    let left = core::mem::replace(&mut call.process().place.borrow().borrow_mut().directory, node);
    drop(left);
    Ok(0)
}

/// Errors: as `chdir`; `EPERM` without privilege.
pub fn chroot(call: &Call<'_>, path: u64) -> CallResult {
    let node = directory(call, path)?;
    call.require(CAP_SYS_CHROOT)?;
    let left = core::mem::replace(&mut call.process().place.borrow().borrow_mut().root, node);
    drop(left);
    // Others may share the place (CLONE_FS).
    call.unix.tasks.unbind_opens();
    Ok(0)
}

/// A directory that the caller may search.
fn directory(call: &Call<'_>, path: u64) -> Result<Arc<Node>, Errno> {
    let path = call.read_path(path)?;
    let node = lookup(call, HERE, &path, FinalLink::Follow)?;
    if !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    call.permit(&node, Access::SEARCH)?;
    Ok(node)
}

/// The path's bytes with its NUL; their count is the result.
///
/// Errors: `ENOENT` when the directory was removed, `ERANGE`, `EFAULT`.
pub fn getcwd(call: &Call<'_>, address: u64, bytes: u64) -> CallResult {
    let place = call.process().place.borrow().borrow().clone();
    let mut path = call.unix.names.working_directory(&place.directory, &place.root)?;
    path.try_push(0)?;
    if path.len() as u64 > bytes {
        return Err(Errno::ERANGE);
    }
    call.copy_out(address, &path)?;
    Ok(path.len() as u64)
}
