//! When a signal that a thread sends to itself, and its way back from handlers, become code.

use alloc::sync::Arc;
use core::mem::offset_of;

use abi::nr;
use kernel::signal::{InitialState, Raises, Returns};
use machine::TryGrow;

use super::deliver::vector_format;
use crate::call::Call;
use crate::signal::actions::Actions;
use crate::signal::altstack::AltStack;
use crate::signal::fault::TrapRecord;
use crate::signal::mask::ThreadMask;
use crate::signal::pending::Pending;
use crate::task::bindings::{BOUND, SIGNAL_CALLS};
use crate::task::process::Ids;
use crate::task::thread::Task;

/// Making a routine costs about so many of its calls in Rust.
const CALLS_IN_RUST: u8 = 6;

/// What a handler's vector registers start with.
static INITIAL: InitialState = InitialState::new();

/// The thread has sent a signal to itself, which it handles.
#[inline(always)]
pub fn raised(call: &Call<'_>, to: &Arc<Task>, number: u64) {
    if Arc::ptr_eq(to, call.task) && call.task.has_attention() {
        count(call, number);
    }
}

/// One of [`SIGNAL_CALLS`] was done in Rust, as code could have done it.
#[inline(always)]
pub fn count(call: &Call<'_>, number: u64) {
    let times = &call.task.bindings.signals.times[place(number)];
    if times.get() < CALLS_IN_RUST {
        times.set(times.get() + 1);
    } else if times.get() != BOUND {
        bind(call, number);
    }
}

const fn place(number: u64) -> usize {
    match number {
        nr::KILL => 0,
        nr::TGKILL => 1,
        _ => 2,
    }
}

const _: () = assert!(place(SIGNAL_CALLS[0]) == 0 && place(SIGNAL_CALLS[1]) == 1 && place(SIGNAL_CALLS[2]) == 2);

#[cold]
fn bind(call: &Call<'_>, number: u64) {
    let (Some(makers), signals, task) = (call.unix.makers(), &call.task.bindings.signals, call.task) else { return };
    let tte = task.thread.tte();
    let makers = makers.of_thread(tte.id());
    // Where there is no such code, or no room, it is not asked for again.
    signals.times[place(number)].set(BOUND);
    let code = match number {
        nr::KILL => raise_words(call, task).kill(makers, tte),
        nr::TGKILL => raise_words(call, task).tgkill(makers, tte),
        _ => words(call, task).code(makers, tte),
    };
    let Some(code) = code else { return };
    let entry = code.entry().under();
    if signals.codes.borrow_mut().try_push(code).is_ok() {
        tte.bind_call(number as usize, Some(entry));
    }
}

fn raise_words(call: &Call<'_>, task: &Task) -> Raises {
    let (back, process) = (words(call, task), &task.process);
    let trap = task.trap.as_ptr() as u64;
    Raises {
        pid: process.pid.into(),
        tid: task.tid.into(),
        threads: process.live_tasks_word(),
        blocked: back.blocked,
        pending: back.pending,
        shared: back.shared,
        hearers: process.signal_arrived.count_word(),
        stack_size: back.stack_size,
        stack_flags: back.stack_flags,
        actions: process.actions().as_ptr() as u64 + Actions::OF_AT as u64,
        sequence: task.sequence_word(),
        trapno: trap + offset_of!(TrapRecord, trapno) as u64,
        trap_error: trap + offset_of!(TrapRecord, err) as u64,
        trap_address: trap + offset_of!(TrapRecord, cr2) as u64,
        user: process.user_ids.as_ptr() as u64 + offset_of!(Ids, real) as u64,
        bytes: back.bytes,
        features: back.features,
        initial: &raw const INITIAL as u64,
    }
}

fn words(call: &Call<'_>, task: &Task) -> Returns {
    let format = vector_format(call.unix);
    let stack = AltStack::WORDS_AT.map(|at| task.alternate_stack.as_ptr() as u64 + at as u64);
    Returns {
        blocked: task.mask.as_ptr() as u64 + ThreadMask::BLOCKED_AT as u64,
        pending: task.pending.as_ptr() as u64 + Pending::SET_AT as u64,
        shared: task.process.pending.as_ptr() as u64 + Pending::SET_AT as u64,
        stack: stack[0],
        stack_size: stack[1],
        stack_flags: stack[2],
        bytes: format.bytes as u64,
        features: format.features,
    }
}
