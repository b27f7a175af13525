//! Where the entries meet Rust: sort the cause, tell the kernel.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use machine::{Exception, Registers, TteId, Upcalls};
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

#[unsafe(no_mangle)]
extern "C" fn hosted_call_from_user(registers: &mut Registers) {
    // SAFETY: the slot is a word; no other kernel code is under way.
    unsafe { (*cpu()).counts.in_rust += 1 };
    let kernel = upcalls();
    kernel.system_call(thread(), registers);
    serve_timer(kernel);
    translation::flush();
}

#[unsafe(no_mangle)]
extern "C" fn hosted_trap_from_user(registers: &mut Registers) {
    let kernel = upcalls();
    if registers.cause == TIMER {
        the().alarm_came(kernel);
    } else {
        // SAFETY: the record is the running thread's.
        let address = unsafe { (*current()).fault_address };
        let exception = Exception { vector: registers.cause as u8, error: registers.error, address };
        kernel.exception(thread(), registers, exception);
    }
    serve_timer(kernel);
    kernel.before_user(thread(), registers);
    translation::flush();
}

#[unsafe(no_mangle)]
extern "C" fn hosted_before_user(registers: &mut Registers) {
    upcalls().before_user(thread(), registers);
    translation::flush();
}

/// An alarm that came while the kernel ran.
pub fn serve_timer(kernel: &'static dyn Upcalls) {
    // SAFETY: the slot is a word; the handler only sets it.
    unsafe {
        if (&raw const (*cpu()).timer_pending).read_volatile() != 0 {
            (&raw mut (*cpu()).timer_pending).write_volatile(0);
            the().alarm_came(kernel);
        }
    }
}
