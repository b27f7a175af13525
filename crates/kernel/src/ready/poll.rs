//! `poll` of one descriptor as code: the object's own readiness is asked through the descriptor's slot.

use abi::nr;
use codestore::Code;
use machine::Tte;
use quaject::{Makers, quaject};
use synth::{Abs32, Fact, Imm32, Target, jump, template};

use super::RUST_LOOKS;
use crate::call::{CallCode, ToRust};

template! {
    /// One record, in the program's half. In: rdi, rsi of `poll`. Cost: 4 instructions.
    pub struct OneRecord { user_limit: Abs32, slow: Target }
    "cmp esi, 1",
    jump!(jne slow),
    "cmp rdi, qword ptr [{user_limit}]",
    jump!(jae slow),
}

template! {
    /// The descriptor in the record. Cost: 1 instruction.
    pub struct LoadDescriptor {}
    "mov eax, dword ptr [rdi]",
}

template! {
    /// What is behind the descriptor says what it is ready for, if it has code for that. In: eax = descriptor. Out: eax = bits. Cost: 8
    /// instructions.
    pub struct AskDescriptor { count: Imm32, ready: Abs32, slow: Target }
    where { RUST = RUST_LOOKS }
    "cmp eax, {count}",
    jump!(jae slow),
    "mov rax, qword ptr [{ready} + rax*8]",
    "test rax, rax",
    jump!(je slow),
    "call rax",
    "test al, {RUST}",
    jump!(jne slow),
}

template! {
    /// Those of the bits that are asked for. Cost: 2 instructions.
    pub struct AskedFor { none: Target }
    "and ax, word ptr [rdi + 4]",
    jump!(je none),
}

template! {
    /// They are the record's answer. Cost: 1 instruction.
    pub struct GiveBits {}
    "mov word ptr [rdi + 6], ax",
}

template! {
    /// One record is ready. Cost: 1 instruction.
    pub struct OneReady {}
    "mov eax, 1",
}

template! {
    /// It is not, and the program does not wait. In: eax = 0. Cost: 2 instructions.
    pub struct DoesNotWait { slow: Target }
    "test edx, edx",
    jump!(jne slow),
}

quaject! {
    /// The descriptors of a process, by what they are ready for.
    pub quaject Polls ("polls", made by "poll", at most 0 inactive)
    facts(FACTS)
    data {
        /// Address of the slots of readiness, by descriptor, and their number.
        pub ready: u64,
        pub count: u64,
    }
    factors(polls) {
        let ready = Abs32(polls.ready);
        let count = Imm32(polls.count as u32);
    }
    callouts PollsCallouts<'a> {
        /// The thread.
        tte: &'a dyn Tte,
    }
    callbacks {}
    callentries PollsCode {
        poll: CallCode(nr::POLL) named "call.poll" needs(tte) uses(user_limit, slow, none, rust) {
            paste OneRecord { user_limit, slow: Target::Address(tte.slow_entry().address()) };
            enter_kernel (*tte);
            paste_user LoadDescriptor {};
            paste AskDescriptor { count, ready, slow };
            paste_user AskedFor { none };
            paste_user GiveBits {};
            paste OneReady {};
            leave;
            begin_none;
            paste DoesNotWait { slow };
            paste_user GiveBits {};
            leave;
            begin_slow;
            paste ToRust { number: Imm32(nr::POLL as u32), slow: rust };
        }
    }
}

impl Polls {
    /// `poll` for one thread. `None` without room for code.
    pub fn poll(&self, makers: Makers, tte: &dyn Tte) -> Option<Code<CallCode>> {
        PollsCode::poll(self, makers, &PollsCallouts { tte: Some(tte) }).create(makers)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::value(
        "ready",
        "this process's slots of readiness, by descriptor",
        "the process gets another table: exec, unshare",
    ),
    Fact::value("count", "descriptors that have such a slot", "never"),
    Fact::value("none", "the part for a descriptor that is not ready", "never"),
];
