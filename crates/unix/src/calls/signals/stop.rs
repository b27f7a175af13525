//! Stopping and continuing whole processes.

use alloc::sync::Arc;

use abi::process::WaitStatus;

use crate::calls::life;
use crate::emulator::Unix;
use crate::task::{Process, Report, Task};

/// Stops the process: each thread sleeps before it would go back to the program. Threads that sleep in a
/// call count as stopped where they are.
pub fn stop_process(unix: &'static Unix, process: &Arc<Process>, signal: u32) {
    if process.stopped.get() {
        return;
    }
    process.stopped.set(true);
    process.report.set(Some(Report::Stopped(signal)));
    process.each_task(|task| task.call_attention());
    life::tell_parent(unix, process, WaitStatus::Stopped(signal as u8));
}

/// Continues a stopped process. The parent can see it at once, and gets its signal when the process runs.
pub fn continue_process(unix: &'static Unix, process: &Arc<Process>) {
    if !process.stopped.get() {
        return;
    }
    process.stopped.set(false);
    process.report.set(Some(Report::Continued));
    process.continue_untold.set(true);
    unix.scheduler.wake(&process.continued);
    life::wake_parent(unix, process);
}

/// Sleeps while the thread's process is stopped; only death ends the sleep early.
pub fn sleep_while_stopped(unix: &'static Unix, task: &Task) {
    while task.process.stopped.get() && !task.is_ending() {
        unix.scheduler.sleep(&[&task.process.continued], None);
    }
    if task.process.continue_untold.get() && !task.is_ending() {
        task.process.continue_untold.set(false);
        life::tell_parent(unix, &task.process, WaitStatus::Continued);
        // The parent takes the signal before the next one of this child would be lost behind it.
        unix.scheduler.yield_now();
    }
}
