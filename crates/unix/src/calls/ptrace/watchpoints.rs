//! The processor's breakpoints (DR0 to DR7), done in steps: a thread that has some executes one instruction at a time,
//! and the kernel looks whether it came to one. That is slow and the same on both machines.
//!
//! A place that is written shows by its value, so a write that changes nothing is not seen. Reads cannot be seen.

use abi::Errno;
use kernel::space::USER_LIMIT;

use crate::task::process::Process;
use crate::task::thread::Task;

/// Breakpoints of the processor (SDM vol. 3B, 18.2).
const COUNT: usize = 4;
const STATUS: usize = 6;
const CONTROL: usize = 7;
/// In DR6: a single step.
const STEP: u64 = 1 << 14;
/// In DR7, for each: what to watch for.
const EXECUTE: u64 = 0;
const WRITE: u64 = 1;

/// One that is switched on.
struct Breakpoint {
    number: usize,
    address: u64,
    kind: u64,
    bytes: usize,
}

fn breakpoints(registers: &[u64; 8]) -> impl Iterator<Item = Breakpoint> {
    let (control, addresses) = (registers[CONTROL], *registers);
    (0..COUNT).filter(move |number| control >> (2 * number) & 3 != 0).map(move |number| {
        let bits = control >> (16 + 4 * number);
        let bytes = [1, 2, 8, 4][(bits >> 2 & 3) as usize];
        Breakpoint { number, address: addresses[number], kind: bits & 3, bytes }
    })
}

/// The thread has breakpoints, and must be stepped.
pub fn is_watching(task: &Task) -> bool {
    const ENABLED: u64 = 0xff;
    task.watch.debug_registers.borrow()[CONTROL] & ENABLED != 0
}

/// Sets a debug register. Errors: `EIO` for one that does not exist; `EINVAL` for an address that is none of the
/// program's or not aligned, and for a breakpoint that waits for reads.
pub fn set(task: &Task, number: usize, value: u64) -> Result<(), Errno> {
    let mut new = task.watch.debug_registers.get();
    match number {
        0..COUNT if value >= USER_LIMIT => return Err(Errno::EINVAL),
        0..COUNT | STATUS | CONTROL => new[number] = value,
        _ => return Err(Errno::EIO),
    }
    let is_possible = |each: Breakpoint| match each.kind {
        EXECUTE => each.bytes == 1,
        WRITE => each.address.is_multiple_of(each.bytes as u64),
        _ => false,
    };
    if !breakpoints(&new).all(is_possible) {
        return Err(Errno::EINVAL);
    }
    task.watch.debug_registers.set(new);
    note(task);
    Ok(())
}

/// Notes what stands at each watched place now: what changes it from here on is the thread's next instruction.
pub fn note(task: &Task) {
    let _ = look(task);
}

/// The same for all threads of a process: one of them, a call or a tracer has stored something, and the others are not to be told.
pub fn note_all(process: &Process) {
    process.each_task(|task| note(task));
}

/// Notes what stands at each watched place; the places whose value has changed since, as bits of DR6.
fn look(task: &Task) -> u64 {
    let mut changed = 0;
    for each in breakpoints(&task.watch.debug_registers.get()).filter(|each| each.kind == WRITE) {
        let now = value(&task.process, each.address, each.bytes);
        let before = &mut task.watch.watched.borrow_mut()[each.number];
        changed |= u64::from(*before != now) << each.number;
        *before = now;
    }
    changed
}

/// `None` where nothing is mapped.
fn value(process: &Process, address: u64, bytes: usize) -> Option<u64> {
    let mut word = [0; 8];
    let space = process.space()?;
    space.borrow_mut().peek_bytes(address, &mut word[..bytes]).ok()?;
    Some(u64::from_le_bytes(word))
}

/// The thread has executed one instruction and is at `rip`. What DR6 says of it: 0 if that is nobody's business.
pub fn after_step(task: &Task, rip: u64) -> u64 {
    let written = look(task);
    if written != 0 {
        note_all(&task.process);
    }
    reached(task, rip, written)
}

/// The same of an instruction that was a call. What the kernel stores is no instruction of the program's.
pub fn after_call(task: &Task, rip: u64) -> u64 {
    if is_watching(task) {
        note_all(&task.process);
    }
    reached(task, rip, 0)
}

fn reached(task: &Task, rip: u64, written: u64) -> u64 {
    let is_asked = task.watch.going().steps();
    let mut status = if is_asked || !task.watch.is_traced() { STEP } else { 0 } | written;
    for each in breakpoints(&task.watch.debug_registers.get()) {
        status |= u64::from(each.kind == EXECUTE && each.address == rip) << each.number;
    }
    task.watch.debug_registers.borrow_mut()[STATUS] |= status;
    status
}

/// No breakpoint outlives the program or the tracer that it was for.
pub fn forget(task: &Task) {
    task.watch.debug_registers.set([0; 8]);
}
