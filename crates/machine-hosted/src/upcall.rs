//! Where the entries meet Rust: sort the cause, tell the kernel.

use machine::{Exception, Registers, Upcalls};

use crate::cpu::cpu;
use crate::{the, translation, tte};

/// The cause of a record that the timer made.
pub const TIMER: u64 = 0x20;

pub fn kernel() -> &'static dyn Upcalls {
    let upcalls = *the().upcalls.borrow();
    upcalls.expect("a trap before the kernel was ready")
}

#[unsafe(no_mangle)]
extern "C" fn hosted_call_from_user(registers: &mut Registers) {
    let kernel = kernel();
    kernel.system_call(registers);
    serve_timer(kernel);
    kernel.before_user(registers);
    translation::flush();
}

#[unsafe(no_mangle)]
extern "C" fn hosted_trap_from_user(registers: &mut Registers) {
    let kernel = kernel();
    if registers.cause == TIMER {
        the().poll_devices(kernel);
        kernel.timer();
    } else {
        // SAFETY: the record is the running thread's.
        let address = unsafe { (*tte::current()).fault_address };
        kernel.exception(registers, Exception { vector: registers.cause as u8, error: registers.error, address });
    }
    serve_timer(kernel);
    kernel.before_user(registers);
    translation::flush();
}

/// An alarm that came while the kernel ran.
pub fn serve_timer(kernel: &dyn Upcalls) {
    // SAFETY: the slot is a word; the handler only sets it.
    unsafe {
        if (&raw const (*cpu()).timer_pending).read_volatile() != 0 {
            (&raw mut (*cpu()).timer_pending).write_volatile(0);
            kernel.timer();
        }
    }
}
