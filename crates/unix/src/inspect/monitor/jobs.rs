//! Threads of the kernel that people point at callentries (S-120).
#![expect(clippy::disallowed_methods, reason = "JOBS_MAX at most")]

use alloc::sync::Arc;
use alloc::vec::Vec;

use bootimage::inspect::Items;
use codestore::{Code, WordCall};
use kernel::thread::{State, Thread};
use machine::{Held, KernelCell, Start};

use super::streams;
use crate::emulator::Unix;
use crate::inspect::{Cursor, Question, Refusal};

/// Jobs that are remembered; each that runs has a thread with a stack.
const JOBS_MAX: usize = 32;

struct Job {
    number: u32,
    /// Gone when its thread has ended.
    thread: Option<Arc<Thread>>,
    unix: &'static Unix,
    work: Work,
    result: Option<u64>,
}

/// What a thread does.
#[derive(Clone)]
enum Work {
    /// Calls once.
    Call(Code<WordCall>, [u64; 6]),
    /// Turns this pump until it is removed or its stream ends; the answer is what it carried.
    Pump(u32),
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
    let (number, thread) = begin(unix, Work::Call(code, words))?;
    out.u32(number).u32(thread);
    Ok(0)
}

/// Gives a pump a thread.
pub fn pump(unix: &'static Unix, number: u32) -> Result<(), Refusal> {
    sweep();
    begin(unix, Work::Pump(number)).map(|_| ())
}

/// Numbers of the job and of its thread.
fn begin(unix: &'static Unix, work: Work) -> Result<(u32, u32), Refusal> {
    let mut jobs = JOBS.borrow_mut();
    if jobs.len() >= JOBS_MAX {
        let done = jobs.iter().position(|job| job.thread.is_none()).ok_or(Refusal::Busy)?;
        jobs.remove(done);
    }
    let tte = unix.machine.create_tte(Start::Kernel(run_job)).map_err(|_| Refusal::NoMemory)?;
    let thread = Thread::new(tte);
    unix.scheduler.enlist(&thread).map_err(|_| Refusal::NoMemory)?;
    let number = jobs.last().map_or(1, |job| job.number + 1);
    jobs.push(Job { number, thread: Some(thread.clone()), unix, work, result: None });
    drop(jobs);
    unix.scheduler.unblock(&thread);
    Ok((number, thread.id().0))
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
            job.unix.scheduler.discharge(thread.id());
        }
    }
}

/// The job of the running thread.
fn own(jobs: &mut [Job]) -> Option<&mut Job> {
    jobs.iter_mut().find(|job| job.thread.as_ref().is_some_and(|thread| thread.id() == job.unix.machine.current_tte()))
}

/// The first procedure of every such thread. It owns nothing: it does not return.
fn run_job(held: Held<'_>) -> ! {
    do_own(held).scheduler.end_with(held, || ())
}

fn do_own(held: Held<'_>) -> &'static Unix {
    let found = own(&mut JOBS.borrow_mut()).map(|job| (job.unix, job.work.clone()));
    let (unix, work) = found.expect("a job is in the list before its thread runs");
    let value = match work {
        Work::Call(code, words) => code.call(words),
        Work::Pump(number) => turn_pump(held, unix, number),
    };
    unix.desk.moved(unix);
    if let Some(job) = own(&mut JOBS.borrow_mut()) {
        job.result = Some(value);
    }
    unix
}

/// Words that a pump carries before others run.
const TURN_WORDS: u64 = 256;

fn turn_pump(held: Held<'_>, unix: &'static Unix, number: u32) -> u64 {
    let mut carried = 0;
    loop {
        // The routine is let go before the thread sleeps, so that the pump can be removed.
        let turn = unix.desk.parts.borrow().turn(number);
        let Some(moved) = turn.map(|code| code.call([TURN_WORDS, 0, 0, 0, 0, 0])) else { return carried };
        carried += moved;
        if moved > 0 {
            unix.desk.moved(unix);
        } else if has_ended(unix, number) {
            return carried;
        } else {
            unix.desk.wait(held, unix);
        }
        // A ring of pumps would never let an interrupt in, nor another thread.
        unix.scheduler.breathe(held);
        unix.scheduler.yield_now(held);
    }
}

/// Whether a stream at a pump's ends has ended or failed.
fn has_ended(unix: &'static Unix, number: u32) -> bool {
    unix.desk.parts.borrow().streams_of(number).any(streams::has_ended)
}
