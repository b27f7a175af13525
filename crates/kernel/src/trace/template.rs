//! The code that records a call on its way to whatever does it.

use codestore::Code;
use machine::TteId;
use quaject::{Makers, quaject};
use synth::{Abs32, Fact, Imm32, template};

use super::kind;
use crate::call::CallCode;

template! {
    /// Notes the call in the ring and goes on to what the call table would lead to. One copy for each traced thread: its
    /// number, its table and room for two registers are folded in. In: rax = call number, on the program's stack. All
    /// registers kept. Cost: 19 instructions.
    pub struct NoteCall { keep_rax: Abs32, keep_rdx: Abs32, next: Abs32, last: Imm32, ring: Abs32, kind_and_thread: Imm32, calls: Abs32 }
    "mov qword ptr [{keep_rax}], rax",
    "mov qword ptr [{keep_rdx}], rdx",
    "mov rdx, qword ptr [{next}]",
    "inc qword ptr [{next}]",
    "and edx, {last}",
    "shl rdx, 5",
    "add rdx, {ring}",
    "mov dword ptr [rdx + 8], {kind_and_thread}",
    "mov dword ptr [rdx + 12], eax",
    "mov qword ptr [rdx + 16], rdi",
    "mov qword ptr [rdx + 24], rsi",
    "mov rdi, rdx",
    "rdtsc",
    "mov dword ptr [rdi], eax",
    "mov dword ptr [rdi + 4], edx",
    "mov rdi, qword ptr [rdi + 16]",
    "mov rdx, qword ptr [{keep_rdx}]",
    "mov rax, qword ptr [{keep_rax}]",
    "jmp qword ptr [{calls} + rax*8]",
}

quaject! {
    /// The notes of one traced thread: where they go, and what they say.
    pub quaject Notes ("trace", made by "trace", at most 0 inactive)
    facts(FACTS)
    data {
        /// Address of room for two registers.
        pub keep: u64,
        /// Address of the count of records.
        pub next: u64,
        /// Number of the ring's last record: one less than a power of two.
        pub last: u32,
        pub ring: u64,
        pub thread: TteId,
        pub calls: u64,
    }
    factors(notes) {
        let keep_rax = Abs32(notes.keep);
        let keep_rdx = Abs32(notes.keep + 8);
        let next = Abs32(notes.next);
        let last = Imm32(notes.last);
        let ring = Abs32(notes.ring);
        let kind_and_thread = Imm32(u32::from(kind::CALL) | notes.thread.0 << 16);
        let calls = Abs32(notes.calls);
    }
    callouts NotesCallouts {}
    callbacks {}
    callentries NotesCode {
        /// What all entries of the thread's call table lead to.
        call: CallCode(0) named "trace.call" uses() {
            paste NoteCall { keep_rax, keep_rdx, next, last, ring, kind_and_thread, calls };
        }
    }
}

impl Notes {
    pub fn synthesize(&self, makers: Makers) -> Option<Code<CallCode>> {
        let makers = makers.of_thread(self.thread);
        NotesCode::call(self, makers, &NotesCallouts {}).create(makers)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("keep_rax", "room for rax while the call is noted", "the trace ends"),
    Fact::word("keep_rdx", "room for rdx while the call is noted", "the trace ends"),
    Fact::word("next", "records ever written", "the trace ends"),
    Fact::value("last", "number of the ring's last record", "the trace ends"),
    Fact::value("ring", "first record of the ring", "the trace ends"),
    Fact::value("kind_and_thread", "what the record says: a call of this thread", "the thread ends"),
    Fact::value("calls", "where this thread's call table stands aside", "the trace ends"),
];
