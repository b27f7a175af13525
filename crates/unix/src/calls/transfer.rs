//! Moving bytes: read, write, seek and their kin, the generic paths.

use alloc::sync::Arc;

use abi::Errno;
use kernel::stream::UserRange;

use super::Entry;
use crate::call::{Call, CallResult};
use crate::files::{Body, OpenFile};
use abi::nr;

pub fn read(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let file = call.file(descriptor)?;
    file.check_readable()?;
    let range = call.range(address, bytes)?;
    read_file(call, &file, range).map(|bytes| bytes as u64)
}

pub fn write(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let file = call.file(descriptor)?;
    file.check_writable()?;
    let range = call.range(address, bytes)?;
    write_file(call, &file, range).map(|bytes| bytes as u64)
}

/// Reads at the file's position and moves it.
pub fn read_file(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return call.with_io(file.is_nonblocking(), |io| stream.read(io, to));
    }
    let read = read_at(call, file, to, file.position())?;
    file.set_position(file.position() + read as u64);
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
    Ok(written)
}

/// Writes at a position of a seekable file.
pub fn write_at(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange, position: u64) -> Result<usize, Errno> {
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

/// Errors: `EBADF`, `ESPIPE`, `EINVAL`, `ENXIO` for data or hole behind the end, `EOVERFLOW`.
pub fn lseek(call: &Call<'_>, descriptor: u64, offset: i64, whence: u64) -> CallResult {
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
