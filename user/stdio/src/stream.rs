//! A stream: the words its routines work with, and how it is opened, rebuffered and closed.

use alloc::vec::Vec;
use core::ptr::NonNull;

use ground::Errno;
use libc::c_int;
use spin::Mutex;

use crate::region::{BUFFER_BYTES_MAX, Region};
use crate::routines::{self, Facts};
use crate::transfer;

/// When bytes that were put go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Buffering {
    /// When the buffer is full, or asked for.
    Full = 0,
    /// Also after the end of a line. For input the same as `Full`.
    Line = 1,
    /// At once.
    None = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Direction {
    In = 0,
    Out = 1,
}

/// A stream cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// No memory in the low 2 GB, or no executable memory.
    Memory(Errno),
    /// The file cannot be opened.
    File(Errno),
    /// Another direction than reading or writing: a stream has one.
    Mode,
}

impl OpenError {
    /// The number that C programs find in `errno`.
    pub fn errno(&self) -> c_int {
        match self {
            OpenError::Memory(error) | OpenError::File(error) => error.0,
            OpenError::Mode => libc::EINVAL,
        }
    }
}

/// The buffer size that is used when none is given.
pub(crate) const BUFFER_BYTES: usize = 8192;
/// Bytes at the buffer's end that the macros may write when every character takes the slow way.
const MACRO_BYTES: usize = 16;

pub(crate) type PutCode = extern "C" fn(c_int, *mut Words) -> c_int;
pub(crate) type GetCode = extern "C" fn(*mut Words) -> c_int;
pub(crate) type WriteCode = extern "C" fn(*const u8, usize, *mut Words) -> usize;
pub(crate) type ReadCode = extern "C" fn(*mut u8, usize, *mut Words) -> usize;

/// What programs, routines and the Rust paths share. The header knows the first six words.
#[repr(C)]
pub(crate) struct Words {
    /// What the macros count: minus the free bytes (out), minus the bytes that are there (in). When every character takes
    /// the slow way it is -1 (out) or 0 (in), and the routines count in `hidden`.
    pub index: i64,
    pub end: usize,
    pub put: PutCode,
    pub get: GetCode,
    pub write: WriteCode,
    pub read: ReadCode,
    slow_character: usize,
    slow_run: usize,
    pub hidden: i64,
    pub size: usize,
    pub fd: c_int,
    pub failed: bool,
    pub at_end: bool,
    pub direction: Direction,
    pub buffering: Buffering,
    made: bool,
}

impl Words {
    /// The index that the routines count, and the end it counts towards.
    pub fn buffer(&mut self) -> (&mut i64, usize) {
        match (self.direction, self.buffering) {
            (Direction::Out, Buffering::Line | Buffering::None) => (&mut self.hidden, self.end - MACRO_BYTES),
            _ => (&mut self.index, self.end),
        }
    }

    /// An empty buffer.
    pub fn reset(&mut self) {
        self.hidden = -(self.size as i64);
        self.index = match (self.direction, self.buffering) {
            (Direction::In, _) => 0,
            (Direction::Out, Buffering::Full) => -(self.size as i64),
            (Direction::Out, _) => -1,
        };
    }
}

/// The streams that are open, and the regions of closed ones.
struct Streams {
    open: Vec<Region>,
    inactive: Vec<Region>,
}

static STREAMS: Mutex<Streams> = Mutex::new(Streams { open: Vec::new(), inactive: Vec::new() });

/// Opens a stream on a descriptor.
///
/// # Errors
/// `OpenError::Memory`.
pub(crate) fn open(fd: c_int, direction: Direction, buffering: Buffering) -> Result<NonNull<Words>, OpenError> {
    let reused = STREAMS.lock().inactive.pop();
    let region = match reused {
        Some(region) => region,
        None => Region::new().map_err(OpenError::Memory)?,
    };
    match open_in(region, fd, direction, buffering) {
        Ok(words) => Ok(words),
        Err(error) => {
            STREAMS.lock().inactive.push(region);
            Err(error)
        }
    }
}

/// Opens a stream in a region that nobody else uses.
pub(crate) fn open_in(
    region: Region,
    fd: c_int,
    direction: Direction,
    buffering: Buffering,
) -> Result<NonNull<Words>, OpenError> {
    let mut at: NonNull<Words> = region.stream();
    // SAFETY: 1. the region is mapped and the caller's alone. 2. All-zero words were valid before, or a closed stream's
    // are; only `made`, `direction` and `buffering` are read, whose zero is a valid value.
    let words = unsafe { at.as_mut() };
    let kept = words.made && words.direction == direction && words.buffering == buffering;
    let fresh = Words {
        index: 0,
        end: region.end(),
        put: transfer::put_refused,
        get: transfer::get_refused,
        write: transfer::write_refused,
        read: transfer::read_refused,
        slow_character: transfer::slow_character(direction, buffering),
        slow_run: transfer::slow_run(direction, buffering),
        hidden: 0,
        size: BUFFER_BYTES,
        fd,
        failed: false,
        at_end: false,
        direction,
        buffering,
        made: kept,
    };
    // SAFETY: as above; words need no drop.
    unsafe { at.write(fresh) };
    // SAFETY: as above, and now they are valid in every part.
    let words = unsafe { at.as_mut() };
    words.reset();
    synthesize(region, words).map_err(OpenError::Memory)?;
    STREAMS.lock().open.push(region);
    Ok(at)
}

/// Makes the stream's routines, unless the region has those very ones, and binds them.
fn synthesize(region: Region, words: &mut Words) -> Result<(), Errno> {
    let (direction, buffering) = (words.direction, words.buffering);
    let (slow_character, slow_run) = (&raw const words.slow_character, &raw const words.slow_run);
    let stream = &raw const *words as usize;
    let (index, end) = words.buffer();
    let facts = Facts {
        direction,
        buffering,
        code: region.code(),
        index: &raw const *index as usize - stream,
        end,
        slow_character: slow_character as usize,
        slow_run: slow_run as usize,
    };
    let made = routines::make(&facts).map_err(|_| Errno(libc::ENOMEM))?;
    if !words.made {
        region.publish(&made.bytes)?;
    }
    words.made = true;
    bind(words, made.character, made.run);
    Ok(())
}

/// The one place where an address becomes a function.
fn bind(words: &mut Words, character: usize, run: usize) {
    match words.direction {
        Direction::Out => {
            // SAFETY: `character` is published code with the contract of `put` in C's calling convention.
            words.put = unsafe { core::mem::transmute::<usize, PutCode>(character) };
            // SAFETY: `run` is published code with the contract of `write`.
            words.write = unsafe { core::mem::transmute::<usize, WriteCode>(run) };
        }
        Direction::In => {
            // SAFETY: `character` is published code with the contract of `get`.
            words.get = unsafe { core::mem::transmute::<usize, GetCode>(character) };
            // SAFETY: `run` is published code with the contract of `read`.
            words.read = unsafe { core::mem::transmute::<usize, ReadCode>(run) };
        }
    }
}

/// Changes how a stream buffers: its routines are written anew. What was put before goes out first. `size` 0 keeps the
/// size; more than [`BUFFER_BYTES_MAX`] becomes that. `false`: the bytes could not be written, or no code could be made;
/// the stream is as it was.
pub(crate) fn rebuffer(words: &mut Words, buffering: Buffering, size: usize) -> bool {
    let holds_input = words.direction == Direction::In && words.index != 0;
    if holds_input || (words.direction == Direction::Out && !transfer::flush(words)) {
        return false;
    }
    let old = (words.buffering, words.size, words.slow_character, words.slow_run);
    words.made &= words.buffering == buffering;
    words.buffering = buffering;
    words.slow_character = transfer::slow_character(words.direction, buffering);
    words.slow_run = transfer::slow_run(words.direction, buffering);
    if size != 0 {
        words.size = size.min(BUFFER_BYTES_MAX - MACRO_BYTES);
    }
    words.reset();
    let region = Region::of_stream(NonNull::from(&mut *words));
    if synthesize(region, words).is_ok() {
        return true;
    }
    (words.buffering, words.size, words.slow_character, words.slow_run) = old;
    words.reset();
    false
}

/// Flushes and closes; the region waits for the next stream. `false`: the last bytes or the close failed.
pub(crate) fn close(mut at: NonNull<Words>) -> bool {
    // SAFETY: the caller gives up the stream, which is open.
    let words = unsafe { at.as_mut() };
    let flushed = words.direction == Direction::In || transfer::flush(words);
    // A dangling use finds routines that refuse (S-20).
    words.put = transfer::put_refused;
    words.get = transfer::get_refused;
    words.write = transfer::write_refused;
    words.read = transfer::read_refused;
    words.index = if words.direction == Direction::In { 0 } else { -1 };
    // SAFETY: the stream owned the descriptor.
    let closed = unsafe { libc::close(words.fd) } == 0;
    words.fd = -1;
    let region = Region::of_stream(at);
    let mut streams = STREAMS.lock();
    streams.open.retain(|open| *open != region);
    if !(0..3).any(|number| region == Region::of_standard(number)) {
        streams.inactive.push(region);
    }
    flushed && closed
}

/// Flushes every open output stream. `false`: one of them failed.
pub(crate) fn flush_all() -> bool {
    let open = STREAMS.lock().open.clone();
    let mut flushed = true;
    for region in open {
        let mut at: NonNull<Words> = region.stream();
        // SAFETY: the region is that of an open stream; streams are used by one thread at a time.
        let words = unsafe { at.as_mut() };
        if words.direction == Direction::Out {
            flushed &= transfer::flush(words);
        }
    }
    flushed
}

/// A stream of a Rust program. Dropping it flushes and closes, without a word about errors: call [`Stream::close`].
#[derive(Debug)]
pub struct Stream(NonNull<Words>);

impl Stream {
    /// Opens a stream on a descriptor, which it owns from now on.
    ///
    /// # Errors
    /// `OpenError::Memory`; the descriptor stays open then.
    pub fn open(fd: c_int, direction: Direction, buffering: Buffering) -> Result<Stream, OpenError> {
        open(fd, direction, buffering).map(Stream)
    }

    fn words(&mut self) -> &mut Words {
        // SAFETY: the stream is open as long as `self` lives, and `self` is borrowed.
        unsafe { self.0.as_mut() }
    }

    /// Puts one byte. `None`: it could not be written, or this is an input stream.
    pub fn put(&mut self, byte: u8) -> Option<u8> {
        let put = self.words().put;
        u8::try_from(put(byte.into(), self.0.as_ptr())).ok()
    }

    /// Takes one byte. `None`: the end, an error, or an output stream.
    pub fn get(&mut self) -> Option<u8> {
        let get = self.words().get;
        u8::try_from(get(self.0.as_ptr())).ok()
    }

    /// Puts bytes; returns how many were taken.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let write = self.words().write;
        write(bytes.as_ptr(), bytes.len(), self.0.as_ptr())
    }

    /// Takes bytes until `into` is full, the end or an error; returns how many.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let read = self.words().read;
        read(into.as_mut_ptr(), into.len(), self.0.as_ptr())
    }

    /// Hands what was put to the system. `false`: not all of it; the rest is kept.
    pub fn flush(&mut self) -> bool {
        self.words().direction == Direction::Out && transfer::flush(self.words())
    }

    /// See [`Buffering`]; `size` 0 keeps the buffer's size. `false`: see `rebuffer` in the source.
    pub fn set_buffering(&mut self, buffering: Buffering, size: usize) -> bool {
        rebuffer(self.words(), buffering, size)
    }

    /// Whether an operation has failed.
    pub fn has_failed(&mut self) -> bool {
        self.words().failed
    }

    /// Whether the end was met.
    pub fn is_at_end(&mut self) -> bool {
        self.words().at_end
    }

    /// Flushes and closes. `false`: the last bytes or the close failed.
    pub fn close(self) -> bool {
        let at = self.0;
        core::mem::forget(self);
        close(at)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        close(self.0);
    }
}
