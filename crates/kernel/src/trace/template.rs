//! The code that records a call on its way to whatever does it.

use codestore::{Code, CodeStore, Maker, PublishError};
use machine::TteId;
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

/// Addresses that the code of one thread knows.
pub struct Plan {
    pub keep: u64,
    pub next: u64,
    /// Number of the ring's last record: one less than a power of two.
    pub last: u32,
    pub ring: u64,
    pub thread: TteId,
    pub calls: u64,
}

pub fn note_call(store: &'static CodeStore, plan: &Plan) -> Result<Code<CallCode>, PublishError> {
    let code = NoteCall {
        keep_rax: Abs32(plan.keep),
        keep_rdx: Abs32(plan.keep + 8),
        next: Abs32(plan.next),
        last: Imm32(plan.last),
        ring: Abs32(plan.ring),
        kind_and_thread: Imm32(u32::from(kind::CALL) | plan.thread.0 << 16),
        calls: Abs32(plan.calls),
    };
    store.publish("trace.call", Maker::new("trace").thread(plan.thread.0), code.draft())
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

/// For the golden listings.
pub fn templates() -> [synth::Template; 1] {
    [NoteCall::template()]
}
