//! Threads of the kernel that people point at callentries (S-120).

use alloc::sync::Arc;
use alloc::vec::Vec;

use bootimage::inspect::Items;
use codestore::{Code, WordCall};
use kernel::schedule::Scheduler;
use kernel::thread::{State, Thread};
use machine::{KernelCell, Start};

use super::{Cursor, Question, Refusal};

/// Jobs that are remembered; each that runs has a thread with a stack.
const JOBS_MAX: usize = 32;

struct Job {
    number: u32,
    /// Gone when its thread has ended.
    thread: Option<Arc<Thread>>,
    scheduler: &'static Scheduler,
    code: Code<WordCall>,
    words: [u64; 6],
    result: Option<u64>,
}

/// A thread of the kernel gets no argument: it finds its job here by its own number.
static JOBS: KernelCell<Vec<Job>> = KernelCell::new(Vec::new());

/// Arguments: `u64 entry`, six words. `u32 job, u32 thread`.
pub fn run(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    sweep();
    let found = unix.desk.parts.borrow().callentry_at(question.u64()?);
    let (code, _) = found.ok_or(Refusal::Absent)?;
    let mut words = [0; 6];
    for word in &mut words {
        *word = question.u64()?;
    }
    let mut jobs = JOBS.borrow_mut();
    if jobs.len() >= JOBS_MAX {
        let done = jobs.iter().position(|job| job.thread.is_none()).ok_or(Refusal::Busy)?;
        jobs.remove(done);
    }
    let tte = unix.machine.create_tte(Start::Kernel(work)).map_err(|_| Refusal::NoMemory)?;
    let thread = Thread::new(tte);
    let number = jobs.last().map_or(1, |job| job.number + 1);
    out.u32(number).u32(thread.id().0);
    jobs.push(Job { number, thread: Some(thread.clone()), scheduler: unix.scheduler, code, words, result: None });
    drop(jobs);
    unix.scheduler.enlist(&thread);
    unix.scheduler.unblock(&thread);
    Ok(0)
}

/// `u32 job, u8 done, u64 answer` of each.
pub fn list(_: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    sweep();
    for job in &*JOBS.borrow() {
        out.u32(job.number).u8(job.result.is_some().into()).u64(job.result.unwrap_or(0));
    }
    Ok(0)
}

/// Gives back the threads of jobs that have ended.
fn sweep() {
    for job in &mut *JOBS.borrow_mut() {
        if let Some(thread) = job.thread.take_if(|thread| thread.state() == State::Ended) {
            job.scheduler.discharge(thread.id());
        }
    }
}

/// The job of the running thread.
fn own(jobs: &mut [Job]) -> Option<&mut Job> {
    jobs.iter_mut()
        .find(|job| job.thread.as_ref().is_some_and(|thread| thread.id() == job.scheduler.machine().current_tte()))
}

/// The first procedure of every such thread.
fn work() -> ! {
    let found = own(&mut JOBS.borrow_mut()).map(|job| (job.scheduler, job.code.clone(), job.words));
    let (scheduler, code, words) = found.expect("a job is in the list before its thread runs");
    let value = code.call(words);
    drop(code);
    if let Some(job) = own(&mut JOBS.borrow_mut()) {
        job.result = Some(value);
    }
    scheduler.end_with(|| ())
}
