//! How large a file is and where it has storage: truncate, fallocate, and the calls that only advise.

use core::ops::Range;

use abi::Errno;
use abi::file::{AT_FDCWD, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE};
use abi::poll::IN_MODIFY;
use abi::process::CAP_SYS_TTY_CONFIG;
use abi::signal::SIGXFSZ;
use kernel::file::{Access, FinalLink, Node, NodeKind, Opening};
use kernel::space::{BackingIdentity, Forget};
use machine::PAGE_BYTES;

use super::raise_on_caller;
use crate::call::{Call, CallResult};
use crate::calls::parts;
use crate::files::{Body, OpenFile};

const PAGE: u64 = PAGE_BYTES as u64;

/// Errors: `EINVAL` for a negative length or what is no regular file, those of a lookup, `EISDIR`, `EACCES`,
/// `ETXTBSY`, `EFBIG`.
pub fn truncate(call: &Call<'_>, path: u64, length: i64) -> CallResult {
    let length = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let path = call.read_path(path)?;
    let here = AT_FDCWD as u64;
    let node = call.with_view(here, &path, |view| call.unix.names.lookup(view, &path, FinalLink::Follow))?;
    match node.kind() {
        NodeKind::Directory => return Err(Errno::EISDIR),
        NodeKind::Regular => {}
        _ => return Err(Errno::EINVAL),
    }
    call.permit(&node, Access::WRITE)?;
    set_size(call, &node, length)
}

/// Errors: `EINVAL` for a negative length or what is no regular file open for writing, `EBADF`, `EFBIG`.
pub fn ftruncate(call: &Call<'_>, descriptor: u64, length: i64) -> CallResult {
    let length = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let file = call.file(descriptor)?;
    let node = file.node().filter(|node| node.kind() == NodeKind::Regular && file.is_writable());
    let node = node.ok_or(Errno::EINVAL)?;
    match file.outside() {
        Some(opening) => resize_outside(call, opening, length),
        None => set_size(call, node, length),
    }
}

fn resize_outside(call: &Call<'_>, opening: &Opening, length: u64) -> CallResult {
    let limit = call.process().limits.borrow().file_bytes();
    if length > limit && length > opening.size() {
        raise_on_caller(call, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    opening.resize(length)?;
    opening.node().happened(IN_MODIFY);
    Ok(0)
}

fn set_size(call: &Call<'_>, node: &Node, length: u64) -> CallResult {
    let old = match node.foreign() {
        Some(_) => node.attributes().size_bytes,
        None => node.content().map_or(0, |content| content.size()),
    };
    if length > old && length > call.process().limits.borrow().file_bytes() {
        raise_on_caller(call, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    if length < old {
        parts::shorten(call.unix.scheduler, node, length);
    }
    node.truncate(length, &call.process().credentials.borrow(), call.now())?;
    // Maps of a file outside show what is there.
    if length < old && node.foreign().is_none() {
        forget_mappings(call, node, length.div_ceil(PAGE)..u64::MAX);
    }
    Ok(0)
}

/// Pages (by number) of the file were cut off: every quaspace that shows them loses them.
pub fn forget_mappings(call: &Call<'_>, node: &Node, pages: Range<u64>) {
    forget(call, node, pages, Forget::AllCopies);
}

fn forget(call: &Call<'_>, node: &Node, pages: Range<u64>, what: Forget) {
    let (device_major, device_minor) = node.device();
    let identity = BackingIdentity { device_major, device_minor, inode: node.number() };
    for process in call.unix.tasks.processes() {
        if let Some(space) = process.space() {
            space.borrow_mut().forget_file(identity, pages.clone(), what);
        }
    }
}

/// Errors, in Linux's order: `EINVAL` for an impossible range, `ENOTSUP` for other modes than keeping the size and
/// punching a hole, `EBADF`, `ESPIPE`, `EISDIR`, `ENODEV`, `EFBIG`, `ENOSPC`.
pub fn fallocate(call: &Call<'_>, descriptor: u64, mode: u32, offset: i64, length: i64) -> CallResult {
    let file = call.file(descriptor)?;
    if offset < 0 || length <= 0 {
        return Err(Errno::EINVAL);
    }
    if let Some(opening) = file.outside().filter(|_| file.is_writable()) {
        let end = offset.checked_add(length).ok_or(Errno::EFBIG)? as u64;
        if mode & FALLOC_FL_KEEP_SIZE == 0 && end > opening.size() {
            super::within_file_limit(call, end - 1, 1)?;
        }
        return opening.allocate(mode, offset as u64..end).map(|()| {
            file.tell(IN_MODIFY);
            0
        });
    }
    let punches = mode & FALLOC_FL_PUNCH_HOLE != 0;
    if mode & !(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE) != 0 || (punches && mode & FALLOC_FL_KEEP_SIZE == 0) {
        return Err(Errno::ENOTSUP);
    }
    file.check_writable()?;
    if is_fifo(&file) {
        return Err(Errno::ESPIPE);
    }
    let content = file.content().ok_or(if file.is_directory() { Errno::EISDIR } else { Errno::ENODEV })?;
    let node = file.node().ok_or(Errno::ENODEV)?;
    let end = offset.checked_add(length).ok_or(Errno::EFBIG)? as u64;
    let range = offset as u64..end;
    if punches {
        content.punch_hole(range.clone())?;
        forget(call, node, range.start.div_ceil(PAGE)..range.end / PAGE, Forget::SharedOnly);
    } else {
        if mode & FALLOC_FL_KEEP_SIZE == 0 && end > content.size() {
            super::within_file_limit(call, end - 1, 1)?;
        }
        content.allocate(range)?;
        if mode & FALLOC_FL_KEEP_SIZE == 0 && end > content.size() {
            content.resize(end)?;
        }
    }
    node.note_write(&call.process().credentials.borrow(), call.now());
    node.happened(IN_MODIFY);
    Ok(0)
}

fn is_fifo(file: &OpenFile) -> bool {
    file.stream_of::<kernel::pipe::PipeEnd>().is_some()
}

/// Everything is in memory already, so advice is only checked. Errors: `EBADF`, `ESPIPE`, `EINVAL`.
pub fn fadvise(call: &Call<'_>, descriptor: u64, length: i64, advice: u32) -> CallResult {
    const LAST_ADVICE: u32 = 5;
    let file = call.file(descriptor)?;
    if is_fifo(&file) {
        return Err(Errno::ESPIPE);
    }
    if length < 0 || advice > LAST_ADVICE { Err(Errno::EINVAL) } else { Ok(0) }
}

/// Errors: `EBADF`, `EINVAL` for what is no file.
pub fn readahead(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    file.check_readable()?;
    if file.has_data() { Ok(0) } else { Err(Errno::EINVAL) }
}

/// What is outside of the machine is made safe there; nothing else is kept anywhere else. Errors: `EBADF`, `EINVAL`
/// for a stream, those of the other side.
pub fn fsync(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    if let Body::Outside(opening) = &file.body {
        return opening.sync().map(|()| 0);
    }
    if matches!(file.body, Body::Stream(_)) { Err(Errno::EINVAL) } else { Ok(0) }
}

/// Without the times. Errors: as `fsync`.
pub fn fdatasync(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    match &file.body {
        Body::Outside(opening) => opening.sync_data().map(|()| 0),
        _ => fsync(call, descriptor),
    }
}

/// Other files of a file system outside of the machine are synchronized by who wrote them. Error: `EBADF`.
pub fn syncfs(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    match &file.body {
        Body::Outside(opening) => opening.sync().map(|()| 0),
        _ => Ok(0),
    }
}

/// Errors: `EBADF`, `EINVAL` for unknown flags or an impossible range, `ESPIPE` for what is no file or directory.
pub fn sync_file_range(call: &Call<'_>, descriptor: u64, range: [u64; 2], flags: u32) -> CallResult {
    let file = call.file(descriptor)?;
    let [offset, bytes] = range.map(|value| value as i64);
    if flags & !7 != 0 || offset < 0 || offset.checked_add(bytes).is_none_or(|end| end < offset) {
        return Err(Errno::EINVAL);
    }
    if matches!(file.body, Body::Stream(_)) { Err(Errno::ESPIPE) } else { Ok(0) }
}

/// Error: `EPERM` without privilege.
pub fn vhangup(call: &Call<'_>) -> CallResult {
    call.require(CAP_SYS_TTY_CONFIG).map(|()| 0)
}
