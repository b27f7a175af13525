//! `--strace`: each call is served as ever and told to the host tool as a line of text.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a line, which shows parts of long arguments, and only with --strace"
)]

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use abi::nr;
use abi::process::WaitStatus;
use abi::siginfo::SigInfo;
use bootimage::control::kind::STRACE;
use machine::{Registers, VirtAddr};

use super::ptrace;
use crate::call::Call;
use crate::emulator::Unix;
use crate::task::{Process, Task};

/// Column of the `=`, as in strace.
const RESULT_COLUMN: usize = 39;

/// Serves call `number` where somebody looks: `--strace`, or a tracer within the machine.
#[cold]
#[inline(never)]
pub fn serve_watched(call: &mut Call<'_>, number: u64) {
    let is_traced = call.task.watch.is_traced();
    let mut number = number;
    call.registers.cause = number;
    if is_traced {
        if !ptrace::enter_call(call) {
            ptrace::leave_call(call.unix, call.task, call.registers);
            return;
        }
        number = u64::from(call.registers.cause as u32);
    }
    if call.unix.options.strace {
        serve_shown(call, number);
    } else {
        super::serve(call, number);
    }
    // A program that was executed may have made the thread another task.
    let task = call.unix.current();
    if task.watch.is_traced() {
        // The call that made the thread a traced one is not seen.
        if is_traced {
            ptrace::leave_call(call.unix, &task, call.registers);
        }
    }
}

/// Serves call `number`, shows it and counts it.
fn serve_shown(call: &mut Call<'_>, number: u64) {
    let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = *call.registers;
    let arguments = [rdi, rsi, rdx, r10, r8, r9];
    let machine = call.unix.machine;
    let memory = |address: u64, bytes: &mut [u8]| machine.copy_in(VirtAddr(address), bytes).is_ok();
    // What these calls were given is gone when they have been served.
    let head = is_shown_before(number).then(|| strace::format_head(number, arguments, None, &memory));
    let started = machine.now();
    super::serve(call, number);
    let elapsed_ns = machine.now().0.saturating_sub(started.0);
    let ends = matches!(number, nr::EXIT | nr::EXIT_GROUP);
    let result = if ends { None } else { Some(call.registers.rax as i64) };
    let head = head.unwrap_or_else(|| strace::format_head(number, arguments, result, &memory));
    let tail = strace::format_tail(number, arguments, result, &memory);
    call.unix.summary.borrow_mut().count(number, result, elapsed_ns);
    tell(call.unix, call.task.tid, &head, Some(&tail));
}

fn is_shown_before(number: u64) -> bool {
    matches!(number, nr::EXECVE | nr::EXECVEAT | nr::EXIT | nr::EXIT_GROUP | nr::RT_SIGRETURN)
}

/// Shows the arrival of a signal.
pub fn tell_signal(unix: &'static Unix, task: &Arc<Task>, info: &SigInfo) {
    if unix.options.strace {
        tell(unix, task.tid, &strace::format_signal(info), None);
    }
}

/// Shows the end of a process.
pub fn tell_end(unix: &'static Unix, process: &Process, status: WaitStatus) {
    if unix.options.strace {
        tell(unix, process.pid, &strace::format_end(status), None);
    }
}

/// Sends one line. Where there are several threads, it says which one it is about.
fn tell(unix: &'static Unix, tid: u32, head: &str, tail: Option<&str>) {
    let mut line = String::new();
    if unix.tasks.task_count() > 1 || tid != 1 {
        line = format!("[pid {tid:>5}] ");
    }
    line.push_str(head);
    if let Some(tail) = tail {
        line = format!("{line:<RESULT_COLUMN$} = {tail}");
    }
    line.push('\n');
    unix.tell(STRACE, line.as_bytes());
}
