//! Transfers with several buffers: readv, writev and their kin.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::Field;
use abi::file::{IOV_MAX, Iovec, RWF_APPEND, RWF_DSYNC, RWF_HIPRI, RWF_NOWAIT, RWF_SYNC};
use kernel::file::Opening;
use kernel::pipe::ATOMIC_BYTES;
use kernel::stream::{Stream, UserRange};
use machine::VirtAddr;

use super::{At, end_of, note_broken, positioned, read_at, within_file_limit, write_at, write_stream};
use crate::call::{Call, CallResult};
use crate::files::{Body, OpenFile};
use crate::limits::TRANSFER_BYTES_MAX;

const FLAGS: u32 = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND;

/// The buffers of a call, without empty ones.
pub struct Ranges {
    /// The records as the program gave them.
    records: Vec<u8>,
    bytes: usize,
}

impl Ranges {
    fn iter(&self) -> impl Iterator<Item = UserRange> {
        let mut left = self.bytes;
        self.records.chunks_exact(Iovec::BYTES).map(<Iovec as Field>::get).filter_map(move |record| {
            let bytes = left.min(record.iov_len as usize);
            left -= bytes;
            (bytes > 0).then_some(UserRange { address: VirtAddr(record.iov_base), bytes })
        })
    }
}

/// Reads an array of buffers, `[address, count]`, cut to what one call moves.
///
/// Errors: `EINVAL` for too many buffers or too large ones, `EFAULT`, `ENOMEM`.
pub fn ranges(call: &Call<'_>, [address, count]: [u64; 2]) -> Result<Ranges, Errno> {
    if count > IOV_MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let records = call.read_bytes(address, count as usize * Iovec::BYTES)?;
    let each = || records.chunks_exact(Iovec::BYTES).map(<Iovec as Field>::get);
    // Linux looks at all sizes before it looks at an address.
    if each().any(|record| record.iov_len > i64::MAX as u64) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = 0;
    for record in each() {
        bytes += call.range(record.iov_base, record.iov_len)?.first(TRANSFER_BYTES_MAX - bytes).bytes;
    }
    Ok(Ranges { records, bytes })
}

/// The open file of a call at a place.
fn file_at(call: &Call<'_>, descriptor: u64, at: At) -> Result<Arc<OpenFile>, Errno> {
    match at {
        At::Offset(offset) => positioned(call, descriptor, offset),
        _ => call.file(descriptor),
    }
}

pub fn readv(call: &Call<'_>, descriptor: u64, vector: [u64; 2], at: At) -> CallResult {
    let file = file_at(call, descriptor, at)?;
    file.check_readable()?;
    let buffers = ranges(call, vector)?;
    read_ranges(call, &file, &buffers, at).map(|bytes| bytes as u64)
}

pub fn writev(call: &Call<'_>, descriptor: u64, vector: [u64; 2], at: At) -> CallResult {
    let file = file_at(call, descriptor, at)?;
    file.check_writable()?;
    let buffers = ranges(call, vector)?;
    write_ranges(call, &file, &buffers, at).map(|bytes| bytes as u64)
}

/// Errors: `ENOTSUP` for unknown flags; those of `preadv`.
pub fn preadv2(call: &Call<'_>, descriptor: u64, vector: [u64; 2], offset: u64, flags: u32) -> CallResult {
    let at = if offset as i64 == -1 { At::Position } else { At::Offset(offset) };
    if flags & !FLAGS != 0 || flags & RWF_APPEND != 0 {
        return Err(Errno::ENOTSUP);
    }
    readv(call, descriptor, vector, at)
}

pub fn pwritev2(call: &Call<'_>, descriptor: u64, vector: [u64; 2], offset: u64, flags: u32) -> CallResult {
    let at = match () {
        _ if flags & !FLAGS != 0 => return Err(Errno::ENOTSUP),
        _ if offset as i64 == -1 && flags & RWF_APPEND != 0 => At::End,
        _ if offset as i64 == -1 => At::Position,
        _ => At::Offset(offset),
    };
    writev(call, descriptor, vector, at)
}

pub fn read_ranges(call: &Call<'_>, file: &Arc<OpenFile>, buffers: &Ranges, at: At) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return read_stream(call, file, stream, buffers);
    }
    let start = if let At::Offset(offset) = at { offset } else { file.position() };
    if buffers.bytes == 0 && file.is_directory() {
        return Err(Errno::EISDIR);
    }
    let done = one_by_one(buffers, |range, done| read_at(call, file, range, start + done as u64))?;
    if at == At::Position {
        file.set_position(start + done as u64);
    }
    Ok(done)
}

/// Carries one buffer after the other, as long as each is carried whole; `carry` is told how many bytes went before. An error
/// counts only where nothing went before it.
fn one_by_one(
    buffers: &Ranges,
    mut carry: impl FnMut(UserRange, usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    for range in buffers.iter() {
        match carry(range, done) {
            Ok(carried) => {
                done += carried;
                if carried < range.bytes {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Only the first buffer may wait: what has been read is handed out.
fn read_stream(call: &Call<'_>, file: &OpenFile, stream: &Arc<dyn Stream>, buffers: &Ranges) -> Result<usize, Errno> {
    one_by_one(buffers, |range, done| call.with_io(file.is_nonblocking() || done > 0, |io| stream.read(io, range)))
}

pub fn write_ranges(call: &Call<'_>, file: &Arc<OpenFile>, buffers: &Ranges, at: At) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return write_ranges_to_stream(call, file, stream, buffers);
    }
    if let Some(opening) = file.outside().filter(|_| at == At::End || file.is_appending()) {
        return append_ranges(call, file, opening, buffers, at);
    }
    let start = match at {
        _ if at == At::End || file.is_appending() => end_of(file),
        At::Offset(offset) => offset,
        _ => file.position(),
    };
    let done = one_by_one(buffers, |range, done| write_at(call, file, range, start + done as u64))?;
    if done > 0 && !matches!(at, At::Offset(_)) {
        file.set_position(start + done as u64);
    }
    Ok(done)
}

/// Appends outside of the machine, in one piece: others append too.
fn append_ranges(
    call: &Call<'_>,
    file: &OpenFile,
    opening: &Opening,
    buffers: &Ranges,
    at: At,
) -> Result<usize, Errno> {
    let end = opening.size();
    let allowed = within_file_limit(call, end, buffers.bytes as u64)? as usize;
    let whole = match (buffers.iter().next(), buffers.iter().nth(1)) {
        (None, _) => return Ok(0),
        (Some(one), None) if file.is_appending() => {
            return opening.write_user(end, one.address, allowed.min(one.bytes));
        }
        _ => gather(call, buffers).ok_or(Errno::EFAULT)?,
    };
    let written = opening.write_at(end, &whole[..allowed.min(whole.len())])?;
    if written > 0 && !matches!(at, At::Offset(_)) {
        file.set_position(opening.size());
    }
    Ok(written)
}

fn write_ranges_to_stream(
    call: &Call<'_>,
    file: &OpenFile,
    stream: &Arc<dyn Stream>,
    buffers: &Ranges,
) -> Result<usize, Errno> {
    if buffers.iter().nth(1).is_some()
        && buffers.bytes <= ATOMIC_BYTES
        && let Some(whole) = gather(call, buffers)
    {
        // A small write must not be torn, however many buffers it comes from.
        let written = call.with_io(file.is_nonblocking(), |io| stream.write_kernel(io, &whole));
        if !matches!(written, Err(Errno::EINVAL)) {
            note_broken(call, &written);
            return written;
        }
    }
    one_by_one(buffers, |range, _| write_stream(call, file, stream, range))
}

/// All bytes of the buffers in a row; `None` if they cannot be read or kept, and the slow way finds the error.
fn gather(call: &Call<'_>, buffers: &Ranges) -> Option<Vec<u8>> {
    let mut whole = call.buffer(buffers.bytes).ok()?;
    let mut at = 0;
    for range in buffers.iter() {
        call.copy_in(range.address.0, &mut whole[at..at + range.bytes]).ok()?;
        at += range.bytes;
    }
    Some(whole)
}
