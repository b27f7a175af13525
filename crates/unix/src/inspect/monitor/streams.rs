//! Streams of programs as quajects: a byte is a word. Both callentries are Rust and never sleep: the pump between a stream and
//! what people made waits (`jobs`).
//!
//! A stream that people connected holds its open file, as a descriptor of its own would, until it is removed.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "names of one stream")]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::Errno;
use bootimage::inspect::Items;
use kernel::file::Content;
use kernel::pipe::PipeEnd;
use kernel::schedule::WaitQueue;
use kernel::stream::{Caller, Io, Stream, Waits};
use machine::KernelCell;
use monitor::blocks::{self, NOTHING};

use super::parts::{Bond, Part};
use crate::emulator::Unix;
use crate::files::channel::ChannelStream;
use crate::files::descriptors::Descriptor;
use crate::files::memory::MemoryDevice;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::ends::TtyStream;
use crate::inspect::streams::describe;
use crate::inspect::{Cursor, Question, Refusal};

/// Words of a stream: bytes got, bytes put, how it stands.
const GOT: usize = 0;
const PUT_WORD: usize = 1;
const STANDING: usize = 2;
/// It has come to its end; what is more is an errno and this.
const ENDED: u64 = 1;

/// An open file that people use.
#[derive(Clone)]
pub struct Tap {
    pub file: Arc<OpenFile>,
    process: u32,
    descriptor: u32,
}

impl Tap {
    /// `process.descriptor name`.
    pub fn describe(&self, unix: &Unix) -> Vec<u8> {
        let mut text = alloc::format!("{}.fd.{} ", self.process, self.descriptor).into_bytes();
        text.extend_from_slice(&describe(unix, &self.file).name);
        text
    }

    /// Calls `visit` for what wakes who waits for the stream.
    pub fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        if let Some(stream) = self.file.as_stream() {
            stream.each_queue(visit);
        }
    }
}

/// Whether the last byte was refused for good.
pub fn has_ended(stream: &Part) -> bool {
    stream.words[STANDING].load(Ordering::Relaxed) != 0
}

/// Where the callentries find the system: code gets only a number.
static SYSTEM: KernelCell<Option<&'static Unix>> = KernelCell::new(None);

/// `get()`: the next byte; nothing if there is none now, or never again.
pub const GET: extern "C" fn(u64) -> u64 = get;
/// `put(byte)`: 1; nothing if there is no room now.
pub const PUT: extern "C" fn(u64, u64) -> u64 = put;

extern "C" fn get(number: u64) -> u64 {
    let mut byte = [0];
    done(number, GOT, |unix, file| take(unix, file, &mut byte)).map_or(NOTHING, |_| byte[0].into())
}

extern "C" fn put(number: u64, word: u64) -> u64 {
    done(number, PUT_WORD, |unix, file| give(unix, file, &[word as u8])).unwrap_or(NOTHING)
}

/// Moves a byte, and keeps account.
fn done(number: u64, count: usize, go: impl FnOnce(&'static Unix, &OpenFile) -> Result<usize, Errno>) -> Option<u64> {
    let unix = (*SYSTEM.borrow())?;
    let find =
        || unix.desk.parts.borrow().taps().find(|(part, _)| part.number == number as u32).map(|(_, tap)| tap.clone());
    let tap = find()?;
    let outcome = go(unix, &tap.file);
    let parts = unix.desk.parts.borrow();
    let words = &parts.get(number as u32)?.words;
    words[STANDING].store(0, Ordering::Relaxed);
    match outcome {
        Ok(0) => words[STANDING].store(ENDED, Ordering::Relaxed),
        Ok(_) => {
            words[count].fetch_add(1, Ordering::Relaxed);
            return Some(1);
        }
        Err(Errno::EAGAIN) => {}
        Err(error) => words[STANDING].store(ENDED + error as u64, Ordering::Relaxed),
    }
    None
}

/// Whether a stream asks nothing of who reads or writes it.
fn serves(file: &OpenFile) -> bool {
    match &file.body {
        Body::Stream(stream) => {
            let any = stream.as_any();
            any.is::<PipeEnd>() || any.is::<ChannelStream>() || any.is::<TtyStream>() || any.is::<MemoryDevice>()
        }
        _ => file.has_data(),
    }
}

fn take(unix: &'static Unix, file: &OpenFile, into: &mut [u8]) -> Result<usize, Errno> {
    file.check_readable()?;
    let position = file.position();
    let read = match &file.body {
        Body::Stream(stream) => return take_from(unix, &**stream, into),
        Body::File(opening) => opening.read_at(position, into)?,
        _ => here(file, position, into.len())?.read_at(position, into),
    };
    file.set_position(position + read as u64);
    Ok(read)
}

/// A file's data. Error: `EAGAIN` while some of it must come first.
fn here(file: &OpenFile, position: u64, bytes: usize) -> Result<&Content, Errno> {
    let content = file.content().ok_or(Errno::EINVAL)?;
    match content.bring(position..position.saturating_add(bytes as u64))? {
        None => Ok(content),
        Some(_) => Err(Errno::EAGAIN),
    }
}

fn take_from(unix: &'static Unix, stream: &dyn Stream, into: &mut [u8]) -> Result<usize, Errno> {
    match stream.as_any().downcast_ref::<TtyStream>() {
        // Its `read_kernel` asks which program reads.
        Some(tty) => tty.terminal().read_now(into),
        None => stream.read_kernel(&io(unix), into),
    }
}

fn give(unix: &'static Unix, file: &OpenFile, from: &[u8]) -> Result<usize, Errno> {
    file.check_writable()?;
    if let Body::Stream(stream) = &file.body {
        let tty = stream.as_any().downcast_ref::<TtyStream>();
        // It would ask which program writes.
        let asks = tty.is_some_and(|tty| tty.terminal().stops_background_writers());
        return if asks { Err(Errno::EIO) } else { stream.write_kernel(&io(unix), from) };
    }
    let position = if file.is_appending() { file.size() } else { file.position() };
    let written = match file.outside() {
        Some(opening) => opening.write_at(position, from)?,
        None => here(file, position, from.len())?.write_at(position, from)?,
    };
    file.set_position(position + written as u64);
    Ok(written)
}

/// No program's thread.
struct Nobody;

impl Caller for Nobody {
    fn is_interrupted(&self) -> bool {
        false
    }
}

fn io(unix: &'static Unix) -> Io<'static> {
    Io { waits: Waits::ForNothing, scheduler: unix.scheduler, caller: &Nobody }
}

/// Arguments: `u32 thread, u32 descriptor`. `u32` number of the stream, made if it is new.
pub fn open(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, thread, descriptor) = (question.unix, question.u32()?, question.u32()?);
    let task = unix.tasks.task(thread).ok_or(Refusal::Absent)?;
    let file = task.file(Descriptor(descriptor)).ok_or(Refusal::Absent)?;
    if !serves(&file) {
        return Err(Refusal::Bad);
    }
    *SYSTEM.borrow_mut() = Some(unix);
    let mut parts = unix.desk.parts.borrow_mut();
    let known = parts.taps().find(|(_, tap)| Arc::ptr_eq(&tap.file, &file)).map(|(part, _)| part.number);
    let process = task.process.pid;
    let number = match known {
        Some(number) => number,
        None => parts.make(unix, blocks::STREAM, |_| Ok(Bond::Stream(Tap { file, process, descriptor })))?,
    };
    out.u32(number);
    Ok(0)
}
