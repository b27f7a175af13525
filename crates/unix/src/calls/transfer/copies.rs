//! From file to file inside the kernel: sendfile, copy_file_range, splice, tee, vmsplice.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::O_APPEND;
use abi::poll::{IN_ACCESS, IN_MODIFY};
use kernel::file::File;
use kernel::pipe::{PipeEnd, Side};

use super::super::coming::{anew, bring};
use super::vectors::{Ranges, read_ranges, write_ranges};
use super::{At, end_of, note_broken, note_written, starts_within_file_limit, within_file_limit};
use crate::call::{Call, CallResult};
use crate::files::memory::MemoryDevice;
use crate::files::open_file::{Body, OpenFile};
use crate::limits::{PIECE_BYTES, TRANSFER_BYTES_MAX};

/// Flags of `splice` and its kin: MOVE, NONBLOCK, MORE, GIFT.
const SPLICE_FLAGS: u32 = 15;
const SPLICE_NONBLOCK: u32 = 2;

/// One side of a copy: a file, and where in it.
struct End {
    file: Arc<OpenFile>,
    at: At,
}

impl End {
    fn position(&self) -> u64 {
        match self.at {
            At::Offset(offset) => offset,
            _ => self.file.position(),
        }
    }

    fn advance(&mut self, bytes: usize) {
        let position = self.position() + bytes as u64;
        match &mut self.at {
            At::Offset(offset) => *offset = position,
            _ => self.file.set_position(position),
        }
    }
}

/// An offset that a program gives by address. Errors: `EFAULT`, `EINVAL` for a negative one.
fn place(call: &Call<'_>, address: u64) -> Result<At, Errno> {
    if address == 0 {
        return Ok(At::Position);
    }
    let offset: i64 = call.read(address)?;
    u64::try_from(offset).map(At::Offset).map_err(|_| Errno::EINVAL)
}

/// Tells the program where a transfer by offset ended.
fn tell_place(call: &Call<'_>, address: u64, end: &End) -> Result<(), Errno> {
    if let At::Offset(offset) = end.at { call.write(address, &offset) } else { Ok(()) }
}

/// Reads a piece without moving on.
fn take(call: &Call<'_>, from: &End, piece: &mut [u8], nonblocking: bool) -> Result<usize, Errno> {
    match &from.file.body {
        Body::Stream(stream) => call.with_io(nonblocking, |io| stream.read_kernel(io, piece)),
        Body::File(opening) => anew(call, || opening.read_at(from.position(), piece)),
        Body::Node => {
            let content = from.file.content().ok_or(Errno::EINVAL)?;
            let read = anew(call, || {
                bring(call, content, from.position(), piece.len())?;
                Ok(content.read_at(from.position(), piece))
            })?;
            if read > 0
                && let Some(node) = from.file.node()
            {
                node.note_read(call.now());
            }
            Ok(read)
        }
    }
}

/// Writes a piece and moves on.
fn give(call: &Call<'_>, to: &mut End, piece: &[u8], nonblocking: bool) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &to.file.body {
        let written = call.with_io(nonblocking, |io| stream.write_kernel(io, piece));
        note_broken(call, &written);
        return written;
    }
    if let Some(opening) = to.file.outside() {
        return give_outside(call, to, opening.clone(), piece);
    }
    let content = to.file.content().ok_or(Errno::EINVAL)?;
    let (position, written) = anew(call, || {
        let position = if to.at == At::Position && to.file.is_appending() { end_of(&to.file) } else { to.position() };
        let allowed = within_file_limit(call, position, piece.len() as u64)? as usize;
        bring(call, content, position, allowed)?;
        content.write_at(position, &piece[..allowed]).map(|written| (position, written))
    })?;
    note_written(call, &to.file);
    match &mut to.at {
        At::Offset(offset) => *offset = position + written as u64,
        _ => to.file.set_position(position + written as u64),
    }
    Ok(written)
}

/// Writes the kernel's own bytes into a file at a place; how many. Errors: those of a write.
pub fn put_at(call: &Call<'_>, file: &Arc<OpenFile>, at: u64, piece: &[u8]) -> Result<usize, Errno> {
    give(call, &mut End { file: file.clone(), at: At::Offset(at) }, piece, false)
}

fn give_outside(call: &Call<'_>, to: &mut End, opening: Arc<dyn File>, piece: &[u8]) -> Result<usize, Errno> {
    let position = to.position();
    let allowed = within_file_limit(call, position, piece.len() as u64)? as usize;
    let written = opening.write_at(position, &piece[..allowed])?;
    if to.at == At::Position && to.file.is_appending() {
        to.file.set_position(opening.size());
    } else {
        to.advance(written);
    }
    Ok(written)
}

/// Most bytes that one call moves to or from a stream; callers must be ready for less than they asked for.
const STREAM_GO_BYTES: usize = 1 << 20;

/// Copies until `bytes` are done, the source ends or a side would have to wait after something was done.
fn copy(call: &Call<'_>, from: &mut End, to: &mut End, bytes: usize) -> Result<usize, Errno> {
    // A device can take or give bytes without end.
    let has_stream = from.file.as_stream().or(to.file.as_stream()).is_some();
    let bytes = if has_stream { bytes.min(STREAM_GO_BYTES) } else { bytes };
    let mut piece = call.buffer(bytes.min(PIECE_BYTES))?;
    let mut done = 0;
    while done < bytes {
        if done > 0 {
            // Only positions are kept, which others may move as on Linux.
            call.unix.scheduler.breathe(call.held);
        }
        let part = piece.len().min(bytes - done);
        let read = match take(call, from, &mut piece[..part], false) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        };
        match give(call, to, &piece[..read], to.file.is_nonblocking()) {
            Ok(written) => {
                from.advance(written);
                done += written;
                // Into a file goes the rest, too, even if it only finds that there is no place, and then the signal comes.
                let is_short = written < read && to.file.as_stream().is_some();
                if is_short || call.task.is_interrupted() {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    tell_copied(&from.file, &to.file, done);
    Ok(done)
}

/// Who watches one of the files is told that bytes went from the first to the second.
fn tell_copied(from: &OpenFile, to: &OpenFile, bytes: usize) {
    let _ = from.tell_moved(IN_ACCESS, Ok(bytes));
    let _ = to.tell_moved(IN_MODIFY, Ok(bytes));
}

/// Errors: `EBADF`, `EINVAL` for a source that is no file or an appending target, `ESPIPE` for an offset into a
/// stream, `EFAULT`; those of a write.
pub fn sendfile(call: &Call<'_>, output: u64, input: u64, offset: u64, bytes: u64) -> CallResult {
    let at = place(call, offset)?;
    let file = call.file(input)?;
    file.check_readable()?;
    let device = file.stream_of::<MemoryDevice>();
    if at != At::Position && !file.is_seekable() && device.is_none() {
        return Err(Errno::ESPIPE);
    }
    if bytes > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let target = call.file(output)?;
    target.check_writable()?;
    if target.flags() & O_APPEND != 0 || file.is_directory() {
        return Err(Errno::EINVAL);
    }
    // Of the streams only the devices that give bytes without end are sources.
    if !file.is_seekable() && device.is_none_or(|device| *device == MemoryDevice::Null) {
        return Err(Errno::EINVAL);
    }
    // A file that is sent to itself moves its position once.
    let is_same = at == At::Position && Arc::ptr_eq(&file, &target);
    let to_at = if is_same { At::Offset(file.position()) } else { At::Position };
    let (mut from, mut to) = (End { file, at }, End { file: target, at: to_at });
    // Into a pipe goes one round, as on Linux: what fits.
    let bytes = wait_for_room(call, &to.file, cut(bytes), to.file.is_nonblocking())?;
    let copied = copy(call, &mut from, &mut to, bytes)?;
    tell_place(call, offset, &from)?;
    Ok(copied as u64)
}

fn cut(bytes: u64) -> usize {
    bytes.min(TRANSFER_BYTES_MAX as u64) as usize
}

fn is_pipe(file: &OpenFile) -> bool {
    file.stream_of::<PipeEnd>().is_some()
}

/// `source` and `target` are a descriptor and the address of an offset.
///
/// Errors: `EINVAL` for flags, for what is no regular file, or for ranges of one file that overlap; `EISDIR`,
/// `EBADF`, also for an appending target; `EFAULT`; those of a write.
pub fn copy_file_range(call: &Call<'_>, source: [u64; 2], target: [u64; 2], bytes: u64, flags: u64) -> CallResult {
    let (file, target_file) = (call.file(source[0])?, call.file(target[0])?);
    let mut from = End { file, at: place(call, source[1])? };
    let mut to = End { file: target_file, at: place(call, target[1])? };
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    if from.file.is_directory() || to.file.is_directory() {
        return Err(Errno::EISDIR);
    }
    if !from.file.has_data() || !to.file.has_data() {
        return Err(Errno::EINVAL);
    }
    from.file.check_readable()?;
    to.file.check_writable()?;
    if to.file.is_appending() {
        return Err(Errno::EBADF);
    }
    let (start, target_start) = (from.position(), to.position());
    if start.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Errno::EOVERFLOW);
    }
    let bytes = bytes.min(end_of(&from.file).saturating_sub(start));
    let bytes = starts_within_file_limit(call, target_start, bytes)?;
    let same = from.file.node().zip(to.file.node()).is_some_and(|(one, other)| one.is(other));
    if same && target_start < start.saturating_add(bytes) && start < target_start.saturating_add(bytes) {
        return Err(Errno::EINVAL);
    }
    let copied = copy(call, &mut from, &mut to, cut(bytes))?;
    tell_place(call, source[1], &from)?;
    tell_place(call, target[1], &to)?;
    Ok(copied as u64)
}

/// Moves bytes between a pipe and a file; one round, as much as is there and fits.
///
/// Errors: `EINVAL` when neither side is a pipe or an appending target, `ESPIPE` for an offset into a pipe, `EBADF`,
/// `EAGAIN`; those of a read or write.
pub fn splice(call: &Call<'_>, source: [u64; 2], target: [u64; 2], bytes: u64, flags: u32) -> CallResult {
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let (file, target_file) = (call.file(source[0])?, call.file(target[0])?);
    file.check_readable()?;
    target_file.check_writable()?;
    if (is_pipe(&file) && source[1] != 0) || (is_pipe(&target_file) && target[1] != 0) {
        return Err(Errno::ESPIPE);
    }
    let appends = target_file.is_appending() && !is_pipe(&target_file);
    if (!is_pipe(&file) && !is_pipe(&target_file)) || appends || file.is_directory() {
        return Err(Errno::EINVAL);
    }
    let nonblocking = flags & SPLICE_NONBLOCK != 0;
    let mut from = End { file, at: place(call, source[1])? };
    let mut to = End { file: target_file, at: place(call, target[1])? };
    let bytes = wait_for_room(call, &to.file, cut(bytes), nonblocking || to.file.is_nonblocking())?;
    let mut piece = call.buffer(bytes.min(PIECE_BYTES))?;
    let read = take(call, &from, &mut piece, nonblocking || from.file.is_nonblocking())?;
    let written = if read == 0 { 0 } else { give(call, &mut to, &piece[..read], false)? };
    if from.file.is_seekable() {
        from.advance(written);
    }
    tell_copied(&from.file, &to.file, written);
    tell_place(call, source[1], &from)?;
    tell_place(call, target[1], &to)?;
    Ok(written as u64)
}

/// Bytes that a pipe takes without waiting, at least one; `wanted` for another file.
fn wait_for_room(call: &Call<'_>, file: &OpenFile, wanted: usize, nonblocking: bool) -> Result<usize, Errno> {
    let Some(end) = file.stream_of::<PipeEnd>() else { return Ok(wanted) };
    loop {
        let pipe = end.pipe();
        let room = pipe.capacity() - pipe.fill();
        // Nobody reads: the write finds out.
        if room > 0 || pipe.readers() == 0 {
            return Ok(wanted.min(room.max(1)));
        }
        call.with_io(nonblocking, |io| io.wait(pipe.writable()))?;
    }
}

/// Copies what is in a pipe into another one and leaves it there; one round, as much as is there and fits.
///
/// Errors: `EBADF`, `EINVAL` for what are not two pipes, `EPIPE`, `EAGAIN`, `EINTR`.
pub fn tee(call: &Call<'_>, source: u64, target: u64, bytes: u64, flags: u32) -> CallResult {
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let (source, target) = (call.file(source)?, call.file(target)?);
    source.check_readable()?;
    target.check_writable()?;
    let pipe_of = |file: &OpenFile| file.stream_of::<PipeEnd>().map(|end| end.pipe().clone()).ok_or(Errno::EINVAL);
    let (from, to) = (pipe_of(&source)?, pipe_of(&target)?);
    if Arc::ptr_eq(&from, &to) {
        return Err(Errno::EINVAL);
    }
    let nonblocking = flags & SPLICE_NONBLOCK != 0 || source.is_nonblocking() || target.is_nonblocking();
    while from.fill() == 0 && from.writers() > 0 {
        call.with_io(nonblocking, |io| io.wait(from.readable()))?;
    }
    let wanted = wait_for_room(call, &target, cut(bytes), nonblocking)?;
    if to.readers() == 0 {
        let broken = Err(Errno::EPIPE);
        note_broken(call, &broken);
        return broken.map(|bytes| bytes as u64);
    }
    let copied = to.copy_from(&from, wanted);
    if copied > 0 {
        call.unix.scheduler.wake(to.readable());
    }
    tell_copied(&source, &target, copied);
    Ok(copied as u64)
}

/// Between memory and a pipe, as `readv` and `writev`; but into a pipe goes one round, what fits.
///
/// Errors: `EBADF` for what is no pipe, `EAGAIN`; theirs.
pub fn vmsplice(call: &Call<'_>, descriptor: u64, vector: [u64; 2], flags: u32) -> CallResult {
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let file = call.file(descriptor)?;
    let side = file.stream_of::<PipeEnd>().map(PipeEnd::side).ok_or(Errno::EBADF)?;
    let mut buffers = Ranges::NONE;
    buffers.fill(call, vector)?;
    let moved = match side {
        Side::Read => read_ranges(call, &file, &buffers, At::Position),
        _ if buffers.bytes() == 0 => Ok(0),
        _ => {
            let nonblocking = flags & SPLICE_NONBLOCK != 0;
            buffers.cut(wait_for_room(call, &file, buffers.bytes(), nonblocking)?);
            write_ranges(call, &file, &buffers, At::Position)
        }
    };
    moved.map(|bytes| bytes as u64)
}
