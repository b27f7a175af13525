//! The sample clock: the interval timer (Intel 8254), whose interrupt goes through a slot of its own.
//!
//! The processor's own timer belongs to the scheduler; this one counts 1,193,182 ticks a second and divides them by a whole
//! number, so 44,100 becomes 44,192.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

use machine::{Entry, Fragment, PROCESSORS_MAX, SampleClock, SampleEntry, Slot, Trigger};
use synth::{Abs32, Template, template};

use crate::apic;
use crate::cpu::{self, Cpu, PROCESSORS};
use crate::frames::FRAMES;
use crate::layout::NEAR_APIC;
use crate::nesting;
use crate::paging::{NO_EXECUTE, WRITE, map_kernel};
use crate::registers::out8;
use crate::trap::SAMPLE_VECTOR;

/// Ticks of the 8254 in a second.
const TICKS_HZ: u64 = 1_193_182;
/// Where the timer's interrupt arrives at the I/O APIC (the ISA line 0).
const LINE: u32 = 2;
const EDGE: Trigger = Trigger { is_level: false, is_low: false };
/// Page attribute: not cached (SDM vol. 3A, 4.9).
const NOT_CACHED: u64 = 1 << 4;

global_asm!(
    r#"
    /* For each processor: through the slot in its record. */
    .pushsection .text
    .balign 16
    .globl sample_entries
    sample_entries:
        .set sample_of, 0
        .rept {count}
        .balign 8
        jmp qword ptr [rip + {processors} + sample_of * {bytes} + {slot}]
        .set sample_of, sample_of + 1
        .endr

    /* Saves what compiled code may use: the C convention's registers and the vector registers' lower parts, whosesoever they
       are. */
    .macro call_compiled function
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
        call \function
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
        iretq
    .endm

    .balign 16
    .globl sample_compiled
    sample_compiled:
        call_compiled sample_in_rust

    /* What was chained, in the midst of the kernel: the idle thread waits. */
    .balign 16
    .globl chained_in_kernel
    chained_in_kernel:
        call_compiled chained_in_rust
    .popsection
"#,
    processors = sym PROCESSORS,
    count = const PROCESSORS_MAX,
    bytes = const size_of::<Cpu>(),
    slot = const offset_of!(Cpu, samples.slot),
);

/// What a processor has of the samples that come to it.
#[repr(C)]
pub struct Words {
    /// Where their interrupt leads.
    slot: Slot<SampleEntry>,
    /// Their handler is Rust.
    calls_rust: AtomicBool,
    runs: AtomicBool,
}

impl Words {
    pub fn new() -> Words {
        Words { slot: Slot::new(compiled()), calls_rust: AtomicBool::new(true), runs: AtomicBool::new(false) }
    }
}

fn words() -> &'static Words {
    // SAFETY: the record is never freed, and these are words.
    unsafe { &(*cpu::this()).samples }
}

fn compiled() -> Entry<SampleEntry> {
    // SAFETY: this code is there as long as the machine, and ends as an interrupt does.
    unsafe { Entry::new((&raw const sample_compiled) as u64) }
}

unsafe extern "C" {
    static sample_entries: u8;
    static sample_compiled: u8;
}

template! {
    /// Ends a handler of samples: tells the interrupt controller, goes back to what was interrupted. Cost: 2 instructions.
    pub struct EndOfSample { end_of_interrupt: Abs32 }
    "mov dword ptr [{end_of_interrupt}], 0",
    "iretq",
}

/// For the golden listings.
pub fn templates() -> [Template; 1] {
    [EndOfSample::template()]
}

/// What the interrupt gate of a processor leads to.
pub fn entry(processor: usize) -> u64 {
    (&raw const sample_entries) as u64 + 8 * processor as u64
}

/// Maps the local APIC where handlers reach it; `None` without memory for the tables.
pub fn find() -> Option<SampleClock> {
    static IS_MAPPED: AtomicBool = AtomicBool::new(false);
    if !IS_MAPPED.load(Ordering::Relaxed) {
        // SAFETY: the page is a device's registers, which only this crate and handlers that end with our fragment touch.
        unsafe { map_kernel(NEAR_APIC, apic::LOCAL, WRITE | NO_EXECUTE | NOT_CACHED, &FRAMES) }.ok()?;
        IS_MAPPED.store(true, Ordering::Relaxed);
    }
    let end_of_interrupt = Abs32(NEAR_APIC + apic::EOI);
    Some(SampleClock {
        slot: &words().slot,
        end: Fragment { template: EndOfSample::template(), holes: [end_of_interrupt.into()].into() },
        chain: (NEAR_APIC + apic::COMMAND, apic::TO_ITSELF),
        compiled: compiled(),
    })
}

pub fn bind(entry: Entry<SampleEntry>) {
    words().calls_rust.store(entry.address() == (&raw const sample_compiled) as u64, Ordering::Relaxed);
    choose_nesting();
    words().slot.store(entry);
}

/// Samples come into the middle of the kernel's Rust while their handler is none of it.
fn choose_nesting() {
    let words = words();
    nesting::want(words.runs.load(Ordering::Relaxed) && !words.calls_rust.load(Ordering::Relaxed));
}

/// Starts the timer at about `hertz`, or stops it at 0; returns thousandths of an interrupt a second.
pub fn run(hertz: u32) -> u64 {
    /// Channel 0, both bytes of the divisor, rate generator (82C54 data sheet, control word).
    const RATE_GENERATOR: u8 = 0x34;
    words().runs.store(hertz != 0, Ordering::Relaxed);
    choose_nesting();
    if hertz == 0 {
        apic::route(LINE, EDGE, None);
        return 0;
    }
    let divisor = (TICKS_HZ / u64::from(hertz)).clamp(2, 0xFFFF);
    // SAFETY: ports 0x40 and 0x43 are the 8254 on every PC; nobody else uses it.
    unsafe {
        out8(0x43, RATE_GENERATOR);
        out8(0x40, divisor as u8);
        out8(0x40, (divisor >> 8) as u8);
    }
    apic::route(LINE, EDGE, Some(SAMPLE_VECTOR));
    TICKS_HZ * 1000 / divisor
}

/// Raises the interrupt by hand; the end of interrupt that the handler sends ends nothing then.
pub fn raise(count: u32) {
    for _ in 0..count {
        // SAFETY: the gate leads to a handler that keeps all registers and comes back; the kernel has no red zone.
        unsafe { asm!("int {}", const SAMPLE_VECTOR) };
    }
}
