//! The scheduler's timer: its interrupt goes through a slot to a handler that is code (S-78), or to the entry in `trap`.
//!
//! The interrupt is of the class below the devices', so that it can come into the kernel's Rust. What it then leaves to the
//! kernel comes again as an interrupt of the lowest class, when the kernel is left.

use alloc::vec;
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use machine::{Entry, Fragment, PROCESSORS_MAX, TimerCode, TimerEntry};
use synth::{Abs32, Imm32, Template, template};

use crate::cpu::{self, Cpu, PROCESSORS};
use crate::layout::NEAR_APIC;
use crate::trap::TIMER_VECTOR;
use crate::{apic, nesting, sample_clock};

global_asm!(
    r#"
    /* For each processor: through the slot in its record. */
    .pushsection .text
    .balign 16
    .globl timer_entries
    timer_entries:
        .set timer_of, 0
        .rept {count}
        .balign 8
        jmp qword ptr [rip + {processors} + timer_of * {bytes} + {slot}]
        .set timer_of, timer_of + 1
        .endr
    .popsection
"#,
    processors = sym PROCESSORS,
    count = const PROCESSORS_MAX,
    bytes = const size_of::<Cpu>(),
    slot = const offset_of!(Cpu, timer.slot),
);

/// What a processor has of its timer.
#[repr(C)]
pub struct Words {
    /// Slot: where its interrupt leads.
    slot: AtomicU64,
    /// The two handlers: while nothing nests, and while interrupts nest; 0: there is none yet.
    handlers: [AtomicU64; 2],
    nests: AtomicBool,
}

impl Words {
    pub fn new() -> Words {
        Words {
            slot: AtomicU64::new(stub()),
            handlers: [const { AtomicU64::new(0) }; 2],
            nests: AtomicBool::new(false),
        }
    }
}

fn words() -> &'static Words {
    // SAFETY: the record is never freed, and these are words.
    unsafe { &(*cpu::this()).timer }
}

unsafe extern "C" {
    static timer_entries: u8;
    static trap_stubs: u8;
}

template! {
    /// Reads the clock: `machine_x86::now`. Out: rax = nanoseconds since boot. Clobbers rdx. Cost: 6 instructions.
    pub struct ReadTime { clock_base: Abs32, clock_scale: Abs32 }
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, qword ptr [{clock_base}]",
    "mul qword ptr [{clock_scale}]",
    "shrd rax, rdx, 32",
}

template! {
    /// Has the timer go off in ecx nanoseconds. Cost: 1 instruction.
    pub struct ArmTimer { timer_count: Abs32 }
    "mov dword ptr [{timer_count}], ecx",
}

template! {
    /// The same where the timer's tick is longer than a nanosecond; it goes off a tick late at most. Clobbers rcx. Cost: 4
    /// instructions.
    pub struct ArmSlowTimer { multiplier: Imm32, timer_count: Abs32 }
    where { SHIFT = apic::MULTIPLIER_SHIFT }
    ".byte 0x48, 0x69, 0xc9",               // imul rcx, rcx, multiplier
    ".long {multiplier}",
    "shr rcx, {SHIFT}",
    "inc ecx",
    "mov dword ptr [{timer_count}], ecx",
}

template! {
    /// Lets interrupts of higher levels in. Cost: 1 instruction.
    pub struct LetHigherIn {}
    "sti",
}

template! {
    /// Keeps all interrupts out. Cost: 1 instruction.
    pub struct KeepAllOut {}
    "cli",
}

/// For the golden listings.
pub fn templates() -> [Template; 5] {
    [
        ReadTime::template(),
        ArmTimer::template(),
        ArmSlowTimer::template(),
        LetHigherIn::template(),
        KeepAllOut::template(),
    ]
}

/// What the interrupt gate of a processor leads to.
pub fn entry(processor: usize) -> u64 {
    (&raw const timer_entries) as u64 + 8 * processor as u64
}

/// Where the interrupt goes that no handler takes.
fn stub() -> u64 {
    (&raw const trap_stubs) as u64 + u64::from(TIMER_VECTOR) * 16
}

/// What a handler is made of; `None` without memory.
pub fn code() -> Option<TimerCode> {
    let end = sample_clock::find()?.end;
    let word = |word: &AtomicU64| Abs32(core::ptr::from_ref(word) as u64);
    let clock = vec![word(&machine_x86::CLOCK_BASE).into(), word(&machine_x86::CLOCK_SCALE).into()];
    let count = Abs32(NEAR_APIC + apic::INITIAL_COUNT);
    let arm = match apic::timer_multiplier() {
        None => Fragment { template: ArmTimer::template(), holes: vec![count.into()] },
        Some(multiplier) => {
            Fragment { template: ArmSlowTimer::template(), holes: vec![Imm32(multiplier).into(), count.into()] }
        }
    };
    Some(TimerCode {
        now: Fragment { template: ReadTime::template(), holes: clock },
        arm,
        open: Fragment { template: LetHigherIn::template(), holes: vec![] },
        close: Fragment { template: KeepAllOut::template(), holes: vec![] },
        end,
        // SAFETY: the stub is there as long as the machine, and is entered as the interrupt is.
        kernel: unsafe { Entry::new(stub()) },
    })
}

/// From now on the interrupt leads to `plain`, or to `nesting` while interrupts nest.
pub fn bind(plain: Entry<TimerEntry>, nesting: Entry<TimerEntry>) {
    let words = words();
    words.handlers[0].store(plain.address(), Ordering::Relaxed);
    words.handlers[1].store(nesting.address(), Ordering::Relaxed);
    nesting::let_in(nesting::Source::Timer);
    choose(words.nests.load(Ordering::Relaxed));
}

/// Has the handler bound that lets higher levels in, or the one that need not.
pub fn choose(nests: bool) {
    let words = words();
    words.nests.store(nests, Ordering::Relaxed);
    let handler = words.handlers[usize::from(nests)].load(Ordering::Relaxed);
    if handler != 0 {
        words.slot.store(handler, Ordering::Release);
    }
}
