//! Tracing (S-52, S-53, S-67): one process stops, looks into and steers the threads of others.
//!
//! ```text
//!   mod.rs        the call, and what it may be asked of a thread that stands still
//!   attach.rs     who traces whom
//!   stops.rs      where a traced thread stands still
//!   registers.rs  its registers
//!   watchpoints.rs  breakpoints of the processor
//! ```
//! A traced thread makes all its calls in Rust, where they are seen: its call table is that of a debugged thread
//! (S-55). Any thread of the tracer's process may use what is its own here; Linux wants the thread that attached.

pub(crate) mod attach;
pub mod registers;
pub(crate) mod stops;
pub(super) mod table;
pub(crate) mod watchpoints;

use alloc::sync::Arc;

use abi::ptrace::*;
use abi::siginfo::SigInfo;
use abi::signal::{SIGKILL, SIGRTMAX};
use abi::{Errno, Field};
use machine::Held;

use crate::call::{Call, CallResult};
use crate::signal::set::SignalSet;
use crate::task::thread::Task;
use crate::task::tracing::{At, Going, TraceStop};

/// Errors: `ESRCH` for a thread that the caller does not trace or that does not stand still; `EPERM`, `EIO`, `EINVAL`,
/// `EFAULT`.
fn ptrace(call: &Call<'_>, request: u64, tid: u64, address: u64, data: u64) -> CallResult {
    let request = u32::try_from(request).map_err(|_| Errno::EIO)?;
    match request {
        PTRACE_TRACEME => return attach::trace_me(call),
        PTRACE_ATTACH => return attach::attach(call, tid),
        PTRACE_SEIZE => return attach::seize(call, tid, address, data),
        _ => {}
    }
    let task = call.unix.tasks.task(tid as u32).ok_or(Errno::ESRCH)?;
    let tracer = task.watch.tracer().ok_or(Errno::ESRCH)?;
    if !Arc::ptr_eq(&tracer, call.process()) {
        return Err(Errno::ESRCH);
    }
    match request {
        PTRACE_KILL => {
            crate::calls::signals::send::send_to_process(call.unix, &task.process, &SigInfo::kernel(SIGKILL));
            return Ok(0);
        }
        PTRACE_INTERRUPT => return interrupt(call, &task),
        _ => {}
    }
    let stands = task.watch.stop.borrow().as_ref().is_some_and(|stop| !stop.is_over && !stop.is_listening);
    if !stands {
        return Err(Errno::ESRCH);
    }
    steer(call, &task, request, address, data)
}

/// Error: `EIO` unless the thread was seized.
fn interrupt(call: &Call<'_>, task: &Arc<Task>) -> CallResult {
    if !task.watch.is_seized() {
        return Err(Errno::EIO);
    }
    attach::ask_to_trap(call.unix, task);
    Ok(0)
}

/// Requests to a thread that stands still.
fn steer(call: &Call<'_>, task: &Arc<Task>, request: u32, address: u64, data: u64) -> CallResult {
    match request {
        PTRACE_PEEKTEXT | PTRACE_PEEKDATA => peek(call, task, address, data),
        PTRACE_POKETEXT | PTRACE_POKEDATA => poke(call.held, call.unix, task, address, data),
        PTRACE_PEEKUSR => registers::peek_user(call, task, address, data),
        PTRACE_POKEUSR => registers::poke_user(task, address, data),
        PTRACE_GETREGS => registers::whole(call, task, NT_PRSTATUS, data, false),
        PTRACE_SETREGS => registers::whole(call, task, NT_PRSTATUS, data, true),
        PTRACE_GETFPREGS => registers::whole(call, task, NT_FPREGSET, data, false),
        PTRACE_SETFPREGS => registers::whole(call, task, NT_FPREGSET, data, true),
        PTRACE_GETREGSET => registers::part(call, task, address, data, false),
        PTRACE_SETREGSET => registers::part(call, task, address, data, true),
        PTRACE_CONT => resume(call, task, Going::On, data),
        PTRACE_SYSCALL => resume(call, task, Going::ToCall, data),
        PTRACE_SINGLESTEP => resume(call, task, Going::OneInstruction, data),
        PTRACE_SYSEMU => resume(call, task, Going::Emulating { steps: false }, data),
        PTRACE_SYSEMU_SINGLESTEP => resume(call, task, Going::Emulating { steps: true }, data),
        PTRACE_DETACH => {
            attach::detach(call.unix, task, check_signal(data)?);
            Ok(0)
        }
        PTRACE_LISTEN => listen(call, task),
        PTRACE_SETOPTIONS => {
            let options = attach::check_options(data)?;
            if let Some(tracing) = &mut *task.watch.tracing.borrow_mut() {
                tracing.options = options;
            }
            Ok(0)
        }
        PTRACE_GETEVENTMSG => {
            let message = task.watch.tracing.borrow().as_ref().map_or(0, |tracing| tracing.message);
            call.write(data, &message).map(|()| 0)
        }
        PTRACE_GETSIGINFO => {
            let info = with_stop(task, |stop| stop.info)?.ok_or(Errno::EINVAL)?;
            call.copy_out(data, &info.to_bytes()).map(|()| 0)
        }
        PTRACE_SETSIGINFO => set_info(call, task, data),
        PTRACE_GETSIGMASK | PTRACE_SETSIGMASK if address != 8 => Err(Errno::EINVAL),
        PTRACE_GETSIGMASK => call.write(data, &task.mask.get().blocked().0).map(|()| 0),
        PTRACE_SETSIGMASK => {
            let set = SignalSet(call.read(data)?);
            task.change_mask(|mask| mask.set(set));
            Ok(0)
        }
        PTRACE_GET_SYSCALL_INFO => call_info(call, task, address, data),
        _ => Err(Errno::EIO),
    }
}

fn with_stop<R>(task: &Task, act: impl FnOnce(&mut TraceStop) -> R) -> Result<R, Errno> {
    task.watch.stop.borrow_mut().as_mut().map(|stop| act(stop)).ok_or(Errno::ESRCH)
}

/// A word of the thread's memory, whatever its rights are. Error: `EIO`.
fn peek(call: &Call<'_>, task: &Task, address: u64, into: u64) -> CallResult {
    let space = task.process.space().ok_or(Errno::EIO)?;
    let mut word = [0; 8];
    call.unix.reach(call.held, &space, |space| space.peek_bytes(address, &mut word)).map_err(|_| Errno::EIO)?;
    call.copy_out(into, &word)?;
    Ok(0)
}

fn poke(held: Held<'_>, unix: &crate::emulator::Unix, task: &Task, address: u64, word: u64) -> CallResult {
    let space = task.process.space().ok_or(Errno::EIO)?;
    unix.reach(held, &space, |space| space.poke_bytes(address, &word.to_le_bytes())).map_err(|_| Errno::EIO)?;
    watchpoints::note_all(&task.process);
    Ok(0)
}

/// Error: `EIO` for a number that is no signal.
fn check_signal(signal: u64) -> Result<u32, Errno> {
    if signal <= SIGRTMAX.into() { Ok(signal as u32) } else { Err(Errno::EIO) }
}

fn resume(call: &Call<'_>, task: &Arc<Task>, going: Going, signal: u64) -> CallResult {
    let signal = check_signal(signal)?;
    if let Some(tracing) = &mut *task.watch.tracing.borrow_mut() {
        tracing.going = going;
    }
    with_stop(task, |stop| {
        stop.signal = signal;
        stop.is_over = true;
    })?;
    if going.steps() || watchpoints::is_watching(task) {
        task.thread.step(call.unix.scheduler);
    } else {
        task.thread.start(call.unix.scheduler);
    }
    Ok(0)
}

/// The thread stays stopped with its process, and the tracer hears when that goes on. Error: `EIO` elsewhere.
fn listen(call: &Call<'_>, task: &Arc<Task>) -> CallResult {
    if !task.watch.is_seized() || with_stop(task, |stop| stop.code >> 8)? != PTRACE_EVENT_STOP {
        return Err(Errno::EIO);
    }
    with_stop(task, |stop| {
        stop.is_listening = true;
        stop.is_reported = true;
    })?;
    if task.watch.has_trap() {
        attach::ask_to_trap(call.unix, task);
    }
    Ok(0)
}

/// Errors: `EINVAL` where no signal is to be changed, `EFAULT`.
fn set_info(call: &Call<'_>, task: &Task, address: u64) -> CallResult {
    let mut bytes = [0; SigInfo::BYTES];
    call.copy_in(address, &mut bytes)?;
    let info = SigInfo::from_bytes(&bytes);
    with_stop(task, |stop| match &mut stop.info {
        Some(old) => {
            *old = info;
            Ok(0)
        }
        None => Err(Errno::EINVAL),
    })?
}

/// `struct ptrace_syscall_info`: what the call was given, or gave. Returns how long it is; no more than `room` is written.
fn call_info(call: &Call<'_>, task: &Arc<Task>, room: u64, into: u64) -> CallResult {
    const HEAD_BYTES: usize = 24;
    let registers = registers::get(task)?;
    let (at, code) = with_stop(task, |stop| (stop.at, stop.code))?;
    let message = task.watch.tracing.borrow().as_ref().map_or(0, |tracing| tracing.message);
    let is_call = at == At::Call && code & 0x80 != 0;
    let mut record = [0; 88];
    let (kind, bytes) = match message as u32 {
        PTRACE_EVENTMSG_SYSCALL_ENTRY if is_call => {
            let UserRegs { orig_rax, rdi, rsi, rdx, r10, r8, r9, .. } = registers;
            [orig_rax, rdi, rsi, rdx, r10, r8, r9].put(&mut record[HEAD_BYTES..]);
            (PTRACE_SYSCALL_INFO_ENTRY, HEAD_BYTES + 7 * 8)
        }
        PTRACE_EVENTMSG_SYSCALL_EXIT if is_call => {
            registers.rax.put(&mut record[HEAD_BYTES..]);
            record[HEAD_BYTES + 8] = u8::from(registers.rax > -4096i64 as u64);
            (PTRACE_SYSCALL_INFO_EXIT, HEAD_BYTES + 9)
        }
        _ => (PTRACE_SYSCALL_INFO_NONE, HEAD_BYTES),
    };
    kind.put(&mut record);
    AUDIT_ARCH_X86_64.put(&mut record[4..]);
    registers.rip.put(&mut record[8..]);
    registers.rsp.put(&mut record[16..]);
    call.copy_out(into, &record[..bytes.min(room as usize)])?;
    Ok(bytes as u64)
}
