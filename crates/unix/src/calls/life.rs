//! Birth and death of processes and threads.

use alloc::sync::Arc;

use abi::process::WaitStatus;
use kernel::schedule::WaitQueue;

use super::Entry;
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::task::{Life, Process, Task};
use abi::nr;

/// `exit`: this thread only.
pub fn exit_thread(call: &Call<'_>, status: u64) -> CallResult {
    call.task.ending.set(true);
    if call.process().live_tasks() == 1 {
        end_process(call.process(), WaitStatus::Exited(status as u8));
    }
    Ok(0)
}

/// `exit_group`: all threads of the process.
pub fn exit_group(call: &Call<'_>, status: u64) -> CallResult {
    end_process(call.process(), WaitStatus::Exited(status as u8));
    Ok(0)
}

/// Makes every thread of the process leave; the first reason counts.
pub fn end_process(process: &Arc<Process>, status: WaitStatus) {
    if process.ending.get().is_none() {
        process.ending.set(Some(status));
    }
}

/// The running thread leaves its process and never runs again.
pub fn leave(unix: &'static Unix, task: &Arc<Task>) -> ! {
    let process = task.process.clone();
    if process.ending.get().is_some() {
        process.each_task(|other| unix.scheduler.unblock(&other.thread));
    }
    unix.tasks.remove_task(task);
    if task.leave_process() {
        bury_process(unix, &process);
    }
    unix.morgue.borrow_mut().push(task.thread.clone());
    unix.machine.activate(None);
    task.thread.tte().set_quaspace(None);
    drop(process);
    unix.scheduler.end_with(|| ())
}

/// The last thread has left: everything the process held goes, the parent is told.
fn bury_process(unix: &'static Unix, process: &Arc<Process>) {
    let status = process.ending.get().unwrap_or(WaitStatus::Exited(0));
    if process.pid == 1 {
        match status {
            WaitStatus::Killed { signal, .. } => unix.finish(0, signal.into()),
            WaitStatus::Exited(code) => unix.finish(code.into(), 0),
            _ => unix.finish(0, 0),
        }
    }
    process.life.set(Life::Zombie(status));
    let _: Option<&WaitQueue> = None;
}

pub const CALLS: &[Entry] =
    &[(nr::EXIT, |call, [a, ..]| exit_thread(call, a)), (nr::EXIT_GROUP, |call, [a, ..]| exit_group(call, a))];
