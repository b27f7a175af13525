//! Routines of programs' streams that people watch (S-31, S-120): counted and timed, and with a callback that is bound.
//!
//! ```text
//!   slot of the descriptor ─► watch.enter ─► the routine, made anew ─┬─► watch.leave ─► back to the program
//!                             notes the time                        ├─► watch.slow ──► the Rust twin
//!                                                                   └─► watch.told ──► who is told, watch.slow
//! ```
//! No live code is changed: the declaration's fragments are pasted once more, with other ways out (`quaject::Watch`), and the
//! descriptor's slot leads there. The time stands on the thread's stack, twice, so that the stack is as even as without.

use codestore::Code;
use quaject::{Makers, Straight, quaject};
use synth::{Abs32, Fact, Imm32, Target, Template, template};

use super::FileCall;
use super::routine::{RestoreMany, RestoreOne, RestorePages};

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

quaject! {
    /// A watch: where its words are. Instruments are not optimized.
    pub quaject WatchWords ("watch", made by "monitor", at most 0 inactive)
    facts(FACTS)
    pastes(GoThrough)
    data {
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
    factors(watch) {
        let calls = Abs32(watch.calls);
        let ticks = Abs32(watch.ticks);
        let most = Abs32(watch.most);
        let least = Abs32(watch.least);
        let inside = Abs32(watch.inside);
    }
    callouts WatchCallouts {
        /// The call's number, and the routine that does it, or leaves it to Rust.
        routine: (Imm32, Target),
        /// The machine's way back to the program.
        leave: Template,
        /// The Rust twin.
        rust: Target,
        /// What a way out gives back first.
        back: (Option<RestoreOne>, Option<RestorePages>, Option<RestoreMany>),
    }
    callbacks {}
    callentries WatchCode {
        /// Before the routine.
        enter: FileCall by Straight (0) named "watch.enter" needs(routine) uses() {
            paste Arrive { inside };
            paste EnterRoutine { number: routine.0, routine: routine.1 };
        }
        /// Behind a routine that did the call.
        leave: FileCall by Straight (0) named "watch.leave" needs(leave) uses() {
            paste Depart { calls, ticks, most, least, inside };
            paste (*leave);
        }
        /// Behind a routine that did not.
        slow: FileCall by Straight (0) named "watch.slow" needs(rust) uses() {
            paste Refer { left: Abs32(watch.left), inside, slow: *rust };
        }
        /// A callback that is bound: registers as `Routine` has them there.
        told: FileCall by Straight (0) named "watch.told" needs(routine, back) uses() {
            paste (back.0);
            paste (back.1);
            paste (back.2);
            paste Tell { slot: Abs32(watch.told) };
            paste EnterRoutine { number: routine.0, routine: routine.1 };
        }
    }
}

/// Each returns `None` without room for code.
impl WatchWords {
    /// `number` is the call's.
    pub fn enter(&self, makers: Makers, number: u64, routine: u64) -> Option<Code<FileCall>> {
        let callouts = WatchCallouts { routine: Some(call(number, routine)), ..Default::default() };
        WatchCode::enter(self, makers, &callouts).publish(makers)
    }

    pub fn leave(&self, makers: Makers) -> Option<Code<FileCall>> {
        let callouts = WatchCallouts { leave: Some(makers.machine.leave()), ..Default::default() };
        WatchCode::leave(self, makers, &callouts).publish(makers)
    }

    pub fn slow(&self, makers: Makers) -> Option<Code<FileCall>> {
        let rust = Some(Target::Address(makers.machine.slow_call().address()));
        WatchCode::slow(self, makers, &WatchCallouts { rust, ..Default::default() }).publish(makers)
    }

    /// For the callback whose way out, unconnected, has this label.
    pub fn told(&self, makers: Makers, label: usize, number: u64, slow: u64) -> Option<Code<FileCall>> {
        let many = matches!(label, 2 | 3).then_some(RestoreMany {});
        let back = ((label == 1).then_some(RestoreOne {}), (label == 3).then_some(RestorePages {}), many);
        let callouts = WatchCallouts { routine: Some(call(number, slow)), back: Some(back), ..Default::default() };
        WatchCode::told(self, makers, &callouts).publish(makers)
    }
}

fn call(number: u64, routine: u64) -> (Imm32, Target) {
    (Imm32(number as u32), Target::Address(routine))
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("calls", "calls that the watched routine did", "the watch goes"),
    Fact::word("ticks", "what they took of the processor's counter", "the watch goes"),
    Fact::word("most", "the longest of them", "the watch goes"),
    Fact::word("least", "the shortest of them", "the watch goes"),
    Fact::word("left", "calls that it left to its Rust twin", "the watch goes"),
    Fact::word("inside", "threads that are in the routine", "the watch goes"),
    Fact::word("slot", "slot: who is told", "each connection stores another"),
    Fact::value("routine", "the routine, made once more with other ways out", "the watch goes"),
];
