//! Watches: probes around live callentries of programs' streams, and callbacks of theirs that are bound (S-18, S-120).
//!
//! The routine is made once more with other ways out (`kernel::call::watch`), and every open file that has it gets the new one
//! through its descriptors' slots. Taken away, the old one is bound again, where the file still has ours; the code and the
//! words stay until nobody can be inside any more.
#![expect(clippy::disallowed_methods, reason = "the monitor is the owner of the machine, who makes few watches")]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::nr;
use bootimage::inspect::Items;
use codestore::Code;
use kernel::FileCall;
use kernel::call::FileCode;
use kernel::call::watch::WatchWords;
use kernel::classes;
use monitor::blocks::{self, DATA_WORDS};
use quaject::Watch;

use super::parts::{Bond, Part};
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;
use crate::files::synthesize::watched;
use crate::inspect::{Cursor, Question, Refusal};

/// Word of a watch: threads inside. It follows calls, ticks, most, least and left.
const INSIDE: usize = 5;

/// The routines of an open file, in this order, by the call that they do.
const CALLS: [u64; 5] = [nr::READ, nr::WRITE, nr::LSEEK, nr::PREAD64, nr::PWRITE64];

fn place(code: &mut FileCode, at: usize) -> &mut Option<Code<FileCall>> {
    match at {
        0 => &mut code.read,
        1 => &mut code.write,
        2 => &mut code.seek,
        3 => &mut code.pread,
        _ => &mut code.pwrite,
    }
}

/// One routine that is watched.
pub struct Watching {
    name: &'static str,
    at: usize,
    original: Code<FileCall>,
    enter: Code<FileCall>,
    /// The routine made anew, and its ways out.
    _inner: Vec<Code<FileCall>>,
}

impl Watching {
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn entry(&self) -> u64 {
        self.enter.entry().address()
    }

    /// Whether `entry` is the routine, or what stands in its place.
    pub fn is_of(&self, entry: u64) -> bool {
        [self.entry(), self.original.entry().address()].contains(&entry)
    }

    /// Whether a thread is inside, or an open file on its way may still bring one in.
    pub fn is_entered(&self, unix: &Unix, part: &Part) -> bool {
        part.words[INSIDE].load(Ordering::Relaxed) != 0 || unix.store.references(self.entry()) > 1
    }

    /// Everybody goes the old way again.
    pub fn restore(&self, unix: &'static Unix) {
        exchange(unix, self.at, self.entry(), &self.original);
    }

    fn make(
        unix: &'static Unix,
        part: &Part,
        found: &Found,
        callback: Option<&'static str>,
    ) -> Result<Watching, Refusal> {
        let makers = unix.makers().ok_or(Refusal::Absent)?;
        let [calls, ticks, most, least, left, inside] = [0, 1, 2, 3, 4, INSIDE].map(|word| part.word(word));
        let words = WatchWords { calls, ticks, most, least, left, inside, told: part.word(DATA_WORDS) };
        part.words[3].store(u64::MAX, Ordering::Relaxed);
        let leave = words.leave(makers).ok_or(Refusal::NoMemory)?;
        let slow = words.slow(makers).ok_or(Refusal::NoMemory)?;
        let (mut inner, mut ways) = (Vec::new(), [0; 4]);
        for (label, way) in ways.iter_mut().enumerate().filter(|_| callback.is_some()) {
            let told = words.told(makers, label, CALLS[found.at], slow.entry().address()).ok_or(Refusal::NoMemory)?;
            *way = told.entry().address();
            inner.push(told);
        }
        let callback = callback.map(|name| (name, ways));
        let makers = makers.watching(Watch { leave: leave.entry().address(), slow: slow.entry().address(), callback });
        let routine = place(&mut watched(&found.file, makers), found.at).take().ok_or(Refusal::NoMemory)?;
        let enter = words.enter(makers, CALLS[found.at], routine.entry().address()).ok_or(Refusal::NoMemory)?;
        inner.extend([leave, slow, routine]);
        Ok(Watching { name: found.name, at: found.at, original: found.code.clone(), enter, _inner: inner })
    }
}

/// A live routine of an open file.
struct Found {
    file: Arc<OpenFile>,
    at: usize,
    code: Code<FileCall>,
    name: &'static str,
}

/// Calls `visit` for every open file behind a descriptor.
fn each_file(unix: &'static Unix, mut visit: impl FnMut(&Arc<OpenFile>)) {
    for process in unix.tasks.processes() {
        process.each_files(|files| files.list().for_each(|(_, file)| visit(&file)));
    }
}

fn find(unix: &'static Unix, entry: u64) -> Option<Found> {
    let (mut found, name) = (None, unix.store.birth(entry)?.name);
    each_file(unix, |file| {
        let Some(mut code) = file.callentries().map(|code| code.clone()) else { return };
        for at in 0..CALLS.len() {
            if let Some(code) = place(&mut code, at).take_if(|code| code.entry().address() == entry) {
                found = Some(Found { file: file.clone(), at, code, name });
            }
        }
    });
    found
}

/// Binds `new` wherever a file has the routine that starts at `old`.
fn exchange(unix: &'static Unix, at: usize, old: u64, new: &Code<FileCall>) {
    let mut changed = Vec::new();
    each_file(unix, |file| {
        let mut code = file.code.borrow_mut();
        if let Some(code) = place(&mut code, at).as_mut().filter(|code| code.entry().address() == old) {
            *code = new.clone();
            changed.push(file.clone());
        }
    });
    for process in unix.tasks.processes() {
        process.each_files(|files| changed.iter().for_each(|file| files.rebind(file)));
    }
}

/// The callback of a quaject of the class that makes routines of this name.
fn callback_of(routine: &str, name: &[u8]) -> Option<&'static str> {
    let class = classes().find(|class| class.makes(routine))?;
    class.callbacks.iter().map(|callback| callback.name).find(|known| known.as_bytes() == name)
}

/// Arguments: `u64 entry`, and the name of a callback or nothing. `u32` number of the watch. ABSENT: no descriptor leads
/// there, or it has no such callback; BUSY: it is watched.
pub fn watch(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, entry) = (question.unix, question.u64()?);
    let name = question.arguments.0;
    let mut parts = unix.desk.parts.borrow_mut();
    if parts.is_watched(entry) {
        return Err(Refusal::Busy);
    }
    let found = find(unix, entry).ok_or(Refusal::Absent)?;
    let callback = match name {
        [] => None,
        _ => Some(callback_of(found.name, name).ok_or(Refusal::Absent)?),
    };
    let number = parts.make(unix, blocks::WATCH, |part| {
        let watching = Watching::make(unix, part, &found, callback)?;
        exchange(unix, watching.at, entry, &watching.enter);
        Ok(Bond::Watch(watching))
    })?;
    out.u32(number);
    Ok(0)
}
