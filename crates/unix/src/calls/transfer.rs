//! Moving bytes: read, write, seek and their kin, the generic paths.

pub mod asynchronous;
pub mod copies;
pub(crate) mod extent;
pub(super) mod table;
mod vectors;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use machine::DescriptorEntries;

use abi::Errno;
use abi::poll::{IN_ACCESS, IN_MODIFY};
use abi::siginfo::SigInfo;
use abi::signal::{SIGPIPE, SIGXFSZ};
use kernel::file::{Content, File};
use kernel::stream::{Stream, UserRange};
use kernel::trace::kind;

use super::coming::{anew, bring};
use super::parts;
use crate::call::{Call, CallResult};
use crate::calls::signals::send::send_to_task;
use crate::files::memory::MemoryDevice;
use crate::files::open_file::{Body, OpenFile};
use crate::files::synthesize::{consider, gain, is_worth_routines, remember, synthesize_positioned};
use crate::task::bindings::BOUND;
use abi::nr;

/// Where a transfer happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// At the file's position, which moves.
    Position,
    /// At an offset in bytes; the file's position stays.
    Offset(u64),
    /// At the end, as if opened with `O_APPEND` (`RWF_APPEND`).
    End,
}

pub fn read(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let file = call.file_slept_at(descriptor)?;
    file.check_readable()?;
    gain_routine(call, nr::READ, descriptor, &file);
    bind_dispatch(call, nr::READ, &file);
    let range = call.range(address, bytes)?;
    read_file(call, &file, range).map(|bytes| bytes as u64)
}

pub fn write(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let file = call.file_slept_at(descriptor)?;
    file.check_writable()?;
    gain_routine(call, nr::WRITE, descriptor, &file);
    bind_dispatch(call, nr::WRITE, &file);
    let range = call.range(address, bytes)?;
    write_file(call, &file, range).map(|bytes| bytes as u64)
}

/// Errors: `EINVAL` for a negative offset, `EBADF`, `ESPIPE`.
fn pread(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64, offset: u64) -> CallResult {
    let file = positioned(call, descriptor, offset)?;
    bind_positioned(call, nr::PREAD64, &file);
    file.check_readable()?;
    let range = call.range(address, bytes)?;
    let read = anew(call, || read_at(call, &file, range, offset))?;
    remember(call.unix, &file, offset);
    Ok(read as u64)
}

/// As `pread`. An appending file is written at its end all the same, as on Linux.
fn pwrite(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64, offset: u64) -> CallResult {
    let file = positioned(call, descriptor, offset)?;
    bind_positioned(call, nr::PWRITE64, &file);
    file.check_writable()?;
    let range = call.range(address, bytes)?;
    ends_within_offsets(offset, range.bytes)?;
    let (written, at) = anew(call, || {
        let at = if file.is_appending() { end_of(&file) } else { offset };
        write_at(call, &file, range, at).map(|written| (written, at))
    })?;
    remember(call.unix, &file, at);
    Ok(written as u64)
}

fn positioned(call: &Call<'_>, descriptor: u64, offset: u64) -> Result<Arc<OpenFile>, Errno> {
    if (offset as i64) < 0 {
        return Err(Errno::EINVAL);
    }
    let file = call.file(descriptor)?;
    if file.is_seekable() || takes_positions(&file) { Ok(file) } else { Err(Errno::ESPIPE) }
}

fn takes_positions(file: &OpenFile) -> bool {
    file.as_stream().is_some_and(|stream| stream.takes_positions())
}

fn end_of(file: &OpenFile) -> u64 {
    file.size()
}

/// The dispatch of a call by descriptor is made when a thread has come so often to a file that has a routine for it: a child that
/// writes one line pays nothing.
const DISPATCH_CALLS: u8 = 6;

/// Synthesizes the thread's dispatch of `read`, `write` or `lseek` when it is worth that.
#[inline(always)]
fn bind_dispatch(call: &Call<'_>, number: u64, file: &OpenFile) {
    let count = &call.task.bindings.descriptor_calls[bound_index(number)];
    if count.get() == BOUND || !file.has_routine(number) {
        return;
    }
    count_towards_dispatch(call, number);
}

/// A stream that gets its routines when it is used, as a socket, may have some that this table does not know.
#[inline(always)]
fn gain_routine(call: &Call<'_>, number: u64, descriptor: u64, file: &Arc<OpenFile>) {
    if let Body::Stream(stream) = &file.body
        && stream.gains_code()
    {
        bind_gained(call, number, descriptor, file, &**stream);
    }
}

#[inline(never)]
fn bind_gained(call: &Call<'_>, number: u64, descriptor: u64, file: &Arc<OpenFile>, stream: &dyn Stream) {
    if gain(call.unix, file, stream, number) && call.files().is_unbound(descriptor as u32 as usize, number) {
        call.files().bind_routines(file);
    }
}

/// Once more on a file that has a routine.
#[inline(never)]
fn count_towards_dispatch(call: &Call<'_>, number: u64) {
    let count = &call.task.bindings.descriptor_calls[bound_index(number)];
    if count.get() + 1 < DISPATCH_CALLS {
        return count.set(count.get() + 1);
    }
    let files = call.files();
    let entries = match number {
        nr::PREAD64 => DescriptorEntries::of(files.positioned(), |table| &table[0]),
        nr::PWRITE64 => DescriptorEntries::of(files.positioned(), |table| &table[1]),
        nr::READ => DescriptorEntries::of(files.entries(), |table| &table.reads),
        nr::WRITE => DescriptorEntries::of(files.entries(), |table| &table.writes),
        _ => DescriptorEntries::of(files.entries(), |table| &table.seeks),
    };
    let tte = call.task.thread.tte();
    // Without room for code the call stays as it is.
    if tte.bind_descriptor_call(number as usize, entries).is_ok() {
        count.set(BOUND);
    }
}

/// The same for `pread` and `pwrite`, where a file has routines for them.
fn bind_positioned(call: &Call<'_>, number: u64, file: &Arc<OpenFile>) {
    if file.outside().is_none() {
        let is_first = file.positioned().is_none();
        if !synthesize_positioned(call.unix, file) {
            return;
        }
        if is_first {
            call.files().bind_routines(file);
        }
    }
    bind_dispatch(call, number, file);
}

/// The calls whose dispatch goes by descriptor, in the order of a task's flags.
#[inline(always)]
const fn bound_index(number: u64) -> usize {
    match number {
        nr::READ => 0,
        nr::WRITE => 1,
        nr::LSEEK => 2,
        nr::PREAD64 => 3,
        _ => 4,
    }
}

const _: () = {
    let mut at = 0;
    while at < crate::task::bindings::DESCRIPTOR_CALLS.len() {
        assert!(bound_index(crate::task::bindings::DESCRIPTOR_CALLS[at]) == at);
        at += 1;
    }
};

/// The scheduler's gauge (S-31) counts operations that Rust does, as routines count theirs.
fn count_operation(call: &Call<'_>) {
    call.unix.machine.gauge().fetch_add(1, Ordering::Relaxed);
}

/// Reads at the file's position and moves it.
pub fn read_file(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        count_operation(call);
        let read = read_stream(call, file, stream, to);
        return file.tell_moved(IN_ACCESS, read);
    }
    read_data(call, file, to)
}

/// A function of its own, so that reading a stream pays nothing for it.
#[inline(never)]
fn read_data(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange) -> Result<usize, Errno> {
    anew(call, || read_once(call, file, to))
}

fn read_once(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange) -> Result<usize, Errno> {
    let position = file.position();
    let is_long = to.bytes > parts::COPY_BYTES;
    let reserved = is_long.then(|| reserve(file, position, end_of(file).saturating_sub(position).min(to.bytes as u64)));
    let read = read_at(call, file, to, position);
    if call.task.is_awaiting() {
        // It is done anew.
        reserved.inspect(|_| file.set_position(position));
        return read;
    }
    settle(file, position, reserved, read)?;
    note_moved(call, file, position, read == Ok(to.bytes) && file.position() < end_of(file));
    read
}

/// A call has moved bytes from this position on in Rust. If it is said to go on so, the next ones may be worth routines.
#[inline(always)]
fn note_moved(call: &Call<'_>, file: &Arc<OpenFile>, position: u64, goes_on: bool) {
    let goes_on = goes_on && is_worth_routines(file);
    if goes_on || file.window().is_some() || file.positioned().is_some() {
        note_use(call, file, position, goes_on);
    }
}

#[inline(never)]
fn note_use(call: &Call<'_>, file: &Arc<OpenFile>, position: u64, goes_on: bool) {
    if call.unix.makers().is_none() {
        return;
    }
    if goes_on && consider(call.unix, file) {
        call.files().bind_routines(file);
    }
    remember(call.unix, file, position);
}

/// A transfer that lets others run moves the position first, so that theirs begin behind it. The position afterwards.
fn reserve(file: &OpenFile, position: u64, bytes: u64) -> u64 {
    let end = position.saturating_add(bytes);
    file.set_position(end);
    end
}

/// Sets the position behind what was moved, unless somebody has moved it on from what was reserved.
fn settle(file: &OpenFile, position: u64, reserved: Option<u64>, moved: Result<usize, Errno>) -> Result<(), Errno> {
    if reserved.is_none_or(|reserved| reserved == file.position()) {
        // An error leaves it where it was.
        let bytes = moved.unwrap_or(0) as u64;
        if reserved.is_some() || moved.is_ok() {
            file.set_position(position + bytes);
        }
    }
    moved.map(drop)
}

/// Reads at a position of a seekable file.
pub fn read_at(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange, position: u64) -> Result<usize, Errno> {
    let read = read_quietly(call, file, to, position);
    file.tell_moved(IN_ACCESS, read)
}

/// The same, and nobody who watches the file is told.
pub fn read_quietly(call: &Call<'_>, file: &Arc<OpenFile>, to: UserRange, position: u64) -> Result<usize, Errno> {
    ends_within_offsets(position, to.bytes)?;
    if file.is_directory() {
        return Err(Errno::EISDIR);
    }
    count_operation(call);
    if let Body::Stream(stream) = &file.body {
        return read_stream(call, file, stream, to);
    }
    if let Body::File(opening) = &file.body {
        let read = call.with_io(file.is_nonblocking(), |io| opening.read(io, position, to))?;
        call.task.forget_awaited();
        note_file(call, kind::FILE_READ, file, position, read);
        return Ok(read);
    }
    let content = file.content().ok_or(Errno::EINVAL)?;
    let read = match to.bytes {
        ..=parts::COPY_BYTES => read_content(call, content, position, to)?,
        _ => parts::carry(call, to, parts::COPY_BYTES, |part, done| {
            anew(call, || read_content(call, content, position + done as u64, part))
        })?,
    };
    note_file(call, kind::FILE_READ, file, position, read);
    if let Some(node) = file.node()
        && read > 0
        && file.flags() & abi::file::O_NOATIME == 0
    {
        node.note_read(call.now());
    }
    Ok(read)
}

/// An attempt ([`anew`]).
fn read_content(call: &Call<'_>, content: &Content, position: u64, to: UserRange) -> Result<usize, Errno> {
    bring(call, content, position, to.bytes)?;
    let read = content.read_user(call.unix.machine, position, to.address, to.bytes);
    if call.task.is_awaiting() { Err(Errno::EFAULT) } else { read }
}

/// An attempt to write. One that met a page that must come first takes back what it has added to the file; nobody has seen it.
fn write_content(call: &Call<'_>, content: &Content, position: u64, from: UserRange) -> Result<usize, Errno> {
    bring(call, content, position, from.bytes)?;
    let size = content.size();
    let written = content.write_user(call.unix.machine, position, from.address, from.bytes);
    if call.task.is_awaiting() {
        content.take_back(size);
        return Err(Errno::EFAULT);
    }
    written
}

/// Reads from a stream. Devices that give bytes without end give them in parts.
fn read_stream(call: &Call<'_>, file: &OpenFile, stream: &Arc<dyn Stream>, to: UserRange) -> Result<usize, Errno> {
    let read = |to: UserRange| call.with_io(file.is_nonblocking(), |io| stream.read(io, to));
    if to.bytes > parts::COPY_BYTES && matches!(file.stream_of(), Some(MemoryDevice::Zero | MemoryDevice::Full)) {
        return parts::carry(call, to, parts::COPY_BYTES, |part, _| read(part));
    }
    read(to)
}

/// Writes at the file's position (or its end) and moves it.
pub fn write_file(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange) -> Result<usize, Errno> {
    if let Body::Stream(stream) = &file.body {
        count_operation(call);
        return file.tell_moved(IN_MODIFY, write_stream(call, file, stream, from));
    }
    write_data(call, file, from)
}

/// As `read_data`.
#[inline(never)]
fn write_data(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange) -> Result<usize, Errno> {
    if let Some(opening) = file.outside().filter(|_| file.is_appending()) {
        return anew(call, || append_outside(call, file, &**opening, from));
    }
    anew(call, || write_once(call, file, from))
}

fn write_once(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange) -> Result<usize, Errno> {
    let position = if file.is_appending() { end_of(file) } else { file.position() };
    let is_long = from.bytes > parts::COPY_BYTES && !file.is_appending();
    let reserved = is_long.then(|| reserve(file, position, from.bytes as u64));
    let written = write_at(call, file, from, position);
    if call.task.is_awaiting() {
        // It is done anew.
        reserved.inspect(|_| file.set_position(position));
        return written;
    }
    // Nothing that is written to the end does not lead there.
    if written != Ok(0) || reserved.is_some() {
        settle(file, position, reserved, written)?;
    }
    // What comes behind the end in whole pages needs new ones, which Rust finds.
    let is_small = from.bytes < machine::PAGE_BYTES || file.position() < end_of(file);
    note_moved(call, file, position, written == Ok(from.bytes) && is_small);
    written
}

/// Where the end is, is known only behind the write: others append too.
fn append_outside(call: &Call<'_>, file: &OpenFile, opening: &dyn File, from: UserRange) -> Result<usize, Errno> {
    let bytes = within_file_limit(call, opening.size(), from.bytes as u64)? as usize;
    let written = call.with_io(file.is_nonblocking(), |io| opening.write(io, 0, from.first(bytes)))?;
    call.task.forget_awaited();
    if written > 0 {
        file.set_position(opening.size());
    }
    file.tell_moved(IN_MODIFY, Ok(written))
}

/// Writes to a stream; a pipe that nobody reads raises SIGPIPE.
fn write_stream(call: &Call<'_>, file: &OpenFile, stream: &Arc<dyn Stream>, from: UserRange) -> Result<usize, Errno> {
    let written = call.with_io(file.is_nonblocking(), |io| stream.write(io, from));
    file.note_room(&written, from.bytes);
    note_broken(call, &written);
    written
}

/// Raises SIGPIPE if a write failed for want of a reader.
fn note_broken(call: &Call<'_>, written: &Result<usize, Errno>) {
    if matches!(written, Err(Errno::EPIPE)) {
        raise_on_caller(call, SIGPIPE);
    }
}

/// Sends a signal to the calling thread for what its call did.
fn raise_on_caller(call: &Call<'_>, signal: u32) {
    // Linux sends these two as if the program had sent them to itself.
    let user = call.process().user_ids.get().real;
    send_to_task(call.unix, call.task, &SigInfo::kill(signal, call.process().pid as i32, user));
}

/// Bytes of `bytes` that RLIMIT_FSIZE lets a file have at `position`.
///
/// Error: `EFBIG`, with SIGXFSZ, if that is none.
fn within_file_limit(call: &Call<'_>, position: u64, bytes: u64) -> Result<u64, Errno> {
    if bytes == 0 { Ok(0) } else { starts_within_file_limit(call, position, bytes) }
}

/// The same where the position counts even if there is nothing to write.
fn starts_within_file_limit(call: &Call<'_>, position: u64, bytes: u64) -> Result<u64, Errno> {
    let limit = call.process().limits.borrow().file_bytes();
    if limit == u64::MAX {
        return Ok(bytes);
    }
    if position >= limit {
        raise_on_caller(call, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    Ok(bytes.min(limit - position))
}

/// Writes at a position of a seekable file.
pub fn write_at(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange, position: u64) -> Result<usize, Errno> {
    let written = write_quietly(call, file, from, position);
    file.tell_moved(IN_MODIFY, written)
}

/// The same, and nobody who watches a file is told.
pub fn write_quietly(call: &Call<'_>, file: &Arc<OpenFile>, from: UserRange, position: u64) -> Result<usize, Errno> {
    ends_within_offsets(position, from.bytes)?;
    count_operation(call);
    if let Body::Stream(stream) = &file.body {
        return write_stream(call, file, stream, from);
    }
    if let Body::File(opening) = &file.body {
        let has_limit = opening.has_bytes();
        let bytes = if has_limit { within_file_limit(call, position, from.bytes as u64)? as usize } else { from.bytes };
        let written = call.with_io(file.is_nonblocking(), |io| opening.write(io, position, from.first(bytes)))?;
        call.task.forget_awaited();
        note_file(call, kind::FILE_WRITE, file, position, written);
        return Ok(written);
    }
    let content = file.content().ok_or(Errno::EINVAL)?;
    if from.bytes == 0 {
        return Ok(0);
    }
    let bytes = within_file_limit(call, position, from.bytes as u64)? as usize;
    let most = if file.is_appending() { parts::APPEND_BYTES } else { parts::COPY_BYTES };
    let written = if bytes <= most {
        write_content(call, content, position, from.first(bytes))?
    } else {
        parts::carry(call, from.first(bytes), most, |part, done| {
            anew(call, || {
                let at = if file.is_appending() && done > 0 { content.size() } else { position + done as u64 };
                write_content(call, content, at, part)
            })
        })?
    };
    note_file(call, kind::FILE_WRITE, file, position, written);
    note_written(call, file);
    Ok(written)
}

/// Linux refuses what would end behind the last offset, before it looks at the file.
///
/// Error: `EINVAL`.
fn ends_within_offsets(position: u64, bytes: usize) -> Result<(), Errno> {
    let end = position.checked_add(bytes as u64).filter(|end| *end <= i64::MAX as u64);
    end.map(drop).ok_or(Errno::EINVAL)
}

/// For a trace that runs: which file, where, how much.
fn note_file(call: &Call<'_>, kind: u16, file: &OpenFile, position: u64, bytes: usize) {
    let trace = call.unix.scheduler.trace();
    if trace.is_on() {
        trace.file(kind, file.node().map_or(0, |node| node.number()), position, bytes);
    }
}

fn note_written(call: &Call<'_>, file: &OpenFile) {
    if let Some(node) = file.node() {
        node.note_write(&call.process().credentials.borrow(), call.now());
    }
}

/// Errors: `EBADF`, `ESPIPE`, `EINVAL`, `ENXIO` for data or hole behind the end.
pub fn lseek(call: &Call<'_>, descriptor: u64, offset: i64, whence: u64) -> CallResult {
    let file = call.file(descriptor)?;
    bind_dispatch(call, nr::LSEEK, &file);
    if whence as u32 > 4 {
        return Err(Errno::EINVAL);
    }
    if !file.is_seekable() {
        return seek_stream(&file);
    }
    let position = match whence as u32 {
        0 => offset,
        1 => (file.position() as i64).checked_add(offset).ok_or(Errno::EINVAL)?,
        2 => (seek_end(&file) as i64).checked_add(offset).ok_or(Errno::EINVAL)?,
        other => seek_content(&file, offset, other == 3)?,
    };
    if position < 0 {
        return Err(Errno::EINVAL);
    }
    file.set_position(position as u64);
    if is_worth_routines(&file) && consider(call.unix, &file) {
        call.files().bind_routines(&file);
    }
    Ok(position as u64)
}

/// Where a seek from the end starts.
fn seek_end(file: &OpenFile) -> u64 {
    match &file.body {
        Body::File(opening) if !file.is_directory() => opening.end(),
        _ => end_of(file),
    }
}

/// Devices and what never had a name stay at 0. Error: `ESPIPE` for pipes, sockets, terminals and processes.
fn seek_stream(file: &OpenFile) -> CallResult {
    let stays_at_start = |stream: &Arc<dyn Stream>| stream.stays_at_start();
    let stays = takes_positions(file) || file.node().is_none() && file.as_stream().is_some_and(stays_at_start);
    if stays { Ok(0) } else { Err(Errno::ESPIPE) }
}

fn seek_content(file: &OpenFile, offset: i64, data: bool) -> Result<i64, Errno> {
    let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
    if let Some(opening) = file.outside() {
        let found = if data { opening.seek_data(from) } else { opening.seek_hole(from) };
        return found.map(|position| position as i64);
    }
    let content = file.content().ok_or(Errno::EINVAL)?;
    let found = if data { content.seek_data(from) } else { content.seek_hole(from) };
    found.map(|position| position as i64)
}
