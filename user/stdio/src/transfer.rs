//! The Rust paths: what a routine leaves to them, and what stands in for routines that a stream does not have.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::slice;

use ground::Errno;
use libc::{EOF, c_int};

use crate::standard;
use crate::stream::{Buffering, Direction, GetCode, PutCode, ReadCode, Words, WriteCode};

/// The Rust path of the routine for one character.
pub fn slow_character(direction: Direction, buffering: Buffering) -> usize {
    match (direction, buffering) {
        (Direction::Out, Buffering::None) => put_at_once as PutCode as usize,
        (Direction::Out, _) => put_stored as PutCode as usize,
        (Direction::In, _) => get_slowly as GetCode as usize,
    }
}

/// The Rust path of the routine for many.
pub fn slow_run(direction: Direction, buffering: Buffering) -> usize {
    match (direction, buffering) {
        (Direction::Out, Buffering::Full) => write_full as WriteCode as usize,
        (Direction::Out, Buffering::Line) => write_lines as WriteCode as usize,
        (Direction::Out, Buffering::None) => write_at_once as WriteCode as usize,
        (Direction::In, _) => read_slowly as ReadCode as usize,
    }
}

fn refuse() {
    Errno(libc::EBADF).set();
}

/// `put` of an input stream or a closed one.
pub extern "C" fn put_refused(_: c_int, _: *mut Words) -> c_int {
    refuse();
    EOF
}

pub extern "C" fn get_refused(_: *mut Words) -> c_int {
    refuse();
    EOF
}

pub extern "C" fn write_refused(_: *const u8, _: usize, _: *mut Words) -> usize {
    refuse();
    0
}

pub extern "C" fn read_refused(_: *mut u8, _: usize, _: *mut Words) -> usize {
    refuse();
    0
}

/// Writes all of `bytes`; returns how many went out before an error.
fn send(fd: c_int, bytes: &[u8]) -> usize {
    let mut sent = 0;
    while sent < bytes.len() {
        let rest = &bytes[sent..];
        // SAFETY: the slice is readable.
        let n = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(n) {
            Ok(0) => break,
            Ok(n) => sent += n,
            Err(_) if Errno::last() == Errno(libc::EINTR) => {}
            Err(_) => break,
        }
    }
    sent
}

/// Hands the buffer to the system. `false`: not all of it; the rest stays, at the front.
pub fn flush(words: &mut Words) -> bool {
    let (fd, size) = (words.fd, words.size);
    let (index, end) = words.buffer();
    let used = (size as i64 + *index) as usize;
    if used == 0 {
        return true;
    }
    // SAFETY: the buffer's `size` bytes end at `end`, inside the stream's region, and nobody else uses them now.
    let buffer = unsafe { slice::from_raw_parts_mut((end - size) as *mut u8, size) };
    let sent = send(fd, &buffer[..used]);
    buffer.copy_within(sent..used, 0);
    *index = (used - sent) as i64 - size as i64;
    words.failed |= sent < used;
    sent == used
}

/// A character was stored, and the buffer is full or a line has ended. What cannot be sent stays; if that is the whole
/// buffer the last character is not taken, so that there is always room for one.
extern "C" fn put_stored(character: c_int, stream: *mut Words) -> c_int {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    if flush(words) {
        return c_int::from(character as u8);
    }
    let (index, _) = words.buffer();
    *index = (*index).min(-1);
    EOF
}

extern "C" fn put_at_once(character: c_int, stream: *mut Words) -> c_int {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    if send(words.fd, &[character as u8]) == 1 {
        return c_int::from(character as u8);
    }
    words.failed = true;
    EOF
}

/// What the macro calls when its index came to zero: in a fully buffered stream the character is stored and the buffer full;
/// otherwise the macro only ever counts to zero, and the routine does the work.
pub extern "C" fn put_from_macro(character: c_int, stream: *mut Words) -> c_int {
    // SAFETY: the macro passes an open or closed stream.
    let words = unsafe { &mut *stream };
    if words.direction == Direction::Out && words.buffering == Buffering::Full && words.fd >= 0 {
        return put_stored(character, stream);
    }
    words.index = if words.direction == Direction::Out { -1 } else { 0 };
    (words.put)(character, stream)
}

/// Copies `bytes` into the buffer, flushing when it is full. Returns how many were taken.
fn fill_buffer(words: &mut Words, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < bytes.len() {
        let (index, end) = words.buffer();
        let room = index.unsigned_abs() as usize;
        let part = &bytes[taken..][..room.min(bytes.len() - taken)];
        // SAFETY: `room` bytes before `end` are free and in the region; `part` is the caller's and cannot overlap what no
        // caller knows.
        unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), (end as i64 + *index) as *mut u8, part.len()) };
        *index += part.len() as i64;
        taken += part.len();
        if *index == 0 && !flush(words) {
            let (index, _) = words.buffer();
            if *index == 0 {
                // The last byte was not taken: there must be room for one.
                *index = -1;
                taken -= 1;
            }
            return taken;
        }
    }
    taken
}

/// The caller's bytes.
///
/// # Safety
/// `count` bytes at `bytes` are readable as long as the result lives.
unsafe fn given<'a>(bytes: *const u8, count: usize) -> &'a [u8] {
    // SAFETY: the caller's promise; an empty slice needs a pointer that is not null.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(bytes, count) } }
}

extern "C" fn write_full(bytes: *const u8, count: usize, stream: *mut Words) -> usize {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    // SAFETY: the contract of `write`: the caller's bytes.
    let bytes = unsafe { given(bytes, count) };
    if count < words.size {
        return fill_buffer(words, bytes);
    }
    if !flush(words) {
        return 0;
    }
    let sent = send(words.fd, bytes);
    words.failed |= sent < count;
    sent
}

extern "C" fn write_lines(bytes: *const u8, count: usize, stream: *mut Words) -> usize {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    // SAFETY: the contract of `write`: the caller's bytes.
    let bytes = unsafe { given(bytes, count) };
    let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let taken = fill_buffer(words, &bytes[..lines]);
    if taken < lines || (lines > 0 && !flush(words)) {
        return taken;
    }
    lines + fill_buffer(words, &bytes[lines..])
}

extern "C" fn write_at_once(bytes: *const u8, count: usize, stream: *mut Words) -> usize {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    // SAFETY: the contract of `write`: the caller's bytes.
    let sent = send(words.fd, unsafe { given(bytes, count) });
    words.failed |= sent < count;
    sent
}

/// One `read` of the system; 0 at the end or after an error, which is noted.
fn receive(words: &mut Words, into: *mut u8, count: usize) -> usize {
    loop {
        // SAFETY: the caller's `count` bytes, or the buffer's.
        let n = unsafe { libc::read(words.fd, into.cast(), count) };
        match usize::try_from(n) {
            Ok(0) => words.at_end = true,
            Ok(n) => return n,
            Err(_) if Errno::last() == Errno(libc::EINTR) => continue,
            Err(_) => words.failed = true,
        }
        return 0;
    }
}

/// Gets more bytes into the empty buffer. `false`: the end or an error. The end is kept, as C libraries do.
fn fill(words: &mut Words) -> bool {
    if words.at_end {
        return false;
    }
    standard::flush_lines();
    let wanted = if words.buffering == Buffering::None { 1 } else { words.size };
    let start = (words.end - wanted) as *mut u8;
    let got = receive(words, start, wanted);
    // Bytes end at the buffer's end, whose address stands in the routines.
    // SAFETY: both places are in the buffer.
    unsafe { core::ptr::copy(start, (words.end - got) as *mut u8, got) };
    words.index = -(got as i64);
    got > 0
}

pub extern "C" fn get_slowly(stream: *mut Words) -> c_int {
    // SAFETY: routines and the macro pass a stream.
    let words = unsafe { &mut *stream };
    if words.direction == Direction::Out || words.fd < 0 {
        return get_refused(stream);
    }
    // The macro has counted before it found nothing.
    words.index = words.index.min(0);
    if words.index == 0 && !fill(words) {
        return EOF;
    }
    // SAFETY: index is negative: the byte is in the buffer.
    let byte = unsafe { *((words.end as i64 + words.index) as *const u8) };
    words.index += 1;
    byte.into()
}

extern "C" fn read_slowly(into: *mut u8, count: usize, stream: *mut Words) -> usize {
    // SAFETY: routines pass their own stream.
    let words = unsafe { &mut *stream };
    let mut done = 0;
    while done < count {
        let there = words.index.unsigned_abs() as usize;
        let wanted = count - done;
        if there == 0 && wanted >= words.size && !words.at_end {
            standard::flush_lines();
            // SAFETY: the contract of `read`: `count` bytes at `into` are the caller's.
            match receive(words, unsafe { into.add(done) }, wanted) {
                0 => break,
                got => done += got,
            }
            continue;
        }
        if there == 0 && !fill(words) {
            break;
        }
        let part = wanted.min(words.index.unsigned_abs() as usize);
        let from = (words.end as i64 + words.index) as *const u8;
        // SAFETY: `part` bytes are in the buffer, and the caller's place has room for them.
        unsafe { core::ptr::copy_nonoverlapping(from, into.add(done), part) };
        words.index += part as i64;
        done += part;
    }
    done
}
