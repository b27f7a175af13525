//! The table from number to function, and what happens around each call.
//!
//! Each family of calls has its part of the table, `CALLS`.

use abi::Errno;
use machine::{CALLS_MAX, Registers};

use super::{
    aio, descriptors, files, futexes, identity, images, inotify, life, limits, memory, mounts, mqueue, paths, pidfd,
    polls, ptrace, restartable, scheduling, shm, signals, sockets, system, sysv, terminal, times, transfer,
};
use crate::call::{Call, CallResult, Entry, Function};
use crate::signal::restart::RestartKind;
use crate::task::bindings::CONSTANT_CALLS;

/// Call numbers the table covers.
const NUMBERS: usize = CALLS_MAX;

const FAMILIES: &[&[Entry]] = &[
    aio::table::CALLS,
    descriptors::table::CALLS,
    files::table::CALLS,
    futexes::CALLS,
    identity::table::CALLS,
    images::table::CALLS,
    inotify::table::CALLS,
    life::table::CALLS,
    limits::CALLS,
    memory::table::CALLS,
    mqueue::table::CALLS,
    paths::table::CALLS,
    pidfd::table::CALLS,
    polls::table::CALLS,
    ptrace::table::CALLS,
    restartable::CALLS,
    scheduling::CALLS,
    shm::CALLS,
    signals::table::CALLS,
    sockets::table::CALLS,
    mounts::table::CALLS,
    system::CALLS,
    sysv::table::CALLS,
    terminal::table::CALLS,
    times::table::CALLS,
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
        let entries = if family < FAMILIES.len() { FAMILIES[family] } else { transfer::table::CALLS };
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
    while at < crate::calls::memory::exhaustion::GROWING.len() {
        table[crate::calls::memory::exhaustion::GROWING[at] as usize] |= GROWING;
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
        if TRAITS[number as usize] & GROWING != 0 && !crate::calls::memory::exhaustion::admits(call, number) {
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
                note_interruption(call, number);
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
fn note_interruption(call: &Call<'_>, number: u64) {
    let kind = if call.task.restart_block.borrow().is_some() {
        RestartKind::RestartBlock
    } else if crate::calls::sockets::is_patient(call, number) {
        RestartKind::No
    } else {
        crate::calls::signals::deliver::interrupted_as(number)
    };
    call.task.interrupted_call.set(kind);
    call.task.call_attention();
}
