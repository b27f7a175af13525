//! Where the trap stubs meet Rust: sort the cause, tell the kernel.

use machine::{Access, Exception, PAGE_BYTES, Registers, Upcalls, VirtAddr};

use crate::layout::USER_LIMIT;
use crate::registers::read_cr2;
use crate::trap::{DEVICE_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR};
use crate::{STORE, apic, start, the, user};

const PAGE_FAULT: u64 = 14;
/// Page-fault error code (SDM vol. 3A, 4.7).
const WRITE: u64 = 2;
const FETCH: u64 = 16;

fn upcalls() -> &'static dyn Upcalls {
    let upcalls = *the().upcalls.borrow();
    upcalls.expect("a trap before the kernel was ready")
}

fn access(error: u64) -> Access {
    Access { address: VirtAddr(read_cr2()), write: error & WRITE != 0, execute: error & FETCH != 0 }
}

#[unsafe(no_mangle)]
extern "C" fn call_from_user(registers: &mut Registers) {
    let kernel = upcalls();
    kernel.system_call(registers);
    kernel.before_user(registers);
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_user(registers: &mut Registers) {
    let kernel = upcalls();
    match registers.cause {
        PAGE_FAULT => {
            let access = access(registers.error);
            if access.address.0 >= USER_LIMIT || !kernel.page_fault(access) {
                let exception =
                    Exception { vector: PAGE_FAULT as u8, error: registers.error, address: access.address.0 };
                kernel.exception(registers, exception);
            }
        }
        cause if interrupt(cause) => {}
        cause => kernel.exception(registers, Exception { vector: cause as u8, error: registers.error, address: 0 }),
    }
    kernel.before_user(registers);
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_kernel(registers: &mut Registers) {
    match registers.cause {
        PAGE_FAULT => {
            let access = access(registers.error);
            // A synthesized copy checks where it starts; one that runs over the limit faults in the page that is never
            // mapped, behind it.
            if access.address.0 < USER_LIMIT + PAGE_BYTES as u64 {
                if access.address.0 < USER_LIMIT && upcalls().page_fault(access) {
                    return;
                }
                if let Some(landing) = user::landing(registers.rip).or_else(|| STORE.landing(registers.rip)) {
                    registers.rip = landing;
                    return;
                }
            }
            start::epitaph(registers, "page fault in the kernel");
        }
        cause if interrupt(cause) => {}
        _ => start::epitaph(registers, "exception in the kernel"),
    }
}

#[unsafe(no_mangle)]
extern "C" fn trap_fatal(registers: &mut Registers) -> ! {
    start::epitaph(registers, "fatal exception")
}

/// Serves an interrupt; false if `cause` is an exception.
fn interrupt(cause: u64) -> bool {
    const TIMER: u64 = TIMER_VECTOR as u64;
    const DEVICE: u64 = DEVICE_VECTOR as u64;
    const SPURIOUS: u64 = SPURIOUS_VECTOR as u64;
    match cause {
        TIMER => {
            apic::end_of_interrupt();
            upcalls().timer();
        }
        DEVICE => {
            // The level is dropped before the end of interrupt, or it would come again at once.
            the().with_console(false, |console| console.interrupt());
            apic::end_of_interrupt();
            upcalls().device();
        }
        SPURIOUS => {}
        0..32 => return false,
        _ => apic::end_of_interrupt(),
    }
    true
}
