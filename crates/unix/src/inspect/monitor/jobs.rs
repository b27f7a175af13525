//! Threads of the kernel that people point at callentries (S-120).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use codestore::{Code, WordCall};
use kernel::schedule::Scheduler;
use kernel::thread::{State, Thread};
use machine::{KernelCell, Start, TteId};

use super::commands::usage;
use super::{Answer, Line, Wrong};

/// Jobs that are remembered; each that runs has a thread with a stack.
const JOBS_MAX: usize = 32;

struct Job {
    number: u32,
    what: String,
    thread: Option<Arc<Thread>>,
    code: Code<WordCall>,
    words: [u64; 6],
    result: Option<u64>,
}

/// A thread of the kernel gets no argument: it finds its job here by its own number.
static JOBS: KernelCell<Vec<Job>> = KernelCell::new(Vec::new());
static SCHEDULER: KernelCell<Option<&'static Scheduler>> = KernelCell::new(None);

/// `run CALLENTRY(ARGUMENTS)`
pub fn run(line: &Line<'_>) -> Answer {
    let unix = line.unix;
    sweep(unix.scheduler);
    let rest = line.rest.trim();
    let (name, inner) = rest.split_once('(').ok_or_else(|| usage("run"))?;
    let inner = inner.strip_suffix(')').ok_or_else(|| usage("run"))?;
    let found = unix.desk.parts.borrow().callentry(name.trim_end());
    let (code, takes) =
        found.ok_or_else(|| Wrong::new(format!("{name} is no callentry of a quaject; list shows them")))?;
    let mut words = [0; 6];
    let given = inner.split(',').filter(|text| !text.trim().is_empty()).count();
    if given != takes {
        return Err(Wrong::new(format!("{name} takes {takes} arguments, not {given}")));
    }
    for (word, text) in words.iter_mut().zip(inner.split(',').filter(|text| !text.trim().is_empty())) {
        *word = line.expression(text)?;
    }
    if JOBS.borrow().len() >= JOBS_MAX {
        let mut jobs = JOBS.borrow_mut();
        let done = jobs.iter().position(|job| job.thread.is_none()).ok_or_else(|| Wrong::new("too many jobs run"))?;
        jobs.remove(done);
    }
    let tte = unix.machine.create_tte(Start::Kernel(work)).map_err(|_| Wrong::new("no memory for a thread"))?;
    let thread = Thread::new(tte);
    let number = JOBS.borrow().iter().map(|job| job.number).max().unwrap_or(0) + 1;
    let id = thread.id();
    let job = Job { number, what: rest.to_string(), thread: Some(thread.clone()), code, words, result: None };
    SCHEDULER.set(Some(unix.scheduler));
    JOBS.borrow_mut().push(job);
    unix.scheduler.enlist(&thread);
    unix.scheduler.unblock(&thread);
    Ok(format!("job {number}: thread {} of the kernel runs {rest}\n", id.0))
}

/// `jobs`
pub fn list(line: &Line<'_>) -> Answer {
    sweep(line.unix.scheduler);
    let mut text = String::new();
    for job in &*JOBS.borrow() {
        let standing = match job.result {
            Some(value) => format!("answered {}", value as i64),
            None => "not yet".to_string(),
        };
        text += &format!("job {}: {}: {standing}\n", job.number, job.what);
    }
    Ok(text)
}

/// Gives back the threads of jobs that have ended.
fn sweep(scheduler: &Scheduler) {
    let mut ended = Vec::new();
    for job in &mut *JOBS.borrow_mut() {
        ended.extend(job.thread.take_if(|thread| thread.state() == State::Ended));
    }
    for thread in ended {
        scheduler.discharge(thread.id());
    }
}

fn take(id: TteId) -> Option<(Code<WordCall>, [u64; 6])> {
    let jobs = JOBS.borrow();
    let job = jobs.iter().find(|job| job.thread.as_ref().is_some_and(|thread| thread.id() == id))?;
    Some((job.code.clone(), job.words))
}

/// The first procedure of every such thread.
fn work() -> ! {
    let scheduler = SCHEDULER.get().expect("set before the first thread");
    let id = scheduler.machine().current_tte();
    if let Some((code, words)) = take(id) {
        let value = code.call(words);
        drop(code);
        for job in &mut *JOBS.borrow_mut() {
            if job.thread.as_ref().is_some_and(|thread| thread.id() == id) {
                job.result = Some(value);
            }
        }
    }
    scheduler.end_with(|| ())
}
