//! Routines of programs' streams that people watch (S-31, S-120): counted and timed, and with a callback that is bound.
//!
//! ```text
//!   slot of the descriptor ─► watch.enter ─► the routine, made anew ─┬─► watch.leave ─► back to the program
//!                             notes the time                        ├─► watch.slow ──► the Rust twin
//!                                                                   └─► watch.told ──► who is told, watch.slow
//! ```
//! No live code is changed: the declaration's fragments are pasted once more, with other ways out (`quaject::Watch`), and the
//! descriptor's slot leads there. The time stands on the thread's stack, twice, so that the stack is as even as without.

use machine::Machine;
use synth::{Abs32, Draft, Imm32, Target, Template, template};

use super::routine::{RestoreMany, RestoreOne};

template! {
    /// A way out of a routine that is watched. Cost: 1 instruction.
    pub struct GoThrough { to: Target }
    ".byte 0xe9",
    ".long {to}",
}

template! {
    /// In: registers as at entry of a file call. Out: rax lost, two words on the stack.
    pub struct Arrive { inside: Abs32 }
    "inc qword ptr [{inside}]",
    "push rdx",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "pop rdx",
    "push rax",
    "push rax",
}

template! {
    /// On into the routine, which believes that it was called.
    pub struct EnterRoutine { number: Imm32, routine: Target }
    "mov eax, {number}",
    ".byte 0xe9",
    ".long {routine}",
}

template! {
    /// The routine has done the call: counted, and how long it took. All registers but flags are kept.
    pub struct Depart { calls: Abs32, ticks: Abs32, most: Abs32, least: Abs32, inside: Abs32 }
    "push rax",
    "push rdx",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, qword ptr [rsp + 16]",
    "jae 76f",                              // counters of two processors may disagree
    "xor eax, eax",
    "76:",
    "inc qword ptr [{calls}]",
    "dec qword ptr [{inside}]",
    "add qword ptr [{ticks}], rax",
    "cmp rax, qword ptr [{most}]",
    "jbe 77f",
    "mov qword ptr [{most}], rax",
    "77: cmp rax, qword ptr [{least}]",
    "jae 78f",
    "mov qword ptr [{least}], rax",
    "78: pop rdx",
    "pop rax",
    "lea rsp, [rsp + 16]",
}

template! {
    /// The routine leaves the call to its Rust twin.
    pub struct Refer { left: Abs32, inside: Abs32, slow: Target }
    "inc qword ptr [{left}]",
    "dec qword ptr [{inside}]",
    "lea rsp, [rsp + 16]",
    ".byte 0xe9",
    ".long {slow}",
}

template! {
    /// Tells, with 1, whoever the slot leads to. All registers but rax and flags are kept.
    pub struct Tell { slot: Abs32 }
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbp",
    "mov rbp, rsp",
    "and rsp, -16",
    "mov edi, 1",
    "call qword ptr [{slot}]",
    "mov rsp, rbp",
    "pop rbp",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
}

/// Where the words of one watch are.
#[derive(Clone, Copy)]
pub struct WatchWords {
    /// Calls that the routine did, and their ticks of the processor's counter: all, most, least.
    pub calls: u64,
    pub ticks: u64,
    pub most: u64,
    pub least: u64,
    /// Calls that it left to its twin.
    pub left: u64,
    /// Threads that are between `enter` and one of the ends: they sleep for a page.
    pub inside: u64,
    /// Slot: who is told.
    pub told: u64,
}

/// Before the routine; `number` is the call's.
pub fn enter(words: WatchWords, number: u64, routine: u64) -> Draft {
    let mut draft = Draft::new();
    Arrive { inside: Abs32(words.inside) }.append_to(&mut draft);
    EnterRoutine { number: Imm32(number as u32), routine: Target::Address(routine) }.append_to(&mut draft);
    draft
}

/// Behind a routine that did the call.
pub fn leave(words: WatchWords, machine: &dyn Machine) -> Draft {
    let mut draft = Draft::new();
    let WatchWords { calls, ticks, most, least, inside, .. } = words;
    Depart { calls: Abs32(calls), ticks: Abs32(ticks), most: Abs32(most), least: Abs32(least), inside: Abs32(inside) }
        .append_to(&mut draft);
    draft.append(&machine.leave(), &[]);
    draft
}

/// Behind a routine that did not.
pub fn slow(words: WatchWords, machine: &dyn Machine) -> Draft {
    let mut draft = Draft::new();
    let slow = Target::Address(machine.slow_call());
    Refer { left: Abs32(words.left), inside: Abs32(words.inside), slow }.append_to(&mut draft);
    draft
}

/// A callback that is bound, by the label of the way out that it has unconnected: registers as `Routine` has them there.
pub fn told(words: WatchWords, label: usize, number: u64, slow: u64) -> Draft {
    let mut draft = Draft::new();
    match label {
        1 => RestoreOne {}.append_to(&mut draft),
        2 => RestoreMany {}.append_to(&mut draft),
        _ => {}
    }
    Tell { slot: Abs32(words.told) }.append_to(&mut draft);
    EnterRoutine { number: Imm32(number as u32), routine: Target::Address(slow) }.append_to(&mut draft);
    draft
}

/// For the golden listings.
pub fn templates() -> [Template; 6] {
    [
        GoThrough::template(),
        Arrive::template(),
        EnterRoutine::template(),
        Depart::template(),
        Refer::template(),
        Tell::template(),
    ]
}
