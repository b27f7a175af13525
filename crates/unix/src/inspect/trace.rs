//! `synth trace`: which threads are traced, and handing the records out.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bootimage::control::kind::TRACE;
use bootimage::inspect::{Items, trace as part};
use kernel::trace::{RECORD_BYTES, TraceError};
use machine::{Held, KernelCell, TryGrow, TteId};
use quaject::Makers;

use super::{Cursor, Question, Refusal};
use crate::emulator::Unix;
use crate::task::thread::Task;

/// Records kept when a run is traced from its start.
const RUN_RECORDS: usize = 1 << 17;
/// Threads whose names are kept; records of further ones have numbers alone.
const NAMES_MAX: usize = 4096;
/// Bytes of a record to the host tool at the end of a traced run.
const PIECE_BYTES: usize = 32 << 10;

/// Who is traced, and the names of all who were.
pub(crate) struct Tracing {
    /// The only process that is traced; 0: all.
    only: KernelCell<u32>,
    names: KernelCell<Vec<Name>>,
}

/// A thread of the machine is this task from record `from` on.
struct Name {
    from: u64,
    tte: TteId,
    thread: u32,
    process: u32,
    name: [u8; 16],
}

impl Tracing {
    pub const fn new() -> Tracing {
        Tracing { only: KernelCell::new(0), names: KernelCell::new(Vec::new()) }
    }

    /// A thread has come while a trace runs.
    pub fn adopt(&self, unix: &Unix, task: &Arc<Task>) {
        let trace = unix.scheduler.trace();
        if !trace.is_on() || ![0, task.process.pid].contains(&self.only.get()) {
            return;
        }
        trace.divert(Makers::new(unix.machine, unix.store), &task.thread);
        let mut names = self.names.borrow_mut();
        if names.len() < NAMES_MAX {
            // Without memory it has no name.
            let _ = names.try_push(Name {
                from: trace.written(),
                tte: task.thread.id(),
                thread: task.tid,
                process: task.process.pid,
                name: *task.name.borrow(),
            });
        }
    }

    /// A thread ends, under the name it has now.
    pub fn release(&self, unix: &Unix, task: &Task) {
        if unix.scheduler.trace().is_on() {
            self.rename(task);
            unix.scheduler.trace().release(&task.thread);
        }
    }

    fn rename(&self, task: &Task) {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.iter_mut().rev().find(|name| name.thread == task.tid) {
            known.name = *task.name.borrow();
        }
    }

    fn begin(&self, unix: &'static Unix, records: usize, only: u32) -> Result<(), TraceError> {
        unix.scheduler.trace().begin(records)?;
        self.only.set(only);
        self.names.borrow_mut().clear();
        for number in unix.tasks.numbers_from(0) {
            if let Some(task) = unix.tasks.task(number) {
                self.adopt(unix, &task);
            }
        }
        unix.store.set_watch(Some(unix.scheduler.trace()));
        // From now on the kernel sees each interrupt of the timer.
        unix.scheduler.allow_preemption();
        Ok(())
    }

    fn end(&self, unix: &'static Unix) {
        let trace = unix.scheduler.trace();
        unix.store.set_watch(None);
        for number in unix.tasks.numbers_from(0) {
            if let Some(task) = unix.tasks.task(number) {
                self.release(unix, &task);
            }
        }
        trace.end();
        unix.scheduler.allow_preemption();
    }

    /// Traces a run from its start; without memory it goes on untraced.
    pub fn begin_run(&self, unix: &'static Unix) {
        let _ = self.begin(unix, RUN_RECORDS, 0);
    }

    /// Sends the trace of a whole run to the host tool.
    #[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "at the end of the machine, with --trace")]
    pub fn tell_run(&self, held: Held<'_>, unix: &'static Unix) {
        let trace = unix.scheduler.trace();
        self.end(unix);
        let mut number = 0;
        while number < trace.written() {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            piece.push(part::RECORDS);
            let lost = trace.read(number, PIECE_BYTES - RECORD_BYTES, &mut piece);
            number += lost + (piece.len() / RECORD_BYTES) as u64;
            if lost > 0 {
                unix.tell(held, TRACE, &[&[part::LOST][..], &lost.to_le_bytes()].concat());
            }
            unix.tell(held, TRACE, &piece);
        }
        for index in 0.. {
            let mut items = Items::after(alloc::vec![part::NAME]);
            if !self.put_name(unix, index, &mut items) {
                break;
            }
            unix.tell(held, TRACE, &items.bytes);
        }
    }

    /// Name number `index`: first those of threads, then those of routines. `false`: there are no more.
    fn put_name(&self, unix: &Unix, index: usize, out: &mut Items) -> bool {
        let names = self.names.borrow();
        if let Some(name) = names.get(index) {
            let text = name.name.split(|byte| *byte == 0).next().unwrap_or_default();
            out.u8(part::THREAD_NAME).u64(name.from).u32(name.tte.0).u32(name.thread).u32(name.process).text(text);
            return true;
        }
        let Some(name) = unix.scheduler.trace().name(index - names.len()) else { return false };
        out.u8(part::ROUTINE_NAME).u64((index - names.len()) as u64).u32(0).u32(0).u32(0).text(name.as_bytes());
        true
    }
}

/// Arguments: how many records, and the only process that is traced (0: all).
pub fn begin(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (records, only) = (question.u32()?, question.u32()?);
    let unix = question.unix;
    if only != 0 && unix.tasks.process(only).is_none() {
        return Err(Refusal::Absent);
    }
    match unix.tracing.begin(unix, records as usize, only) {
        Ok(()) => out.u64(0),
        Err(TraceError::Busy) => return Err(Refusal::Busy),
        Err(TraceError::NoMemory) => return Err(Refusal::NoMemory),
    };
    Ok(0)
}

pub fn end(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    // A run that is traced as a whole stays so.
    if question.unix.options.trace {
        return Err(Refusal::Busy);
    }
    question.unix.tracing.end(question.unix);
    Ok(0)
}

/// Records from number `cursor` on.
pub fn read(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let at = out.bytes.len();
    out.u64(0);
    let room = out.room();
    let lost = question.unix.scheduler.trace().read(question.cursor, room, &mut out.bytes);
    out.bytes[at..at + 8].copy_from_slice(&lost.to_le_bytes());
    Ok(0)
}

pub fn names(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    for number in unix.tasks.numbers_from(0) {
        if let Some(task) = unix.tasks.task(number) {
            unix.tracing.rename(&task);
        }
    }
    let mut index = question.cursor as usize;
    while unix.tracing.put_name(unix, index, out) {
        if !out.keep() {
            return Ok(index as u64);
        }
        index += 1;
    }
    Ok(0)
}
