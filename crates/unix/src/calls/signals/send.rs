//! Sending signals: into a queue, and whoever must look is woken.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::process::{RLIMIT_SIGPENDING, WaitStatus};
use abi::siginfo::{SI_USER, SigInfo};
use machine::{KernelCell, NoMemory, try_collect};

use super::stop;
use crate::emulator::Unix;
use crate::signal::generate;
use crate::signal::generate::{Candidate, wake_thread};
use crate::signal::generate::{Fate, Target, Wake, choose_thread};
use crate::signal::mask::ThreadMask;
use crate::signal::pending::Pending;
use crate::signal::set::is_real_time;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Sends a signal to a process. One that finds no room is lost, as `kill` and the kernel's own never are.
pub fn send_to_process(unix: &'static Unix, process: &Arc<Process>, info: &SigInfo) {
    let _ = try_send_to_process(unix, process, info);
}

/// Sends a signal to one thread.
pub fn send_to_task(unix: &'static Unix, task: &Arc<Task>, info: &SigInfo) {
    let _ = try_send_to_task(unix, task, info);
}

/// Sends a signal to every process of a group; the number of processes.
pub fn send_to_group(unix: &'static Unix, group: u32, info: &SigInfo) -> usize {
    let members = unix.tasks.group(group).filter(|process| !process.is_zombie());
    members.inspect(|process| send_to_process(unix, process, info)).count()
}

/// Error: `EAGAIN` when a queued signal finds no room.
pub fn try_send_to_process(unix: &'static Unix, process: &Arc<Process>, info: &SigInfo) -> Result<(), Errno> {
    // Most processes have one thread, and it needs no lists.
    if let Some(only) = only_task(process) {
        let choose = |_: &[Arc<Task>]| choose(process, info, &[candidate(&only)]);
        return post(unix, process, info, core::slice::from_ref(&only), choose);
    }
    let Ok((tasks, candidates)) = live_tasks(process) else { return try_send_without_list(unix, process, info) };
    post(unix, process, info, &tasks, |_| choose(process, info, &candidates))
}

/// The same when there is no memory for a list: the first thread that takes the signal gets it.
#[cold]
fn try_send_without_list(unix: &'static Unix, process: &Arc<Process>, info: &SigInfo) -> Result<(), Errno> {
    let live = || process.tasks.borrow().iter().filter_map(Weak::upgrade).find(|task| !task.ending.get());
    let takes = |task: &Arc<Task>| !matches!(choose(process, info, &[candidate(task)]), Wake::Nobody);
    let taker = process.tasks.borrow().iter().filter_map(Weak::upgrade).find(|task| !task.ending.get() && takes(task));
    let Some(task) = taker.or_else(live) else { return post(unix, process, info, &[], |_| Wake::Nobody) };
    post(unix, process, info, core::slice::from_ref(&task), |_| choose(process, info, &[candidate(&task)]))
}

fn post(
    unix: &'static Unix,
    process: &Arc<Process>,
    info: &SigInfo,
    tasks: &[Arc<Task>],
    choose: impl Fn(&[Arc<Task>]) -> Wake,
) -> Result<(), Errno> {
    let mask = tasks.first().map_or(ThreadMask::default(), |task| task.mask.get());
    if !accept(unix, process, info, &mask) {
        return Ok(());
    }
    post_into(&process.pending, info, process)?;
    unix.scheduler.wake(&process.signal_arrived);
    wake_up(unix, process, info.signo as u32, choose(tasks), tasks);
    Ok(())
}

fn choose(process: &Process, info: &SigInfo, candidates: &[Candidate]) -> Wake {
    let signal = info.signo as u32;
    choose_thread(signal, handler(process, signal), candidates, 0)
}

/// The task of a process that has only one.
fn only_task(process: &Process) -> Option<Arc<Task>> {
    let tasks = process.tasks.borrow();
    let [only] = &tasks[..] else { return None };
    only.upgrade().filter(|task| !task.ending.get())
}

/// Error: `EAGAIN` when a queued signal finds no room.
pub fn try_send_to_task(unix: &'static Unix, task: &Arc<Task>, info: &SigInfo) -> Result<(), Errno> {
    let process = &task.process;
    if !accept(unix, process, info, &task.mask.get()) {
        return Ok(());
    }
    let candidate = candidate(task);
    post_into(&task.pending, info, process)?;
    unix.scheduler.wake(&process.signal_arrived);
    let signal = info.signo as u32;
    let wake = wake_thread(signal, handler(process, signal), &candidate);
    wake_up(unix, process, signal, wake, core::slice::from_ref(task));
    Ok(())
}

/// What a signal does whether or not it is kept; true if it goes into a queue.
fn accept(unix: &'static Unix, process: &Arc<Process>, info: &SigInfo, mask: &ThreadMask) -> bool {
    let signal = info.signo as u32;
    let ending = process.ending.get().is_some() || process.is_zombie();
    let traced = is_traced(process);
    let target = Target { ending, traced, ..Target::of(signal, &process.actions().borrow(), mask) };
    let generated = generate(signal, &target);
    process.flush_signals(generated.flush);
    if generated.continues {
        stop::continue_process(unix, process);
    }
    generated.fate == Fate::Queue
}

/// The threads that have not ended, and what they are as candidates.
fn live_tasks(process: &Process) -> Result<(Vec<Arc<Task>>, Vec<Candidate>), NoMemory> {
    let tasks = process.tasks.borrow();
    let live = try_collect(tasks.iter().filter_map(Weak::upgrade).filter(|task| !task.ending.get()))?;
    let candidates = try_collect(live.iter().map(|task| candidate(task)))?;
    Ok((live, candidates))
}

fn handler(process: &Process, signal: u32) -> u64 {
    process.actions().borrow().of(signal).sa_handler
}

/// Measured before the signal is posted, as `busy` tells of earlier ones.
fn candidate(task: &Task) -> Candidate {
    let busy = !task.pending.borrow().set().minus(task.mask.get().blocked()).is_empty();
    let traced = task.watch.is_traced();
    // A tracer may have let the thread go on although its process counts as stopped.
    let stopped = task.process.stopped.get() && !traced;
    Candidate { mask: task.mask.get(), ending: task.ending.get(), stopped, busy, traced }
}

/// Whether a thread of the process is traced. Most processes have one thread, and it needs no list.
fn is_traced(process: &Process) -> bool {
    process.tasks.borrow().iter().filter_map(Weak::upgrade).any(|task| task.watch.is_traced())
}

/// Only some signals ask for room. Error: `EAGAIN`.
fn post_into(queue: &KernelCell<Pending>, info: &SigInfo, process: &Process) -> Result<(), Errno> {
    let asks = is_real_time(info.signo as u32) || info.code < SI_USER;
    let room = if asks { room(process) } else { 0 };
    queue.borrow_mut().post(info, room).map(|_| ())
}

/// Signals that may still be queued for the process.
fn room(process: &Process) -> usize {
    let limit = process.limits.borrow().0[RLIMIT_SIGPENDING as usize].0;
    let mut queued = process.pending.borrow().queued();
    process.tasks.borrow().iter().filter_map(Weak::upgrade).for_each(|task| queued += task.pending.borrow().queued());
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(queued)
}

fn wake_up(unix: &'static Unix, process: &Arc<Process>, signal: u32, wake: Wake, tasks: &[Arc<Task>]) {
    match wake {
        Wake::Nobody => {}
        Wake::Thread(place) => {
            if let Some(task) = tasks.get(place) {
                task.call_attention();
                unix.scheduler.unblock(&task.thread);
            }
        }
        Wake::Everybody => {
            crate::calls::life::end::end_process(
                unix,
                process,
                WaitStatus::Killed { signal: signal as u8, core: false },
            );
        }
    }
}
