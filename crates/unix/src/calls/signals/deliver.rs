//! Before a thread goes back to its program: signals are taken and handlers entered. And what the
//! program's own faults become.

use alloc::sync::Arc;

use abi::Errno;
use abi::frame::FP_XSTATE_MAGIC2;
use abi::process::WaitStatus;
use kernel::space::{FaultKind, Resolved};
use kernel::stream::Caller;
use machine::{Exception, Held, Registers, UserFault, VirtAddr};

use super::{crash, dump, stop};
use crate::calls::life::end::Onward;
use crate::calls::memory::exhaustion::{make_room, take_starvation};
use crate::calls::{restartable, times, trace};
use crate::emulator::Unix;
use crate::signal::deliver::{Delivery, HandlerCall, next_delivery};
use crate::signal::deliver::{decide, take};
use crate::signal::fault::{FaultDetail, PageCause, fault_signal, float_detail};
use crate::signal::frame;
use crate::signal::frame::VectorFormat;
use crate::signal::frame::build::{Frame, FrameRequest};
use crate::signal::generate::{Force, force, force_segv};
use crate::signal::restart;
use crate::signal::restart::Next;
use crate::signal::restart::RestartKind;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Vectors of the debug exception and of the page fault, and the trap flag that causes the first.
const DEBUG: u8 = 1;
const PAGE_FAULT: u8 = 14;
const TRAP_FLAG: u64 = 1 << 8;
const DR6_STEP: u64 = 1 << 14;

/// Notes how a page fault ended; true if the program may go on.
pub fn page_fault(task: &Arc<Task>, ended: Result<Resolved, FaultKind>) -> bool {
    let process = &task.process;
    match ended {
        Ok(_) => {
            process.usage.borrow_mut().minor_faults += 1;
            return true;
        }
        // Before the program goes on, some process has to make room.
        Err(FaultKind::OutOfMemory) => task.call_attention(),
        Err(_) => {}
    }
    task.last_fault.set(ended.err());
    false
}

/// The program raised an exception: it gets a signal that it cannot escape.
pub fn fault(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, exception: Exception) {
    let step = if exception.vector == DEBUG { step_status(task, registers) } else { DR6_STEP };
    if step == 0 {
        return;
    }
    let detail = match exception.vector {
        PAGE_FAULT => FaultDetail::Page(page_cause(task.last_fault.get())),
        DEBUG if registers.rflags & TRAP_FLAG != 0 => FaultDetail::Debug { dr6: step },
        vector => float_detail(vector, &task.thread.tte().float_words()).unwrap_or(FaultDetail::None),
    };
    task.last_fault.set(None);
    let Some(info) = fault_signal(&exception, registers.rip, detail) else { return };
    unix.log(
        held,
        format_args!(
            "pid {}: signal {} at {:#x}, address {:#x}",
            task.process.pid, info.signo, registers.rip, exception.address
        ),
    );
    task.trap.borrow_mut().note(&exception);
    let actions = task.process.actions();
    force(
        &info,
        Force::Handler,
        &mut actions.borrow_mut(),
        &mut task.mask.borrow_mut(),
        &mut task.pending.borrow_mut(),
    );
    task.call_attention();
}

/// What the processor's DR6 would say after one instruction; 0: nobody wants to know.
fn step_status(task: &Task, registers: &mut Registers) -> u64 {
    if task.thread.take_stale_step(registers) {
        return 0;
    }
    if !task.thread.is_stepping() {
        return DR6_STEP;
    }
    let status = crate::calls::ptrace::watchpoints::after_step(task, registers.rip);
    if status == 0 && !crate::calls::ptrace::watchpoints::is_watching(task) {
        task.thread.end_step(registers);
    }
    status
}

fn page_cause(kind: Option<FaultKind>) -> PageCause {
    match kind {
        Some(FaultKind::Denied) => PageCause::Refused,
        Some(FaultKind::PastEndOfFile | FaultKind::Failed | FaultKind::Coming) => PageCause::BeyondFile,
        Some(FaultKind::OutOfMemory) => PageCause::NoMemory,
        Some(FaultKind::Unmapped) | None => PageCause::Unmapped,
    }
}

/// How call `number` wants to go on after `EINTR`, unless it said so itself by a restart block (signal(7),
/// "Interruption of system calls").
pub fn interrupted_as(number: u64) -> RestartKind {
    use abi::nr;
    match number {
        nr::PAUSE
        | nr::RT_SIGSUSPEND
        | nr::SELECT
        | nr::PSELECT6
        | nr::POLL
        | nr::PPOLL
        | nr::NANOSLEEP
        | nr::MSGSND
        | nr::MSGRCV
        | nr::CLOCK_NANOSLEEP => RestartKind::RestartNoHandler,
        nr::EPOLL_WAIT
        | nr::EPOLL_PWAIT
        | nr::EPOLL_PWAIT2
        | nr::RT_SIGTIMEDWAIT
        | nr::SEMOP
        | nr::SEMTIMEDOP
        | nr::IO_GETEVENTS
        | nr::IO_PGETEVENTS
        | nr::RESTART_SYSCALL
        | nr::CLOSE => RestartKind::No,
        _ => RestartKind::Restart,
    }
}

/// Whether the thread must look around before it goes back to its program ([`before_user`]); forgets it.
#[inline]
pub fn needs_attention(task: &Task, registers: &Registers) -> bool {
    task.take_attention() || !is_enterable(registers.rip)
}

/// Takes all signals that do something, enters their handlers, and ends or stops the thread if it shall.
pub fn before_user(held: Held<'_>, unix: &'static Unix, task: Arc<Task>, registers: &mut Registers) -> Onward {
    if take_starvation(&task) {
        make_room(held, unix, &task);
    }
    unix.flight.go_on(held, unix);
    loop {
        if task.is_ending() {
            crate::calls::ptrace::stops::ending(held, unix, &task, registers);
            return Onward::End(crate::calls::life::end::leave(held, unix, task));
        }
        if task.watch.has_trap() {
            crate::calls::ptrace::stops::trap(held, unix, &task, registers);
            continue;
        }
        (unix.monitor.before_user)(held, unix, &task, registers);
        if task.process.stopped.get() && !task.watch.is_traced() {
            stop::sleep_while_stopped(held, unix, &task);
            continue;
        }
        match next(held, unix, &task, registers) {
            Delivery::Handler(mut call) => {
                times::taken(unix, &task.process, &mut call.info);
                trace::tell_signal(held, unix, &task, &call.info);
                enter_handler(held, unix, &task, registers, &call);
            }
            Delivery::Stop { signal } => stop::stop_process(unix, &task, signal),
            Delivery::Terminate { info, core } => {
                // Who types the quit key has not seen a crash.
                if core && !matches!(info.cause, abi::siginfo::Cause::Kill { pid: 0, .. }) {
                    crash::tell(held, unix, &task, registers, &info);
                }
                let signal = info.signo;
                let core = core && dump::dump(held, unix, &task, registers, &info);
                crate::calls::life::end::end_process(
                    unix,
                    &task.process,
                    WaitStatus::Killed { signal: signal as u8, core },
                );
            }
            Delivery::None => {
                let kind = core::mem::take(&mut *task.interrupted_call.borrow_mut());
                restart(kind, Next::Program, registers.cause, registers);
                let may_have_signal = task.mask.borrow_mut().put_back() || task.watch.is_traced();
                if !is_enterable(registers.rip) {
                    refuse(&task, None);
                } else if !(task.watch.has_trap() || may_have_signal && task.has_signal()) {
                    return Onward::Program;
                }
            }
        }
    }
}

/// The processor can return to this address; others would fault in the kernel.
fn is_enterable(address: u64) -> bool {
    address >> 47 == 0
}

fn next(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) -> Delivery {
    if !task.has_signal() {
        return Delivery::None;
    }
    if task.watch.is_traced() {
        return next_seen(held, unix, task, registers);
    }
    let process = &task.process;
    let actions = process.actions();
    let group = process.family.get().group;
    next_delivery(
        &mut task.pending.borrow_mut(),
        &mut process.pending.borrow_mut(),
        &task.mask.get(),
        &mut actions.borrow_mut(),
        &|| is_orphaned(unix, process, group),
    )
}

/// Nobody in the machine could continue the first process.
fn is_orphaned(unix: &Unix, process: &Process, group: u32) -> bool {
    process.pid == 1 || crate::calls::life::family::is_orphaned_group(unix, group)
}

/// As `next`, where a tracer sees each signal first.
#[cold]
fn next_seen(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) -> Delivery {
    let process = &task.process;
    loop {
        let mask = task.mask.get();
        let taken = take(&mut task.pending.borrow_mut(), &mut process.pending.borrow_mut(), &mask);
        let Some(info) = taken else { return Delivery::None };
        if task.is_ending() {
            return Delivery::None;
        }
        let Some(info) = crate::calls::ptrace::stops::signal(held, unix, task, registers, info) else { continue };
        let (actions, group) = (process.actions(), process.family.get().group);
        let orphaned = || is_orphaned(unix, process, group);
        let delivery = decide(info, &task.mask.get(), &mut actions.borrow_mut(), &orphaned);
        if delivery != Delivery::None {
            return delivery;
        }
    }
}

/// Raises the signal for a frame that cannot be built or read.
pub fn refuse(task: &Task, failed: Option<u32>) {
    let actions = task.process.actions();
    force_segv(failed, &mut actions.borrow_mut(), &mut task.mask.borrow_mut(), &mut task.pending.borrow_mut());
    task.call_attention();
}

/// Ends the process by `SIGSEGV`, handler or not.
pub fn end_by_segv(task: &Task) {
    let actions = task.process.actions();
    force_segv(
        Some(abi::signal::SIGSEGV),
        &mut actions.borrow_mut(),
        &mut task.mask.borrow_mut(),
        &mut task.pending.borrow_mut(),
    );
    task.call_attention();
}

fn enter_handler(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, call: &HandlerCall) {
    let kind = core::mem::take(&mut *task.interrupted_call.borrow_mut());
    restart(kind, Next::Handler { flags: call.action.sa_flags }, registers.cause, registers);
    *task.restart_block.borrow_mut() = None;
    if let Some(area) = task.restart_area() {
        restartable::interrupted(held, unix, task, area, registers);
    }
    let (was_stepping, going) = (task.thread.is_stepping(), task.watch.going());
    task.thread.end_step(registers);
    if build_frame(held, unix, task, registers, call).is_err() {
        refuse(task, Some(call.signal));
        return;
    }
    task.mask.borrow_mut().enter(call);
    task.alternate_stack.borrow_mut().handler_entered();
    task.thread.tte().reset_vector_state();
    if was_stepping && crate::calls::ptrace::watchpoints::is_watching(task) {
        task.thread.begin_step(registers);
    }
    if was_stepping && going.steps() {
        crate::calls::ptrace::stops::stepped_into_handler(held, unix, task, registers);
    }
}

/// Error: `EFAULT` when there is no frame; the registers are unchanged then.
fn build_frame(
    held: Held<'_>,
    unix: &Unix,
    task: &Task,
    registers: &mut Registers,
    call: &HandlerCall,
) -> Result<(), Errno> {
    let request = FrameRequest {
        registers,
        format: vector_format(unix),
        call,
        altstack: &task.alternate_stack.get(),
        trap: task.trap.get(),
    };
    let mut frame = Frame::default();
    frame::build(&request, &mut frame).map_err(|_| Errno::EFAULT)?;
    while write_frame(unix, task, &frame).is_err() {
        task.await_page(held)?;
    }
    *registers = Registers { cause: registers.cause, ..frame.registers };
    Ok(())
}

fn write_frame(unix: &Unix, task: &Task, frame: &Frame) -> Result<(), UserFault> {
    let put = |address, bytes: &[u8]| unix.machine.copy_out(VirtAddr(address), bytes);
    put(frame.address, &frame.head)?;
    task.thread.tte().save_vector_state(VirtAddr(frame.vector_at), &frame.software.to_bytes())?;
    put(frame.magic_at, &FP_XSTATE_MAGIC2.to_le_bytes())
}

/// The machine's XSAVE images.
pub fn vector_format(unix: &Unix) -> VectorFormat {
    VectorFormat { bytes: unix.machine.vector_bytes(), features: unix.machine.vector_features() }
}
