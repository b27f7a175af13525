//! The end of threads and processes.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use abi::process::WaitStatus;
use abi::signal::SIGKILL;
use machine::Held;

use super::{family, robust};
use crate::call::{Call, CallResult};
use crate::calls::{coming, futexes, parts, times, trace};
use crate::emulator::Unix;
use crate::files::closing;
use crate::limits::TASKS_MAX;
use crate::task::process::Process;
use crate::task::thread::Task;

/// `exit`: this thread only.
pub fn exit_thread(call: &Call<'_>, status: u64) -> CallResult {
    let process = call.process();
    call.task.ending.set(true);
    call.task.exit_status.set(status as u8);
    call.task.call_attention();
    if process.live_tasks() == 1 {
        // The process ends as its last thread does.
        end_process(call.unix, process, WaitStatus::Exited(status as u8));
    }
    Ok(0)
}

/// `exit_group`: all threads of the process.
pub fn exit_group(call: &Call<'_>, status: u64) -> CallResult {
    end_process(call.unix, call.process(), WaitStatus::Exited(status as u8));
    Ok(0)
}

/// Makes every thread of the process leave, whatever it sleeps for; the first reason counts.
pub fn end_process(unix: &Unix, process: &Arc<Process>, status: WaitStatus) {
    if process.ending.get().is_some() || process.is_zombie() {
        if matches!(status, WaitStatus::Killed { .. }) {
            process.each_task(|task| crate::calls::ptrace::attach::end_last_stop(unix, task));
        }
        return;
    }
    process.ending.set(Some(status));
    process.each_task(|task| task.wake_to_end(unix.scheduler));
}

/// The running thread has left its process and shall not run its program again. Whoever gets this returns it: the
/// outermost frame, which owns nothing, ends the thread ([`Departed::end`]). What a frame held then would never be dropped.
#[must_use]
pub struct Departed {
    /// It was the last thread of the first process: with it the machine ends.
    machine: Option<WaitStatus>,
}

/// How a thread goes on after the kernel has looked around for it.
#[must_use]
pub enum Onward {
    /// Back to its program.
    Program,
    /// Nowhere.
    End(Departed),
}

/// The running thread leaves its process: what it had is let go of.
pub fn leave(held: Held<'_>, unix: &'static Unix, task: Arc<Task>) -> Departed {
    let process = task.process.clone();
    robust::release(held, unix, &task);
    let_go_of_memory(held, unix, &task);
    unix.tracing.release(unix, &task);
    unix.tasks.remove_task(&task);
    crate::calls::ptrace::attach::left(unix, &task);
    crate::calls::times::clocks::account_end(unix, &task);
    closing::release_last(held, unix, &process, task.replace_own_files(None));
    // From here on the thread runs in whatever quaspace is active.
    unix.machine.activate(None);
    task.thread.tte().set_quaspace(None);
    unix.scheduler.quaspace_changed();
    let machine = if task.leave_process() {
        bury_process(held, unix, &process)
    } else {
        unix.scheduler.wake(&process.threads_left);
        None
    };
    Departed { machine }
}

impl Departed {
    /// The end of the running thread. The caller's frame, and all below it, own nothing.
    pub fn end(self, held: Held<'_>, unix: &'static Unix) -> ! {
        if let Some(status) = self.machine {
            end_machine(held, unix, status)
        }
        unix.scheduler.end_with(held, || unix.mourn())
    }
}

/// Tells those who wait for the thread's number to vanish (`pthread_join`), if others share the memory.
pub fn let_go_of_memory(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>) {
    let address = task.clear_child_tid.swap(0, Ordering::Relaxed);
    let Some(space) = task.process.space() else { return };
    // One count is the process's, one is ours.
    let is_shared = task.process.live_tasks() > 1 || Arc::strong_count(&space) > 2;
    if address != 0 && is_shared && coming::store_at_end(held, unix, task, address, &[0; 4]) {
        futexes::wake_address(unix, &space, address, 1);
    }
}

/// The last thread has left: everything the process held goes, the family is told. Of the first process, returns how the
/// machine is to end.
fn bury_process(held: Held<'_>, unix: &'static Unix, process: &Arc<Process>) -> Option<WaitStatus> {
    let status = process.ending.get().unwrap_or(WaitStatus::Exited(0));
    crate::calls::ptrace::attach::tracer_ended(unix, process);
    times::end_timers(process);
    trace::tell_end(held, unix, process, status);
    // Nothing that is dropped here is borrowed meanwhile: closing a file may wake others.
    let space = process.space.borrow_mut().take();
    if let Some(space) = &space {
        process.note_peak(space);
        parts::release_space(held, unix.scheduler, space);
    }
    drop(space);
    closing::release_last(held, unix, process, process.take_files());
    crate::calls::sysv::semaphores::undo::process_ended(held, unix, process.pid);
    unix.families.aio.process_ended(process.pid);
    let executable = process.executable.borrow_mut().take();
    drop(executable);
    let execution = process.execution.borrow_mut().take();
    drop(execution);
    if process.is_sentenced.get() {
        crate::calls::memory::sentence::lose_left(unix, process.pid);
    }
    unix.terminals.process_ended(process);
    release_vfork_parent(unix, process);
    if process.pid == 1 {
        return Some(status);
    }
    family::part(unix, process, status);
    None
}

/// The first program has ended: all others are killed, and the machine finishes with its status.
fn end_machine(held: Held<'_>, unix: &'static Unix, status: WaitStatus) -> ! {
    for other in unix.tasks.processes() {
        end_process(unix, &other, WaitStatus::Killed { signal: SIGKILL as u8, core: false });
    }
    // Each needs a turn or two to leave; one that does not is left behind.
    for _ in 0..4 * TASKS_MAX {
        if unix.scheduler.ready_count() <= 1 {
            break;
        }
        unix.scheduler.yield_now(held);
    }
    match status {
        WaitStatus::Killed { signal, .. } => unix.finish(held, 0, signal.into()),
        WaitStatus::Exited(code) => unix.finish(held, code.into(), 0),
        WaitStatus::Stopped(_) | WaitStatus::Trapped(_) | WaitStatus::Continued => unix.finish(held, 0, 0),
    }
}

/// The process no longer uses the memory of a `vfork` parent.
pub fn release_vfork_parent(unix: &Unix, process: &Process) {
    if process.is_vfork_child.get() {
        process.is_vfork_child.set(false);
        unix.scheduler.wake(&process.vfork_done);
    }
}
