//! `--strace`: what happens is told to the host tool in lines of text.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a line, which shows parts of long arguments, and only with --strace"
)]

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use abi::process::WaitStatus;
use abi::siginfo::SigInfo;
use bootimage::control::kind::STRACE;
use machine::Held;

use crate::emulator::Unix;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Column of the `=`, as in strace.
const RESULT_COLUMN: usize = 39;

/// Shows the arrival of a signal.
pub fn tell_signal(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, info: &SigInfo) {
    if unix.options.strace {
        tell(held, unix, task.tid, &strace::format_signal(info), None);
    }
}

/// Shows the end of a process.
pub fn tell_end(held: Held<'_>, unix: &'static Unix, process: &Process, status: WaitStatus) {
    if unix.options.strace {
        tell(held, unix, process.pid, &strace::format_end(status), None);
    }
}

/// Sends one line. Where there are several threads, it says which one it is about.
pub fn tell(held: Held<'_>, unix: &'static Unix, tid: u32, head: &str, tail: Option<&str>) {
    let mut line = String::new();
    if unix.tasks.task_count() > 1 || tid != 1 {
        line = format!("[pid {tid:>5}] ");
    }
    line.push_str(head);
    if let Some(tail) = tail {
        line = format!("{line:<RESULT_COLUMN$} = {tail}");
    }
    line.push('\n');
    unix.tell(held, STRACE, line.as_bytes());
}
