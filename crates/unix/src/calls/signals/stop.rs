//! Stopping and continuing whole processes: stop and start of their threads (S-52).

use alloc::sync::Arc;

use abi::process::WaitStatus;
use kernel::thread::State;
use machine::Held;

use crate::emulator::Unix;
use crate::task::process::{Process, Report};
use crate::task::thread::Task;

/// Stops the process: each thread sleeps before it would go back to the program. Threads that sleep in a
/// call count as stopped where they are.
pub fn stop_process(unix: &'static Unix, task: &Arc<Task>, signal: u32) {
    let process = &task.process;
    if process.stopped.get() {
        // A tracer let the thread go on meanwhile.
        task.watch.set_trap(task.watch.is_traced());
        return;
    }
    process.stopped.set(true);
    process.stop_signal.set(signal);
    process.report.set(Some(Report::Stopped(signal)));
    process.each_task(|task| {
        task.call_attention();
        if task.watch.is_traced() {
            crate::calls::ptrace::attach::ask_to_trap(unix, task);
        }
    });
    crate::calls::life::family::tell_parent(unix, process, WaitStatus::Stopped(signal as u8));
}

/// Continues a stopped process. The parent can see it at once, and gets its signal when the process runs.
pub fn continue_process(unix: &'static Unix, process: &Arc<Process>) {
    if !process.stopped.get() {
        return;
    }
    process.stopped.set(false);
    process.report.set(Some(Report::Continued));
    process.continue_untold.set(true);
    process.each_task(|task| {
        if task.watch.is_seized() {
            crate::calls::ptrace::attach::ask_to_trap(unix, task);
        } else if task.thread.state() == State::Stopped && !task.watch.is_stopped() {
            task.thread.start(unix.scheduler);
        }
    });
    crate::calls::life::family::wake_parent(unix, process);
}

/// The thread stops with its process; only death starts it earlier, or a tracer.
pub fn sleep_while_stopped(held: Held<'_>, unix: &'static Unix, task: &Task) {
    while task.process.stopped.get() && !task.is_ending() && !task.watch.has_trap() {
        task.thread.stop();
        unix.scheduler.safe_point(held);
    }
    if task.process.continue_untold.get() && !task.is_ending() {
        task.process.continue_untold.set(false);
        crate::calls::life::family::tell_parent(unix, &task.process, WaitStatus::Continued);
        // The parent takes the signal before the next one of this child would be lost behind it.
        unix.scheduler.yield_now(held);
    }
}
