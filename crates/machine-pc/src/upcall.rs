//! Where the trap stubs meet Rust: sort the cause, tell the kernel.

use machine::{Access, Exception, PAGE_BYTES, Registers, TteId, VirtAddr};
use machine_x86::{USER_LIMIT, current_by_stack, landing, upcalls};

use crate::registers::read_cr2;
use crate::trap::{CHAIN_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR, look_landing};
use crate::{STORE, apic, lines, nesting, start, the};

const GENERAL_PROTECTION: u64 = 13;
const PAGE_FAULT: u64 = 14;
/// Page-fault error code (SDM vol. 3A, 4.7).
const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
const FETCH: u64 = 16;
/// The flag AC: only with it may the kernel touch programs' pages (SDM vol. 3A, 4.6).
const ACCESS_OPEN: u64 = 1 << 18;

#[inline(always)]
fn thread() -> TteId {
    // SAFETY: every thread runs on the stack of its own area.
    TteId(unsafe { (*current_by_stack()).id } as u32)
}

fn access(error: u64) -> Access {
    Access { address: VirtAddr(read_cr2()), write: error & WRITE != 0, execute: error & FETCH != 0 }
}

#[unsafe(no_mangle)]
extern "C" fn call_from_user(registers: &mut Registers) -> bool {
    if nesting::is_wanted() {
        return nested_call(registers);
    }
    upcalls().system_call(thread(), registers)
}

/// As [`call_from_user`], while samples come.
#[cold]
fn nested_call(registers: &mut Registers) -> bool {
    nesting::open();
    let is_plain = upcalls().system_call(thread(), registers);
    nesting::close();
    is_plain
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_user(registers: &mut Registers) {
    nesting::open();
    let (kernel, thread) = (upcalls(), thread());
    match registers.cause {
        PAGE_FAULT => {
            let access = access(registers.error);
            // With the kernel's rights at a page that is there: an emulator's `iretq` of a program (QEMU before 9.1) reads
            // the program's stack so, and SMAP refuses. No supply of pages would end that.
            let is_refused = registers.error & (PRESENT | USER) == PRESENT;
            if access.address.0 >= USER_LIMIT || is_refused || !kernel.page_fault(thread, access) {
                let exception =
                    Exception { vector: PAGE_FAULT as u8, error: registers.error, address: access.address.0 };
                kernel.exception(thread, registers, exception);
            }
        }
        cause if interrupt(cause) => {}
        cause => {
            let exception = Exception { vector: cause as u8, error: registers.error, address: 0 };
            kernel.exception(thread, registers, exception);
        }
    }
    kernel.before_user(thread, registers);
    nesting::close();
}

#[unsafe(no_mangle)]
extern "C" fn sample_in_rust() {
    upcalls().sample();
    apic::end_of_interrupt();
}

#[unsafe(no_mangle)]
extern "C" fn chained_in_rust() {
    apic::end_of_interrupt();
    upcalls().chained();
}

#[unsafe(no_mangle)]
extern "C" fn resumed_from_timer(registers: &mut Registers) {
    nesting::open();
    upcalls().before_user(thread(), registers);
    nesting::close();
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_kernel(registers: &mut Registers) {
    if matches!(registers.cause, PAGE_FAULT | GENERAL_PROTECTION)
        && let Some(landing) = STORE.landing_of_asked(registers.rip)
    {
        registers.rip = landing;
        return;
    }
    match registers.cause {
        PAGE_FAULT => {
            let access = access(registers.error);
            if the().smap() && registers.rflags & ACCESS_OPEN == 0 {
                start::epitaph(
                    registers,
                    "the kernel touched memory of a program by mistake, or its own that is not there",
                );
            }
            if access.address.0 < USER_LIMIT {
                let was_open = nesting::suspend();
                let is_supplied = upcalls().page_fault(thread(), access);
                nesting::resume(was_open);
                if is_supplied {
                    return;
                }
            }
            // A synthesized copy checks where it starts; one that runs over the limit faults in the page that is never
            // mapped, behind it.
            if access.address.0 < USER_LIMIT + PAGE_BYTES as u64 && land(registers) {
                return;
            }
            start::epitaph(registers, "page fault in the kernel");
        }
        // A copy that begins below the limit may begin with its last word, at an address that no page can have.
        GENERAL_PROTECTION => {
            if !land(registers) {
                start::epitaph(registers, "general protection in the kernel");
            }
        }
        cause if interrupt(cause) => {}
        _ => start::epitaph(registers, "exception in the kernel"),
    }
}

/// Continues where a copy of a program's memory ends when it faults; false if the fault was in no such copy.
fn land(registers: &mut Registers) -> bool {
    let rip = registers.rip;
    let there = landing(rip).or_else(|| look_landing(rip)).or_else(|| STORE.landing(rip));
    registers.rip = there.unwrap_or(rip);
    there.is_some()
}

#[unsafe(no_mangle)]
extern "C" fn trap_fatal(registers: &mut Registers) -> ! {
    start::epitaph(registers, "fatal exception")
}

/// Serves an interrupt; false if `cause` is an exception.
fn interrupt(cause: u64) -> bool {
    const TIMER: u64 = TIMER_VECTOR as u64;
    const CHAIN: u64 = CHAIN_VECTOR as u64;
    const SPURIOUS: u64 = SPURIOUS_VECTOR as u64;
    match cause {
        TIMER => {
            apic::end_of_interrupt();
            upcalls().timer();
        }
        CHAIN => {
            apic::end_of_interrupt();
            upcalls().chained();
        }
        SPURIOUS => {}
        0..32 => return false,
        cause => match lines::place_of(cause) {
            Some(place) => {
                lines::came(place);
                lines::serve();
            }
            None => apic::end_of_interrupt(),
        },
    }
    true
}
