//! Opening and closing.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use abi::Errno;
use abi::file::{
    O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_NOATIME, O_NOFOLLOW, O_PATH, O_RDONLY, O_TRUNC, O_WRONLY,
};
use kernel::file::{Access, Create, Data, Node, NodeKind, OpenHow};

use super::Entry;
use crate::call::{Call, CallResult};
use crate::files::{Body, Descriptor, OpenFile, Slot, device_stream};
use abi::nr;

pub fn close(call: &Call<'_>, descriptor: u64) -> CallResult {
    let slot = call.process().files().remove(Descriptor::from_register(descriptor))?;
    release(call, slot);
    Ok(0)
}

/// What closing a descriptor does beside dropping the file: record locks of the process on the node go.
pub fn release(call: &Call<'_>, slot: Slot) {
    if let Some(node) = slot.file.node() {
        node.locks().borrow_mut().unlock_all(call.process().pid.into());
    }
}

pub fn openat(call: &Call<'_>, directory: u64, path: u64, flags: u32, mode: u32) -> CallResult {
    let path = call.read_path(path)?;
    let file = open_path(call, directory, &path, flags, mode)?;
    let slot = Slot { file: Arc::new(file), close_on_exec: flags & O_CLOEXEC != 0 };
    let limit = call.process().limits.borrow().descriptors();
    call.process().files().add(slot, 0, limit).map(|descriptor| descriptor.0.into())
}

/// How the flags of `open` read.
fn how(call: &Call<'_>, flags: u32, mode: u32) -> OpenHow {
    let umask = call.process().umask.load(Ordering::Relaxed);
    let create = Create { mode: mode & 0o7777 & !umask, exclusive: flags & O_EXCL != 0 };
    let access = flags & O_ACCMODE;
    OpenHow {
        access: Access { read: access != O_WRONLY, write: access != O_RDONLY, execute: false },
        create: (flags & O_CREAT != 0).then_some(create),
        truncate: flags & O_TRUNC != 0,
        directory: flags & O_DIRECTORY != 0,
        no_follow: flags & O_NOFOLLOW != 0 || flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL,
        path_only: flags & O_PATH != 0,
        no_access_time: flags & O_NOATIME != 0,
    }
}

/// Opens a path; the flags that describe only the opening are not kept.
pub fn open_path(call: &Call<'_>, directory: u64, path: &[u8], flags: u32, mode: u32) -> Result<OpenFile, Errno> {
    let how = how(call, flags, mode);
    let opened = call.with_view(directory, path, |view| call.unix.names.open(view, path, how, call.now()))?;
    let kept = flags & !(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC | abi::file::O_NOCTTY);
    open_node(call, &opened.node, kept)
}

/// Opens a node that was found and may be opened.
pub fn open_node(call: &Call<'_>, node: &Arc<Node>, flags: u32) -> Result<OpenFile, Errno> {
    if flags & O_PATH != 0 {
        return Ok(OpenFile::new(Body::Node, Some(node.clone()), flags));
    }
    let body = match node.kind() {
        NodeKind::CharDevice(major, minor) => Body::Stream(device_stream(major, minor).ok_or(Errno::ENXIO)?),
        NodeKind::BlockDevice(..) | NodeKind::Socket => return Err(Errno::ENXIO),
        NodeKind::Fifo => return Err(Errno::ENXIO),
        NodeKind::Symlink => return Err(Errno::ELOOP),
        NodeKind::Directory => Body::Node,
        NodeKind::Regular => match node.data() {
            Data::VirtualFile(file) => Body::Virtual(file.content()?.into()),
            _ => Body::Node,
        },
    };
    let file = OpenFile::new(body, Some(node.clone()), flags);
    if node.content().is_some() && file.is_writable() {
        node.begin_write()?;
        file.count_as_writer();
    }
    let _ = call;
    Ok(file)
}

pub const CALLS: &[Entry] = &[
    (nr::CLOSE, |call, [a, ..]| close(call, a)),
    (nr::OPENAT, |call, [a, b, c, d, ..]| openat(call, a, b, c as u32, d as u32)),
    (nr::OPEN, |call, [a, b, c, ..]| openat(call, abi::file::AT_FDCWD as u64, a, b as u32, c as u32)),
];
