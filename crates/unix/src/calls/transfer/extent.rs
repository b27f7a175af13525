//! How large a file is and where it has storage: truncate, fallocate, and the calls that only advise.

use core::ops::Range;

use abi::Errno;
use abi::file::{AT_FDCWD, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE};
use abi::poll::IN_MODIFY;
use abi::process::CAP_SYS_TTY_CONFIG;
use abi::signal::SIGXFSZ;
use kernel::file::{Access, Content, File, FinalLink, Node, NodeKind};
use kernel::space::{BackingIdentity, Coming, Forget};
use machine::PAGE_BYTES;

use super::raise_on_caller;
use crate::call::{Call, CallResult};
use crate::calls::coming::{anew, bring_edges};
use crate::calls::parts;
use crate::files::open_file::{Body, OpenFile};

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
        Some(opening) => resize_outside(call, &**opening, length),
        None => set_size(call, node, length),
    }
}

fn resize_outside(call: &Call<'_>, opening: &dyn File, length: u64) -> CallResult {
    let limit = call.process().limits.borrow().file_bytes();
    if length > limit && length > opening.size() {
        raise_on_caller(call, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    opening.resize(length)?;
    if opening.keeps_pages() {
        forget_mappings(call, opening.node(), length.div_ceil(PAGE)..u64::MAX);
    }
    opening.node().happened(IN_MODIFY);
    Ok(0)
}

fn set_size(call: &Call<'_>, node: &Node, length: u64) -> CallResult {
    let old = node.content().map_or_else(|| node.attributes().size_bytes, |content| content.size());
    if length > old && length > call.process().limits.borrow().file_bytes() {
        raise_on_caller(call, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    if length < old {
        parts::shorten(call.held, call.unix.scheduler, node, length);
    }
    node.prepare()?;
    anew(call, || {
        node.content().map_or(Ok(()), |content| bring_edges(call, content, length..length))?;
        node.truncate(length, &call.process().credentials.borrow(), call.now())
    })?;
    if length < old {
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
    for (count, process) in call.unix.tasks.processes().enumerate() {
        if let Some(space) = process.space() {
            space.borrow_mut().forget_file(identity, pages.clone(), what);
        }
        if count % PROCESSES == PROCESSES - 1 {
            call.unix.scheduler.breathe(call.held);
        }
    }
}

/// Processes whose maps are looked through between two safe points.
const PROCESSES: usize = 32;

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
        anew(call, || {
            bring_edges(call, content, range.clone())?;
            forget(call, node, range.start.div_ceil(PAGE)..range.end / PAGE, Forget::FilesOwn);
            content.punch_hole(range.clone())
        })?;
    } else {
        // Of a file in memory the limit is one of pages, too, as on Linux.
        if end > content.size() {
            super::within_file_limit(call, end - 1, 1)?;
        }
        allocate(call, content, range)?;
        if mode & FALLOC_FL_KEEP_SIZE == 0 && end > content.size() {
            anew(call, || {
                bring_edges(call, content, content.size()..content.size())?;
                content.resize(end.max(content.size()))
            })?;
        }
    }
    node.note_write(&call.process().credentials.borrow(), call.now());
    node.happened(IN_MODIFY);
    Ok(0)
}

/// Bytes of a file that get storage between two safe points.
const ALLOCATED_BYTES: u64 = 128 << 10;

/// What is missing is counted first, so that usually nothing has changed where there is no room. Errors: `ENOSPC`; `EINTR` for a
/// signal; `EPERM` by a seal.
fn allocate(call: &Call<'_>, content: &Content, range: Range<u64>) -> Result<(), Errno> {
    let mut missing = 0;
    each_part(call, &range, |part| {
        missing += content.pages_missing(part)?;
        if content.has_room(missing) { Ok(()) } else { Err(Errno::ENOSPC) }
    })?;
    each_part(call, &range, |part| content.allocate(part))
}

fn each_part(
    call: &Call<'_>,
    range: &Range<u64>,
    mut act: impl FnMut(Range<u64>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut at = range.start;
    loop {
        let end = range.end.min((at / ALLOCATED_BYTES + 1) * ALLOCATED_BYTES);
        act(at..end)?;
        if end == range.end {
            return Ok(());
        }
        at = end;
        call.unix.scheduler.breathe(call.held);
        if call.task.is_interrupted() {
            return Err(Errno::EINTR);
        }
    }
}

fn is_fifo(file: &OpenFile) -> bool {
    file.stream_of::<kernel::pipe::PipeEnd>().is_some()
}

/// What a file has in memory is its page cache: of one that is kept elsewhere, pages can be sent for and given back. Other advice is
/// only checked. Errors: `EBADF`, `ESPIPE`, `EINVAL`.
pub fn fadvise(call: &Call<'_>, descriptor: u64, offset: i64, length: i64, advice: u32) -> CallResult {
    const LAST_ADVICE: u32 = 5;
    const WILL_NEED: u32 = 3;
    const DO_NOT_NEED: u32 = 4;
    let file = call.file(descriptor)?;
    if is_fifo(&file) {
        return Err(Errno::ESPIPE);
    }
    if length < 0 || advice > LAST_ADVICE {
        return Err(Errno::EINVAL);
    }
    let Some(content) = file.content().filter(|content| content.is_kept()) else { return Ok(0) };
    let start = offset as u64;
    let end = if length == 0 { u64::MAX } else { start.saturating_add(length as u64) };
    match advice {
        // They come while the program does something else. Without room for them they do not.
        WILL_NEED => _ = content.bring(start..end),
        DO_NOT_NEED => {
            send(content, start..end);
            content.release_clean(start..end);
        }
        _ => {}
    }
    Ok(0)
}

/// Sends the dirty pages of a range on their way, and waits for none. What has no room in memory now is sent later.
fn send(content: &Content, range: Range<u64>) {
    let mut next = range.start / PAGE;
    while let Ok(Some((after, _))) = content.flush_next(next, range.end.div_ceil(PAGE)) {
        if after == next {
            break;
        }
        next = after;
    }
}

/// Has the dirty pages of a range of the file kept.
///
/// Errors: `EIO` if one could not be, and then it is still dirty; `ENOMEM`; `EINTR` when the thread is to end.
pub fn flush(call: &Call<'_>, content: &Content, range: Range<u64>) -> Result<(), Errno> {
    let mut ways: [Option<Coming>; WAYS] = [const { None }; WAYS];
    let (mut next, end) = (range.start / PAGE, range.end.div_ceil(PAGE));
    let mut result = Ok(());
    loop {
        let mut under_way = 0;
        while under_way < WAYS
            && let Some((after, coming)) = content.flush_next(next, end)?
        {
            ways[under_way] = Some(coming);
            under_way += 1;
            if after == next {
                // It must go again when it has arrived.
                break;
            }
            next = after;
        }
        for way in ways.iter_mut().filter_map(Option::take) {
            match call.unix.await_coming(call.held, &way) {
                Err(Errno::EINTR) => return Err(Errno::EINTR),
                outcome => result = result.and(outcome),
            }
        }
        if under_way == 0 {
            return result;
        }
    }
}

/// Pages that are on their way to where a file is kept at a time.
const WAYS: usize = 32;

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
    if let Body::File(opening) = &file.body {
        return opening.sync().map(|()| 0);
    }
    if let Some(content) = file.content().filter(|content| content.is_kept()) {
        return flush(call, content, 0..u64::MAX).map(|()| 0);
    }
    if matches!(file.body, Body::Stream(_)) { Err(Errno::EINVAL) } else { Ok(0) }
}

/// Without the times. Errors: as `fsync`.
pub fn fdatasync(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    match &file.body {
        Body::File(opening) => opening.sync_data().map(|()| 0),
        _ => fsync(call, descriptor),
    }
}

/// What maps of shared folders hold goes to whoever shares them; nothing else is later anywhere than in the file. What cannot be made safe
/// is told by the next fsync.
pub fn sync() -> CallResult {
    let _ = kernel::file::share::sync_all();
    Ok(0)
}

/// Other files of a file system outside of the machine are synchronized by who wrote them. Error: `EBADF`.
pub fn syncfs(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.file(descriptor)?;
    match &file.body {
        Body::File(opening) => opening.sync().map(|()| 0),
        _ => Ok(0),
    }
}

/// Errors: `EBADF`, `EINVAL` for unknown flags or an impossible range, `ESPIPE` for what is no file or directory.
pub fn sync_file_range(call: &Call<'_>, descriptor: u64, range: [u64; 2], flags: u32) -> CallResult {
    const WAIT_BEFORE: u32 = 1;
    const WRITE: u32 = 2;
    const WAIT_AFTER: u32 = 4;
    let file = call.file(descriptor)?;
    let [offset, bytes] = range.map(|value| value as i64);
    if flags & !7 != 0 || offset < 0 || offset.checked_add(bytes).is_none_or(|end| end < offset) {
        return Err(Errno::EINVAL);
    }
    if let Some(content) = file.content().filter(|content| content.is_kept()) {
        let end = if bytes == 0 { u64::MAX } else { (offset + bytes) as u64 };
        match flags & (WRITE | WAIT_BEFORE | WAIT_AFTER) {
            0 => {}
            WRITE => send(content, offset as u64..end),
            _ => flush(call, content, offset as u64..end)?,
        }
    }
    if matches!(file.body, Body::Stream(_)) { Err(Errno::ESPIPE) } else { Ok(0) }
}

/// Error: `EPERM` without privilege.
pub fn vhangup(call: &Call<'_>) -> CallResult {
    call.require(CAP_SYS_TTY_CONFIG).map(|()| 0)
}
