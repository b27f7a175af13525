//! Where a traced thread stands still, and what its tracer is told.

use alloc::boxed::Box;
use alloc::sync::Arc;

use abi::Errno;
use abi::process::WaitStatus;
use abi::ptrace::{
    PTRACE_EVENT_EXEC, PTRACE_EVENT_EXIT, PTRACE_EVENT_STOP, PTRACE_EVENTMSG_SYSCALL_ENTRY,
    PTRACE_EVENTMSG_SYSCALL_EXIT, PTRACE_O_TRACESYSGOOD,
};
use abi::siginfo::{Cause, SigInfo, TRAP_BRKPT};
use abi::signal::{SIGCHLD, SIGTRAP};
use machine::{Held, Registers};

use super::watchpoints;
use crate::call::Call;
use crate::emulator::Unix;
use crate::signal::child::{Child, child_info};
use crate::signal::generate::Force;
use crate::signal::generate::force;
use crate::signal::restart::RestartKind;
use crate::task::process::Process;
use crate::task::thread::Task;
use crate::task::tracing::{At, Going, TraceStop};

/// With `PTRACE_O_TRACESYSGOOD`, tells a call's stop from a `SIGTRAP`.
const CALL_MARK: u32 = 0x80;

/// A stop of the running thread.
struct Wanted {
    at: At,
    /// Signal, and event above its eight bits.
    code: u32,
    info: Option<SigInfo>,
}

/// Stands still until the tracer lets the thread go on; what it changed in the registers is in them then. Returns the
/// signal that it gave, 0 for none. Does nothing in a thread that nobody traces or that is ending.
fn stop(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, wanted: Wanted) -> u32 {
    let watch = &task.watch;
    let Wanted { at, code, info } = wanted;
    let Some(tracer) = watch.tracer().filter(|_| at == At::End || !task.is_ending()) else { return 0 };
    let shown = Registers { rax: shown_result(task, registers), ..task.thread.without_step(registers) };
    *watch.stop.borrow_mut() = Some(Box::new(TraceStop {
        at,
        code,
        is_reported: false,
        is_listening: false,
        is_over: false,
        signal: 0,
        info,
        registers: shown,
        in_call: watch.in_call.get(),
    }));
    tell_tracer(unix, task, &tracer, code);
    drop(tracer);
    while watch.is_stopped() && (at == At::End || !task.is_ending()) {
        task.thread.stop();
        unix.scheduler.safe_point(held);
    }
    let Some(stop) = watch.stop.borrow_mut().take() else { return 0 };
    // The tracer may have stored something.
    watchpoints::note(task);
    take_registers(task, registers, &shown, &stop);
    task.thread.arrange_step(registers);
    if let Some(info) = stop.info.filter(|_| at == At::Signal) {
        watch.last_info.set(Some(info));
    }
    stop.signal
}

/// As Linux shows it: a call that a signal interrupted has an error that no program sees.
fn shown_result(task: &Task, registers: &Registers) -> u64 {
    let error = match task.interrupted_call.get() {
        _ if registers.rax != Errno::EINTR.as_return_value() => return registers.rax,
        RestartKind::No => return registers.rax,
        RestartKind::Restart => 512,
        RestartKind::RestartAlways => 513,
        RestartKind::RestartNoHandler => 514,
        RestartKind::RestartBlock => 516,
    };
    -(error as i64) as u64
}

/// Takes over what the tracer changed. A changed result, or another call number, means that an interrupted call is over.
fn take_registers(task: &Task, registers: &mut Registers, shown: &Registers, stop: &TraceStop) {
    let new = stop.registers;
    let is_same_call = new.rax == shown.rax && new.cause == shown.cause;
    let rax = if is_same_call { registers.rax } else { new.rax };
    if !is_same_call {
        task.interrupted_call.set(RestartKind::No);
    }
    *registers = Registers { rax, error: registers.error, cs: registers.cs, ss: registers.ss, ..new };
}

/// `SIGCHLD`, as a parent gets it, and whoever waits looks again.
fn tell_tracer(unix: &'static Unix, task: &Task, tracer: &Arc<Process>, code: u32) {
    let child = Child { pid: task.tid as i32, uid: task.process.user_ids.get().real, utime: 0, stime: 0 };
    if tracer.actions().borrow().wants_child_stops() {
        let status = WaitStatus::Trapped((code & 0x7f) as u16);
        crate::calls::signals::send::send_to_process(unix, tracer, &child_info(SIGCHLD, &child, status));
    }
    unix.scheduler.wake(&tracer.children_changed);
}

/// The details of a stop that is no signal's.
fn notice(task: &Task, code: u32) -> Option<SigInfo> {
    let cause = Cause::Kill { pid: task.tid as i32, uid: task.process.user_ids.get().real };
    Some(SigInfo { signo: (code & 0x7f) as i32, errno: 0, code: code as i32, cause })
}

/// The tracer sees a signal before the thread takes it, and may change it. `None`: the signal is gone.
pub fn signal(
    held: Held<'_>,
    unix: &'static Unix,
    task: &Arc<Task>,
    registers: &mut Registers,
    info: SigInfo,
) -> Option<SigInfo> {
    use abi::signal::SIGKILL;
    if !task.watch.is_traced() || info.signo as u32 == SIGKILL {
        return Some(info);
    }
    let tracer = task.watch.tracer();
    let given = stop(held, unix, task, registers, Wanted { at: At::Signal, code: info.signo as u32, info: Some(info) });
    if given == 0 {
        return None;
    }
    let known = task.watch.last_info.get().unwrap_or(info);
    let info = if known.signo as u32 == given {
        known
    } else {
        let (pid, uid) = tracer.map_or((0, 0), |tracer| (tracer.pid, tracer.user_ids.get().real));
        SigInfo::kill(given, pid as i32, uid)
    };
    if task.mask.get().blocked().contains(given) {
        let _ = task.pending.borrow_mut().post(&info, usize::MAX);
        return None;
    }
    Some(info)
}

/// Before call `cause` is served. `false`: it shall not be; `rax` holds its result.
pub fn enter_call(call: &mut Call<'_>) -> bool {
    let task = call.task;
    task.watch.in_call.set(true);
    let going = task.watch.going();
    let emulates = matches!(going, Going::Emulating { .. });
    if going != Going::ToCall && !emulates {
        return true;
    }
    call.registers.rax = Errno::ENOSYS.as_return_value();
    call_stop(call.held, call.unix, task, call.registers, PTRACE_EVENTMSG_SYSCALL_ENTRY);
    !emulates && !task.is_ending() && (call.registers.cause as i32) >= 0
}

/// After a call: the result is in `rax`.
pub fn leave_call(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
    if task.watch.going() == Going::ToCall {
        call_stop(held, unix, task, registers, PTRACE_EVENTMSG_SYSCALL_EXIT);
    } else if task.thread.is_stepping() {
        // The call was the instruction.
        if watchpoints::after_call(task, registers.rip) != 0 {
            raise_trap(task, SigInfo::fault(SIGTRAP, TRAP_BRKPT, registers.rip));
        }
        // On the hosted machine a call loses the flag.
        task.thread.arrange_step(registers);
    }
}

fn call_stop(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, message: u32) {
    set_message(task, message.into());
    let mark = if task.watch.has_option(PTRACE_O_TRACESYSGOOD) { CALL_MARK } else { 0 };
    let code = SIGTRAP | mark;
    let given = stop(held, unix, task, registers, Wanted { at: At::Call, code, info: notice(task, code) });
    if given != 0 {
        crate::calls::signals::send::send_to_task(unix, task, &SigInfo::kill(given, task.tid as i32, 0));
    }
}

fn raise_trap(task: &Task, info: SigInfo) {
    let actions = task.process.actions();
    let (mut mask, mut pending) = (task.mask.borrow_mut(), task.pending.borrow_mut());
    force(&info, Force::Handler, &mut actions.borrow_mut(), &mut mask, &mut pending);
    task.call_attention();
}

fn set_message(task: &Task, message: u64) {
    if let Some(tracing) = &mut *task.watch.tracing.borrow_mut() {
        tracing.message = message;
    }
}

/// An event that the tracer wants to know (`PTRACE_O_TRACE…`) has happened in the running thread.
pub fn event(
    held: Held<'_>,
    unix: &'static Unix,
    task: &Arc<Task>,
    registers: &mut Registers,
    event: u32,
    message: u64,
) {
    if task.watch.has_option(1 << event) {
        set_message(task, message);
        let code = SIGTRAP | event << 8;
        let at = if event == PTRACE_EVENT_EXIT { At::End } else { At::Event };
        stop(held, unix, task, registers, Wanted { at, code, info: notice(task, code) });
    }
}

/// A program was loaded. Without the option a tracer that has not seized the thread gets a signal.
pub fn executed(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, old_tid: u32) {
    let watch = &task.watch;
    if !watch.is_traced() {
        return;
    }
    watchpoints::forget(task);
    if !watch.has_option(1 << PTRACE_EVENT_EXEC) && !watch.is_seized() {
        crate::calls::signals::send::send_to_task(unix, task, &SigInfo::kill(SIGTRAP, task.process.pid as i32, 0));
    }
    event(held, unix, task, registers, PTRACE_EVENT_EXEC, old_tid.into());
}

/// The thread is about to end.
pub fn ending(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
    if task.watch.is_traced() {
        event(held, unix, task, registers, PTRACE_EVENT_EXIT, end_status(task).encode() as u64);
    }
}

/// How the thread ends.
pub fn end_status(task: &Task) -> WaitStatus {
    task.process.ending.get().unwrap_or(WaitStatus::Exited(task.exit_status.get()))
}

/// `PTRACE_INTERRUPT`, or the process has stopped or goes on: not for a signal of the thread itself.
pub fn trap(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
    task.watch.set_trap(false);
    let group = if task.process.stopped.get() { task.process.stop_signal.get() } else { 0 };
    if task.watch.is_seized() {
        let code = if group != 0 { group } else { SIGTRAP } | PTRACE_EVENT_STOP << 8;
        stop(held, unix, task, registers, Wanted { at: At::Group, code, info: notice(task, code) });
    } else if group != 0 {
        stop(held, unix, task, registers, Wanted { at: At::Group, code: group, info: None });
    }
}

/// A handler was entered instead of the instruction that was to be stepped over.
pub fn stepped_into_handler(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
    stop(held, unix, task, registers, Wanted { at: At::Event, code: SIGTRAP, info: notice(task, SIGTRAP) });
}
