//! The sample clock of a machine without interrupts: it comes only when it is raised, to measure handlers.
//!
//! Raising it does what a processor does that takes an interrupt without a change of privilege: it stores the frame and
//! jumps. What a real interrupt costs beside that is not here.

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;

use machine::{Entry, Fragment, SampleClock, SampleEntry, SampleProcedure, Slot};
use synth::{Abs32, template};

use machine_x86::upcalls;

use crate::cpu::{self, Cpu, PROCESSORS};

/// What a processor has of it: the slot, and two words where the pc tells its interrupt controller.
#[repr(C)]
pub struct Words {
    slot: Slot<SampleEntry>,
    end_of_interrupt: AtomicU32,
    chain: AtomicU32,
}

impl Words {
    pub fn new() -> Words {
        Words { slot: Slot::new(compiled()), end_of_interrupt: AtomicU32::new(0), chain: AtomicU32::new(0) }
    }
}

fn words() -> &'static Words {
    // SAFETY: the record is never freed, and these are words.
    unsafe { &(*cpu::cpu()).samples }
}

fn compiled() -> Entry<SampleEntry> {
    // SAFETY: this code is there as long as the machine, and ends as an interrupt does.
    unsafe { Entry::new((&raw const hosted_sample_compiled) as u64) }
}

fn end_of_interrupt() -> Abs32 {
    Abs32(&raw const words().end_of_interrupt as u64)
}

global_asm!(
    r#"
    .pushsection .text
    .balign 16
    .globl hosted_sample_entry
    hosted_sample_entry:
        jmp qword ptr [rip + {processor} + {slot}]

    /* As the pc's, less what it does with CR0: saves what compiled code may use. */
    .macro sample_in_compiled_code
        push rax
        push rcx
        push rdx
        push rsi
        push rdi
        push r8
        push r9
        push r10
        push r11
        push rbp
        mov rbp, rsp
        cld
        sub rsp, 512
        and rsp, -64
        fxsave64 [rsp]
        call hosted_sample_in_rust
        fxrstor64 [rsp]
        mov rsp, rbp
        pop rbp
        pop r11
        pop r10
        pop r9
        pop r8
        pop rdi
        pop rsi
        pop rdx
        pop rcx
        pop rax
        mov dword ptr [rip + {processor} + {end_of_interrupt}], 0
    .endm
    .balign 16
    .globl hosted_sample_compiled
    hosted_sample_compiled:
        sample_in_compiled_code
        iretq
    .balign 16
    .globl hosted_sample_procedure
    hosted_sample_procedure:
        sample_in_compiled_code
        ret
    .popsection
"#,
    processor = sym PROCESSORS,
    slot = const offset_of!(Cpu, samples.slot),
    end_of_interrupt = const offset_of!(Cpu, samples.end_of_interrupt),
);

unsafe extern "C" {
    static hosted_sample_compiled: u8;
    static hosted_sample_procedure: u8;
}

template! {
    /// Ends a handler of samples: a store where the pc tells its interrupt controller, and back. Cost: 2 instructions.
    pub struct EndOfSample { end_of_interrupt: Abs32 }
    "mov dword ptr [{end_of_interrupt}], 0",
    "iretq",
}

template! {
    /// Ends a handler that is called as a procedure. Cost: 2 instructions.
    pub struct EndOfProcedure { end_of_interrupt: Abs32 }
    "mov dword ptr [{end_of_interrupt}], 0",
    "ret",
}

#[unsafe(no_mangle)]
extern "C" fn hosted_sample_in_rust() {
    upcalls().sample();
}

pub fn find() -> SampleClock {
    let end_of_interrupt = end_of_interrupt();
    SampleClock {
        slot: &words().slot,
        end: Fragment { template: EndOfSample::template(), holes: [end_of_interrupt.into()].into() },
        // Nobody waits for samples that only come when they are raised.
        chain: (&raw const words().chain as u64, 1),
        compiled: compiled(),
    }
}

/// The end of a handler that is called as a procedure, and the compiled one.
pub fn procedure() -> (Fragment, Entry<SampleProcedure>) {
    let end_of_interrupt = end_of_interrupt();
    let end = Fragment { template: EndOfProcedure::template(), holes: [end_of_interrupt.into()].into() };
    // SAFETY: this code is there as long as the machine, and returns as a procedure does.
    let compiled = unsafe { Entry::new((&raw const hosted_sample_procedure) as u64) };
    (end, compiled)
}

pub fn bind(entry: Entry<SampleEntry>) {
    words().slot.store(entry);
}

pub fn raise(count: u32) {
    for _ in 0..count {
        // SAFETY: the frame is what `iretq` takes (SDM vol. 2A, IRET): it comes back behind the jump with the same
        // selectors, flags and stack. The handler keeps all registers.
        unsafe {
            asm!(
                "mov {stack}, rsp",
                "mov {selector:e}, ss",
                "push {selector}",
                "push {stack}",
                "pushfq",
                "mov {selector:e}, cs",
                "push {selector}",
                "lea {stack}, [rip + 72f]",
                "push {stack}",
                "jmp hosted_sample_entry",
                "72:",
                stack = out(reg) _,
                selector = out(reg) _,
            );
        }
    }
}

pub fn call(entry: Entry<SampleProcedure>, count: u32) {
    for _ in 0..count {
        // SAFETY: the handler keeps all registers but the flags, and ends with `ret`.
        unsafe { asm!("call {}", in(reg) entry.address()) };
    }
}
