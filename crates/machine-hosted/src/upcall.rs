//! Where the entries meet Rust: sort the cause, tell the kernel.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use machine::{Entered, Exception, Held, Registers, TteId, Upcalls};
use machine_x86::upcalls;

use crate::cpu::cpu;
use crate::threads::current;
use crate::{the, translation};

/// The cause of a record that the timer made.
pub const TIMER: u64 = 0x20;

/// The running thread.
pub fn thread() -> TteId {
    // SAFETY: the slot names the running thread's area.
    TteId(unsafe { (*current()).id } as u32)
}

/// The kernel's Rust is entered from a program, or from a routine that gives its call up.
#[inline(always)]
#[track_caller]
pub fn entered() -> Entered {
    // SAFETY: 1. Who calls this is such an entry, on the running thread's stack or on that of the signal that the program met, and
    // drops it as it returns. 2. One host process has the baton, and runs the program.
    unsafe { Entered::new() }
}

#[unsafe(no_mangle)]
extern "C" fn hosted_call_from_user(registers: &mut Registers) {
    // SAFETY: the slot is a word; no other kernel code is under way.
    unsafe { (*cpu()).counts.in_rust += 1 };
    let (entered, kernel) = (entered(), upcalls());
    kernel.system_call(entered.held(), thread(), registers);
    serve_timer(entered.held(), kernel);
    translation::flush();
}

#[unsafe(no_mangle)]
extern "C" fn hosted_trap_from_user(registers: &mut Registers) {
    let (entered, kernel) = (entered(), upcalls());
    let held = entered.held();
    if registers.cause == TIMER {
        the().alarm_came(held, kernel);
    } else {
        // SAFETY: the record is the running thread's.
        let address = unsafe { (*current()).fault_address };
        let exception = Exception { vector: registers.cause as u8, error: registers.error, address };
        kernel.exception(held, thread(), registers, exception);
    }
    serve_timer(held, kernel);
    kernel.before_user(held, thread(), registers);
    translation::flush();
}

#[unsafe(no_mangle)]
extern "C" fn hosted_before_user(registers: &mut Registers) {
    let entered = entered();
    upcalls().before_user(entered.held(), thread(), registers);
    translation::flush();
}

/// An alarm that came while the kernel ran.
pub fn serve_timer(held: Held<'_>, kernel: &'static dyn Upcalls) {
    // SAFETY: the slot is a word; the handler only sets it.
    unsafe {
        if (&raw const (*cpu()).timer_pending).read_volatile() != 0 {
            (&raw mut (*cpu()).timer_pending).write_volatile(0);
            the().alarm_came(held, kernel);
        }
    }
}
