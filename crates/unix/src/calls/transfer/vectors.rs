//! Transfers with several buffers: readv, writev and their kin.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::Field;
use abi::file::{IOV_MAX, Iovec, RWF_APPEND, RWF_DSYNC, RWF_HIPRI, RWF_NOWAIT, RWF_SYNC};
use abi::poll::{IN_ACCESS, IN_MODIFY};
use kernel::file::File;
use kernel::pipe::ATOMIC_BYTES;
use kernel::stream::{Stream, UserRange};
use machine::VirtAddr;

use super::super::coming::anew;
use super::{
    At, end_of, note_broken, positioned, read_quietly, reserve, settle, within_file_limit, write_quietly, write_stream,
};
use crate::call::{Call, CallResult};
use crate::calls::parts;
use crate::calls::sockets::{read_parts, socket_of, write_parts};
use crate::files::open_file::{Body, OpenFile};
use crate::limits::TRANSFER_BYTES_MAX;

const FLAGS: u32 = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND;

/// Buffers that need no memory of the heap, and bytes of them.
const FEW: usize = 4;
const FEW_BYTES: usize = 64;

/// The buffers of a call, without empty ones.
pub struct Ranges {
    /// The records as the program gave them, if they are few.
    few: [u8; FEW * Iovec::BYTES],
    /// How many are few; 0 if they are many.
    count: usize,
    many: Vec<u8>,
    bytes: usize,
}

impl Ranges {
    /// No buffers.
    pub const NONE: Ranges = Ranges { few: [0; FEW * Iovec::BYTES], count: 0, many: Vec::new(), bytes: 0 };

    fn records(&self) -> impl Iterator<Item = Iovec> {
        let bytes = if self.count > 0 { &self.few[..self.count * Iovec::BYTES] } else { &self.many };
        bytes.chunks_exact(Iovec::BYTES).map(<Iovec as Field>::get)
    }

    fn iter(&self) -> impl Iterator<Item = UserRange> {
        let mut left = self.bytes;
        self.records().filter_map(move |record| {
            let bytes = left.min(record.iov_len as usize);
            left -= bytes;
            (bytes > 0).then_some(UserRange { address: VirtAddr(record.iov_base), bytes })
        })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Leaves the first so many bytes.
    pub fn cut(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
    }

    /// One buffer, which is the caller's as far as `range` says.
    pub fn fill_one(&mut self, record: Iovec, range: UserRange) {
        self.count = 1;
        record.put(&mut self.few);
        self.bytes = range.bytes;
    }

    /// Reads an array of buffers, `[address, count]`, cut to what one call moves.
    ///
    /// Errors: `EINVAL` for too many buffers or too large ones, `EFAULT`, `ENOMEM`.
    pub fn fill(&mut self, call: &Call<'_>, [address, count]: [u64; 2]) -> Result<(), Errno> {
        if count > IOV_MAX as u64 {
            return Err(Errno::EINVAL);
        }
        let record_bytes = count as usize * Iovec::BYTES;
        if let Some(few) = self.few.get_mut(..record_bytes) {
            self.count = count as usize;
            call.copy_in(address, few)?;
        } else {
            self.many = call.read_bytes(address, record_bytes)?;
        }
        // Linux looks at all sizes before it looks at an address.
        if self.records().fold(0, |sizes, record| sizes | record.iov_len) > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        let mut bytes = 0;
        for record in self.records() {
            bytes += call.range(record.iov_base, record.iov_len)?.first(TRANSFER_BYTES_MAX - bytes).bytes;
        }
        self.bytes = bytes;
        Ok(())
    }
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
    let mut buffers = Ranges::NONE;
    buffers.fill(call, vector)?;
    read_ranges(call, &file, &buffers, at).map(|bytes| bytes as u64)
}

pub fn writev(call: &Call<'_>, descriptor: u64, vector: [u64; 2], at: At) -> CallResult {
    let file = file_at(call, descriptor, at)?;
    file.check_writable()?;
    let mut buffers = Ranges::NONE;
    buffers.fill(call, vector)?;
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
    anew(call, || read_ranges_once(call, file, buffers, at))
}

#[inline(never)]
fn read_ranges_once(call: &Call<'_>, file: &Arc<OpenFile>, buffers: &Ranges, at: At) -> Result<usize, Errno> {
    let start = if let At::Offset(offset) = at { offset } else { file.position() };
    if buffers.bytes == 0 && file.is_directory() {
        return Err(Errno::EISDIR);
    }
    let is_long = buffers.bytes > PART_BYTES && at == At::Position;
    let there = || end_of(file).saturating_sub(start).min(buffers.bytes as u64);
    let reserved = is_long.then(|| reserve(file, start, there()));
    let done =
        one_by_one(call, buffers, PART_BYTES, |range, done| read_quietly(call, file, range, start + done as u64));
    if call.task.is_awaiting() {
        reserved.inspect(|_| file.set_position(start));
        return done;
    }
    let done = file.tell_moved(IN_ACCESS, done);
    if at == At::Position {
        settle(file, start, reserved, done)?;
    }
    done
}

/// Carries one buffer after the other, as long as each is carried whole, with safe points in between where they are many; `carry` is
/// told how many bytes went before. An error counts only where nothing went before it.
fn one_by_one(
    call: &Call<'_>,
    buffers: &Ranges,
    part_bytes: usize,
    mut carry: impl FnMut(UserRange, usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let (mut done, mut at_last_point) = (0, 0);
    for range in buffers.iter() {
        if done - at_last_point >= part_bytes {
            call.unix.scheduler.breathe(call.held);
            at_last_point = done;
        }
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

/// Bytes of small buffers between two safe points.
const PART_BYTES: usize = 8 << 10;

/// Only the first buffer may wait: what has been read is handed out.
fn read_stream(
    call: &Call<'_>,
    file: &Arc<OpenFile>,
    stream: &Arc<dyn Stream>,
    buffers: &Ranges,
) -> Result<usize, Errno> {
    if buffers.iter().nth(1).is_some()
        && let Some(socket) = socket_of(&**stream)
    {
        return file.tell_moved(IN_ACCESS, read_parts(call, file, socket, buffers.iter()));
    }
    let one = |range, done| call.with_io(file.is_nonblocking() || done > 0, |io| stream.read(io, range));
    file.tell_moved(IN_ACCESS, one_by_one(call, buffers, PART_BYTES, one))
}

pub fn write_ranges(call: &Call<'_>, file: &Arc<OpenFile>, buffers: &Ranges, at: At) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        return write_ranges_to_stream(call, file, stream, buffers);
    }
    write_ranges_to_file(call, file, buffers, at)
}

#[inline(never)]
fn write_ranges_to_file(call: &Call<'_>, file: &Arc<OpenFile>, buffers: &Ranges, at: At) -> Result<usize, Errno> {
    if let Some(opening) = file.outside().filter(|_| at == At::End || file.is_appending()) {
        return append_ranges(call, file, &**opening, buffers, at);
    }
    let start = match at {
        _ if at == At::End || file.is_appending() => end_of(file),
        At::Offset(offset) => offset,
        _ => file.position(),
    };
    let limit = call.process().limits.borrow().file_bytes();
    let is_long = buffers.bytes > PART_BYTES && at == At::Position && !file.is_appending();
    let reserved = is_long.then(|| reserve(file, start, buffers.bytes as u64));
    let appends = at == At::End || file.is_appending();
    let part_bytes = if appends { parts::APPEND_BYTES } else { PART_BYTES };
    let done = one_by_one(call, buffers, part_bytes, |range, done| {
        // The limit of size is asked once: what ends at it exactly is short, without a signal.
        if done > 0 && start + done as u64 >= limit {
            return Ok(0);
        }
        anew(call, || {
            write_quietly(call, file, range, if appends && done > 0 { end_of(file) } else { start + done as u64 })
        })
    });
    let done = file.tell_moved(IN_MODIFY, done);
    if reserved.is_some() {
        settle(file, start, reserved, done)?;
    } else if matches!(done, Ok(1..)) && !matches!(at, At::Offset(_)) {
        file.set_position(start + done? as u64);
    }
    done
}

/// Appends outside of the machine, in one piece: others append too.
fn append_ranges(
    call: &Call<'_>,
    file: &OpenFile,
    opening: &dyn File,
    buffers: &Ranges,
    at: At,
) -> Result<usize, Errno> {
    let end = opening.size();
    let allowed = within_file_limit(call, end, buffers.bytes as u64)? as usize;
    let whole = match (buffers.iter().next(), buffers.iter().nth(1)) {
        (None, _) => return Ok(0),
        (Some(one), None) if file.is_appending() => {
            let written = call.with_io(file.is_nonblocking(), |io| opening.write(io, end, one.first(allowed)));
            return file.tell_moved(IN_MODIFY, written);
        }
        _ => {
            let mut whole = call.buffer(buffers.bytes).map_err(|_| Errno::EFAULT)?;
            gather(call, buffers, &mut whole)?;
            whole
        }
    };
    let written = opening.write_at(end, &whole[..allowed.min(whole.len())])?;
    if written > 0 && !matches!(at, At::Offset(_)) {
        file.set_position(opening.size());
    }
    file.tell_moved(IN_MODIFY, Ok(written))
}

fn write_ranges_to_stream(
    call: &Call<'_>,
    file: &Arc<OpenFile>,
    stream: &Arc<dyn Stream>,
    buffers: &Ranges,
) -> Result<usize, Errno> {
    let has_several = buffers.iter().nth(1).is_some();
    if has_several && buffers.bytes <= ATOMIC_BYTES {
        let mut few = [0; FEW_BYTES];
        let mut many;
        let whole = match few.get_mut(..buffers.bytes) {
            Some(few) => few,
            None => {
                many = call.buffer(buffers.bytes)?;
                &mut many[..]
            }
        };
        // If they cannot be read, the slow way finds the error.
        if gather(call, buffers, whole).is_ok() {
            // A small write must not be torn, however many buffers it comes from.
            let written = call.with_io(file.is_nonblocking(), |io| stream.write_kernel(io, whole));
            if !matches!(written, Err(Errno::EINVAL)) {
                note_broken(call, &written);
                return file.tell_moved(IN_MODIFY, written);
            }
        }
    }
    // A message is one however many buffers it comes from.
    if has_several && let Some(socket) = socket_of(&**stream).filter(|socket| !socket.is_stream()) {
        return file.tell_moved(IN_MODIFY, write_parts(call, file, socket, buffers.iter()));
    }
    file.tell_moved(
        IN_MODIFY,
        one_by_one(call, buffers, PART_BYTES, |range, _| write_stream(call, file, stream, range)),
    )
}

/// All bytes of the buffers in a row. Error: `EFAULT`.
fn gather(call: &Call<'_>, buffers: &Ranges, whole: &mut [u8]) -> Result<(), Errno> {
    let mut rest = whole;
    for range in buffers.iter() {
        let (part, behind) = rest.split_at_mut(range.bytes);
        call.copy_in(range.address.0, part)?;
        rest = behind;
    }
    Ok(())
}
