//! The calls: a table from number to function, and what happens around each.
//!
//! Each family of calls has a file with its functions and its part of the table, `CALLS`.

mod aio;
pub mod coming;
mod descriptors;
mod files;
mod futexes;
mod identity;
mod images;
mod inotify;
mod life;
mod limits;
mod memory;
mod mounts;
mod mqueue;
mod open_cache;
mod parts;
mod paths;
mod pidfd;
mod polls;
pub mod ptrace;
mod restartable;
mod resume;
mod scheduling;
mod shm;
mod signals;
mod sockets;
mod system;
mod sysv;
pub(crate) mod terminal;
mod times;
mod trace;
mod transfer;

pub(crate) use aio::Contexts;
pub use coming::await_fault;
pub use descriptors::{LockWaits, SignalDriven, set_signal_driven};
pub(crate) use futexes::FutexTable;
pub(crate) use identity::user_calls;
pub(crate) use images::{LoadError, Wanted, install as install_program, load_first, task_name};
pub(crate) use inotify::{Inotify, InotifyUsers};
pub(crate) use life::{Departed, Onward, is_orphaned_group};
pub use limits::Limits;
pub(crate) use memory::{Want, make_room, take_starvation};
pub(crate) use mqueue::{OpenQueue, QueueNames};
pub(crate) use pidfd::ProcessHandle;
pub(crate) use polls::EventCounter;
use ptrace::may_access;
pub use ptrace::may_look_into;
pub(crate) use restartable::interrupted;
pub(crate) use restartable::{ALIGNMENT as RSEQ_ALIGNMENT, FEATURE_BYTES as RSEQ_FEATURE_BYTES};
pub use shm::Segments;
pub use signals::{before_user, fault, needs_attention, page_fault};
pub(crate) use signals::{send_to_group, send_to_process};
pub(crate) use sockets::{Flight, SocketNames};
pub use system::SystemNames;
pub(crate) use sysv::{Objects, Queues, Sets, shown_messages, shown_semaphores};
pub(crate) use times::{ProcessTimers, process_time};
pub(crate) use trace::serve_watched;

use abi::Errno;
use machine::{CALLS_MAX, Registers};

use crate::call::{Call, CallResult};
use crate::signal::RestartKind;
use crate::task::{CONSTANT_CALLS, Task};

/// A call's function: it gets the six argument registers.
pub type Function = fn(&mut Call<'_>, [u64; 6]) -> CallResult;

/// A line of the table.
pub type Entry = (u64, Function);

/// Call numbers the table covers.
const NUMBERS: usize = CALLS_MAX;

const FAMILIES: &[&[Entry]] = &[
    aio::CALLS,
    descriptors::CALLS,
    files::CALLS,
    futexes::CALLS,
    identity::CALLS,
    images::CALLS,
    inotify::CALLS,
    life::CALLS,
    limits::CALLS,
    memory::CALLS,
    mqueue::CALLS,
    paths::CALLS,
    pidfd::CALLS,
    polls::CALLS,
    ptrace::CALLS,
    restartable::CALLS,
    scheduling::CALLS,
    shm::CALLS,
    signals::CALLS,
    sockets::CALLS,
    mounts::CALLS,
    system::CALLS,
    sysv::CALLS,
    terminal::CALLS,
    times::CALLS,
];

/// Traits of a call: it may become a constant.
const CONSTANT: u8 = 1;
/// It makes the kernel keep more: it is refused when memory is nearly out.
const GROWING: u8 = 2;

/// Functions and traits by number, in two tables: together they would take twice the memory.
static FUNCTIONS: [Function; NUMBERS] = functions();
static TRAITS: [u8; NUMBERS] = traits();

/// Joins the families; a number that two of them claim does not compile.
const fn functions() -> [Function; NUMBERS] {
    let mut table: [Function; NUMBERS] = [unknown; NUMBERS];
    let mut taken = [false; NUMBERS];
    let mut family = 0;
    while family <= FAMILIES.len() {
        let entries = if family < FAMILIES.len() { FAMILIES[family] } else { transfer::CALLS };
        let mut at = 0;
        while at < entries.len() {
            let number = entries[at].0 as usize;
            assert!(!taken[number], "two functions for one call");
            taken[number] = true;
            table[number] = entries[at].1;
            at += 1;
        }
        family += 1;
    }
    table
}

const fn traits() -> [u8; NUMBERS] {
    let mut table = [0; NUMBERS];
    let mut at = 0;
    while at < CONSTANT_CALLS.len() {
        table[CONSTANT_CALLS[at] as usize] |= CONSTANT;
        at += 1;
    }
    let mut at = 0;
    while at < memory::GROWING.len() {
        table[memory::GROWING[at] as usize] |= GROWING;
        at += 1;
    }
    table
}

fn unknown(_: &mut Call<'_>, _: [u64; 6]) -> CallResult {
    Err(Errno::ENOSYS)
}

/// Serves call `number`; the result is in `rax` afterwards.
#[inline(always)]
pub fn serve(call: &mut Call<'_>, number: u64) {
    call.registers.cause = number;
    let result = if let Some(function) = FUNCTIONS.get(number as usize) {
        let count = &call.unix.call_counts[number as usize];
        count.set(count.get() + 1);
        if TRAITS[number as usize] & GROWING != 0 && !memory::admits(call, number) {
            Err(Errno::ENOMEM)
        } else {
            let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = *call.registers;
            function(call, [rdi, rsi, rdx, r10, r8, r9])
        }
    } else {
        Err(Errno::ENOSYS)
    };
    let value = match result {
        Ok(value) => {
            if TRAITS[number as usize] & CONSTANT != 0 {
                consider_constant(call, number, value);
            }
            value
        }
        Err(errno) => {
            if errno == Errno::EINTR {
                note_interruption(call.task, number);
            }
            errno.as_return_value()
        }
    };
    if !call.registers_replaced {
        call.registers.rax = value;
    }
}

#[cold]
fn consider_constant(call: &Call<'_>, number: u64, value: u64) {
    if call.unix.makers().is_some() {
        call.task.bindings.consider_constant(call.task.thread.tte(), number, value);
    }
}

/// A signal ended the call early: how it goes on is decided when the signal is delivered.
#[cold]
fn note_interruption(task: &Task, number: u64) {
    let has_block = task.restart_block.borrow().is_some();
    let kind = if has_block { RestartKind::RestartBlock } else { signals::interrupted_as(number) };
    task.interrupted_call.set(kind);
    task.call_attention();
}
