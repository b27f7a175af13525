//! Moving bytes: read, write, seek and their kin, the generic paths.

use alloc::sync::Arc;

use abi::Errno;
use kernel::file::Data;
use kernel::stream::UserRange;
use machine::PAGE_BYTES;

use super::Entry;
use crate::call::{Call, CallResult};
use crate::files::{Body, OpenFile, remember};
use abi::nr;

pub fn read(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    bind_dispatch(call, nr::READ);
    let file = call.file(descriptor)?;
    file.check_readable()?;
    let range = call.range(address, bytes)?;
    read_file(call, &file, range).map(|bytes| bytes as u64)
}

pub fn write(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    bind_dispatch(call, nr::WRITE);
    let file = call.file(descriptor)?;
    file.check_writable()?;
    let range = call.range(address, bytes)?;
    write_file(call, &file, range).map(|bytes| bytes as u64)
}

/// Synthesizes the thread's dispatch of `read`, `write` or `lseek` at its first use: a thread that never reads pays nothing.
fn bind_dispatch(call: &Call<'_>, number: u64) {
    let bound = &call.task.bindings.descriptor_calls[bound_index(number)];
    if bound.get() || call.unix.makers().is_none() {
        return;
    }
    let files = call.process().files();
    let entries = files.entries();
    let words = [&entries.reads, &entries.writes, &entries.seeks][bound_index(number)];
    let tte = call.task.thread.tte();
    // Without room for code the call stays as it is.
    bound.set(tte.bind_descriptor_call(number as usize, words.as_ptr() as u64, words.len() as u32).is_ok());
}

/// The calls whose dispatch goes by descriptor, in the order of a task's flags.
fn bound_index(number: u64) -> usize {
    crate::task::DESCRIPTOR_CALLS.iter().position(|call| *call == number).unwrap_or(0)
}

/// Reads at the file's position and moves it.
pub fn read_file(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return call.with_io(file.is_nonblocking(), |io| stream.read(io, to));
    }
    let position = file.position();
    let read = read_at(call, file, to, position)?;
    file.set_position(position + read as u64);
    remember(call.unix, file, position);
    Ok(read)
}

/// Reads at a position of a seekable file.
pub fn read_at(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange, position: u64) -> Result<usize, Errno> {
    if file.is_directory() {
        return Err(Errno::EISDIR);
    }
    if let Body::Virtual(content) = &file.body {
        let from = content.get(position as usize..).unwrap_or(&[]);
        let bytes = from.len().min(to.bytes);
        call.copy_out(to.address.0, &from[..bytes])?;
        return Ok(bytes);
    }
    let content = file.content().ok_or(Errno::EINVAL)?;
    let read = content.read_user(call.unix.machine, position, to.address, to.bytes)?;
    if let Some(node) = file.node()
        && read > 0
        && file.flags() & abi::file::O_NOATIME == 0
    {
        node.note_read(call.now());
    }
    Ok(read)
}

/// Writes at the file's position (or its end) and moves it.
pub fn write_file(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return call.with_io(file.is_nonblocking(), |io| stream.write(io, from));
    }
    let position =
        if file.is_appending() { file.content().map_or(0, |content| content.size()) } else { file.position() };
    let written = write_at(call, file, from, position)?;
    file.set_position(position + written as u64);
    remember(call.unix, file, position);
    Ok(written)
}

/// Writes at a position of a seekable file.
pub fn write_at(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange, position: u64) -> Result<usize, Errno> {
    if let Body::Virtual(_) = &file.body {
        return write_virtual(call, file, from, position);
    }
    let content = file.content().ok_or(Errno::EINVAL)?;
    if from.bytes == 0 {
        return Ok(0);
    }
    let written = content.write_user(call.unix.machine, position, from.address, from.bytes)?;
    if let Some(node) = file.node() {
        let credentials = call.process().credentials.borrow().clone();
        node.note_write(&credentials, call.now());
    }
    Ok(written)
}

/// A setting takes what one call brings, at most a page of it.
fn write_virtual(call: &Call<'_>, file: &OpenFile, from: UserRange, position: u64) -> Result<usize, Errno> {
    let Some(Data::VirtualFile(setting)) = file.node().map(|node| node.data()) else { return Err(Errno::EINVAL) };
    let text = call.read_bytes(from.address.0, from.bytes.min(PAGE_BYTES))?;
    setting.write(position, &text)
}

/// Errors: `EBADF`, `ESPIPE`, `EINVAL`, `ENXIO` for data or hole behind the end, `EOVERFLOW`.
pub fn lseek(call: &Call<'_>, descriptor: u64, offset: i64, whence: u64) -> CallResult {
    bind_dispatch(call, nr::LSEEK);
    let file = call.file(descriptor)?;
    if !file.is_seekable() {
        return Err(Errno::ESPIPE);
    }
    let size = match &file.body {
        Body::Virtual(content) => content.len() as u64,
        _ => file.content().map_or(0, |content| content.size()),
    };
    let position = match whence as u32 {
        0 => offset,
        1 => (file.position() as i64).checked_add(offset).ok_or(Errno::EOVERFLOW)?,
        2 => (size as i64).checked_add(offset).ok_or(Errno::EOVERFLOW)?,
        3 | 4 => seek_content(&file, offset, whence as u32 == 3)?,
        _ => return Err(Errno::EINVAL),
    };
    if position < 0 {
        return Err(Errno::EINVAL);
    }
    file.set_position(position as u64);
    Ok(position as u64)
}

fn seek_content(file: &OpenFile, offset: i64, data: bool) -> Result<i64, Errno> {
    let content = file.content().ok_or(Errno::EINVAL)?;
    let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
    let found = if data { content.seek_data(from) } else { content.seek_hole(from) };
    found.map(|position| position as i64)
}

pub const CALLS: &[Entry] = &[
    (nr::READ, |call, [a, b, c, ..]| read(call, a, b, c)),
    (nr::WRITE, |call, [a, b, c, ..]| write(call, a, b, c)),
    (nr::LSEEK, |call, [a, b, c, ..]| lseek(call, a, b as i64, c)),
];
