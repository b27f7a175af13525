//! Where the trap stubs meet Rust: sort the cause, tell the kernel.

use machine::{Access, Entered, Exception, Held, PAGE_BYTES, Registers, TteId, VirtAddr};
use machine_x86::{USER_LIMIT, current_by_stack, landing, upcalls};

use crate::registers::read_cr2;
use crate::trap::{CHAIN_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR, look_landing};
use crate::{STORE, apic, layout, lines, nesting, start, the};

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
    let entered = entered();
    upcalls().system_call(entered.held(), thread(), registers)
}

/// The kernel's Rust is entered from a program, from a routine that gives its call up, or by an interrupt.
#[inline(always)]
#[track_caller]
fn entered() -> Entered {
    // SAFETY: 1. The entries below call this once, on the running thread's stack, and drop it as they return. 2. Interrupts whose
    // handler is Rust come in only where the kernel's Rust has given the lock up: in `wait_for_interrupt` and `serve_interrupts`.
    unsafe { Entered::new() }
}

/// As [`call_from_user`], while samples come.
#[cold]
fn nested_call(registers: &mut Registers) -> bool {
    let entered = entered();
    nesting::open();
    let is_plain = upcalls().system_call(entered.held(), thread(), registers);
    nesting::close();
    is_plain
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_user(registers: &mut Registers) {
    let entered = entered();
    nesting::open();
    let (kernel, thread, held) = (upcalls(), thread(), entered.held());
    match registers.cause {
        PAGE_FAULT => {
            let access = access(registers.error);
            // With the kernel's rights at a page that is there: an emulator's `iretq` of a program (QEMU before 9.1) reads
            // the program's stack so, and SMAP refuses. No supply of pages would end that.
            let is_refused = registers.error & (PRESENT | USER) == PRESENT;
            if access.address.0 >= USER_LIMIT || is_refused || !kernel.page_fault(thread, access) {
                let exception =
                    Exception { vector: PAGE_FAULT as u8, error: registers.error, address: access.address.0 };
                kernel.exception(held, thread, registers, exception);
            }
        }
        cause if interrupt(held, cause) => {}
        cause => {
            let exception = Exception { vector: cause as u8, error: registers.error, address: 0 };
            kernel.exception(held, thread, registers, exception);
        }
    }
    kernel.before_user(held, thread, registers);
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
    let entered = entered();
    upcalls().chained(entered.held());
}

#[unsafe(no_mangle)]
extern "C" fn resumed_from_timer(registers: &mut Registers) {
    let entered = entered();
    nesting::open();
    upcalls().before_user(entered.held(), thread(), registers);
    nesting::close();
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_kernel(registers: &mut Registers) {
    if is_interrupt(registers.cause) {
        let entered = entered();
        interrupt(entered.held(), registers.cause);
        return;
    }
    // SAFETY: what follows leaves for nobody, and is dropped as this returns to where the fault was.
    let _entered = unsafe { Entered::by_fault() };
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
    let at = read_cr2();
    let what = if layout::boot_guard().contains(&at) {
        "boot's stack is too deep"
    } else if at >= layout::THREADS && layout::thread_guard(at).contains(&at) {
        "a thread's stack in the kernel is too deep"
    } else {
        "fatal exception"
    };
    start::epitaph(registers, what)
}

fn is_interrupt(cause: u64) -> bool {
    const FIRST_INTERRUPT: u64 = 32;
    cause >= FIRST_INTERRUPT
}

/// Serves an interrupt; false if `cause` is an exception.
fn interrupt(held: Held<'_>, cause: u64) -> bool {
    const TIMER: u64 = TIMER_VECTOR as u64;
    const CHAIN: u64 = CHAIN_VECTOR as u64;
    const SPURIOUS: u64 = SPURIOUS_VECTOR as u64;
    match cause {
        TIMER => {
            apic::end_of_interrupt();
            upcalls().timer(held);
        }
        CHAIN => {
            apic::end_of_interrupt();
            upcalls().chained(held);
        }
        SPURIOUS => {}
        cause if !is_interrupt(cause) => return false,
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
