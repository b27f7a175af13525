//! Calls that somebody looks at: with `--strace` each is served as ever and told to the host tool as a line of text.

use abi::nr;
use machine::{Registers, VirtAddr};

use super::trace::tell;
use crate::call::Call;

/// Serves call `number` where somebody looks: `--strace`, or a tracer within the machine.
#[cold]
#[inline(never)]
pub fn serve_watched(call: &mut Call<'_>, number: u64) {
    let is_traced = call.task.watch.is_traced();
    let mut number = number;
    call.registers.cause = number;
    if is_traced {
        if !crate::calls::ptrace::stops::enter_call(call) {
            crate::calls::ptrace::stops::leave_call(call.held, call.unix, call.task, call.registers);
            return;
        }
        number = u64::from(call.registers.cause as u32);
    }
    if call.unix.options.strace {
        serve_shown(call, number);
    } else {
        super::table::serve(call, number);
    }
    // A program that was executed may have made the thread another task.
    let task = call.unix.current();
    if task.watch.is_traced() {
        // The call that made the thread a traced one is not seen.
        if is_traced {
            crate::calls::ptrace::stops::leave_call(call.held, call.unix, &task, call.registers);
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
    super::table::serve(call, number);
    let elapsed_ns = machine.now().0.saturating_sub(started.0);
    let ends = matches!(number, nr::EXIT | nr::EXIT_GROUP);
    let result = if ends { None } else { Some(call.registers.rax as i64) };
    let head = head.unwrap_or_else(|| strace::format_head(number, arguments, result, &memory));
    let tail = strace::format_tail(number, arguments, result, &memory);
    call.unix.summary.borrow_mut().count(number, result, elapsed_ns);
    tell(call.held, call.unix, call.task.tid, &head, Some(&tail));
}

fn is_shown_before(number: u64) -> bool {
    matches!(number, nr::EXECVE | nr::EXECVEAT | nr::EXIT | nr::EXIT_GROUP | nr::RT_SIGRETURN)
}
