//! The quaject of the words that programs wait at: `futex` as machine code.

use alloc::boxed::Box;
use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

use abi::nr;
use machine::WaitWords;
use quaject::quaject;
use synth::{Abs32, Fact, Imm32, jump, template};

use super::PLACES;
use crate::call::FileCall;
use crate::call::fragments::{GiveBack, Keep};

/// Where threads wait whose words' addresses lead here.
#[repr(C)]
pub struct Place {
    /// Who waits here, by code or in Rust.
    pub(super) words: WaitWords,
    /// The word at which a thread rests by code, or rested last.
    pub(super) address: AtomicU64,
    /// And its quaspace.
    pub(super) quaspace: AtomicU64,
}

template! {
    /// The word may be one: aligned, and in the program's half. Cost: 4 instructions.
    pub struct WordAddress { user_limit: Abs32, slow: Target }
    "test dil, 3",
    jump!(jne slow),
    "cmp rdi, qword ptr [{user_limit}]",
    jump!(jae slow),
}

template! {
    /// To wake at a word of the process's own, or something else. Cost: 2 instructions.
    pub struct IsWake { no: Target }
    "cmp esi, 129",                         // FUTEX_WAKE | FUTEX_PRIVATE_FLAG
    jump!(jne no),
}

template! {
    /// To wait at a word of the process's own until woken, by whatever bits. Out: rax lost. Cost: 4 instructions, or 10.
    pub struct IsWait { slow: Target }
    "test r10, r10",                        // a time
    jump!(jne slow),
    "cmp esi, 128",                         // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
    "je 71f",
    "mov eax, esi",
    "or eax, 256",                          // FUTEX_CLOCK_REALTIME says which clock the time is of
    "cmp eax, 393",                         // FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME
    jump!(jne slow),
    "cmp r9d, -1",
    jump!(jne slow),
    "71:",
}

template! {
    /// The word as it is. Cost: 1 instruction.
    pub struct LoadFutex {}
    "mov eax, dword ptr [rdi]",
}

template! {
    /// It is as the program says. Cost: 2 instructions.
    pub struct WordIs { other: Target }
    "cmp eax, edx",
    jump!(jne other),
}

template! {
    /// It is not: EAGAIN. Cost: 1 instruction.
    pub struct TryAgain {}
    "mov rax, -11",
}

template! {
    /// The word's place. Out: rcx = place; rsi lost. Cost: 8 instructions.
    pub struct FindFutexPlace { places: Abs32 }
    where { MASK = PLACES - 1, BYTES = size_of::<Place>() }
    "mov rcx, rdi",
    "shr rcx, 2",
    "mov rsi, rcx",
    "shr rsi, 10",
    "xor ecx, esi",
    "and ecx, {MASK}",
    "imul ecx, ecx, {BYTES}",
    "add rcx, {places}",
}

template! {
    /// Somebody waits there, for this word if code does it. In: rcx = place, rax = quaspace. Out: rax = the place's words. Cost: 7
    /// instructions.
    pub struct WaitsHere { nobody: Target, other: Target }
    where {
        COUNT = offset_of!(Place, words) + offset_of!(WaitWords, count), ADDRESS = offset_of!(Place, address),
        QUASPACE = offset_of!(Place, quaspace), WORDS = offset_of!(Place, words)
    }
    "cmp qword ptr [rcx + {COUNT}], 0",
    jump!(je nobody),
    "cmp qword ptr [rcx + {ADDRESS}], rdi",
    jump!(jne other),
    "cmp qword ptr [rcx + {QUASPACE}], rax",
    jump!(jne other),
    "lea rax, [rcx + {WORDS}]",
}

template! {
    /// The place is free, and is this word's now. In: rcx = place, rax = quaspace. Out: rax = the place's words. Cost: 7 instructions.
    pub struct TakeFutexPlace { taken: Target }
    where {
        COUNT = offset_of!(Place, words) + offset_of!(WaitWords, count), ADDRESS = offset_of!(Place, address),
        SLEEPER = offset_of!(Place, words) + offset_of!(WaitWords, sleeper), QUASPACE = offset_of!(Place, quaspace),
        WORDS = offset_of!(Place, words)
    }
    "cmp qword ptr [rcx + {COUNT}], 0",
    jump!(jne taken),
    "cmp qword ptr [rcx + {SLEEPER}], 0",
    jump!(jne taken),
    "mov qword ptr [rcx + {ADDRESS}], rdi",
    "mov qword ptr [rcx + {QUASPACE}], rax",
    "lea rax, [rcx + {WORDS}]",
}

template! {
    /// Nobody was woken. Cost: 1 instruction.
    pub struct NoneWoken {}
    "xor eax, eax",
}

template! {
    /// To the machine's code, with the number of the call on the stack. Cost: 2 instructions.
    pub struct GoToMachine { number: Imm32, to: Target }
    "push {number}",
    jump!(jmp to),
}

quaject! {
    /// All places, and the call.
    pub quaject Futex ("futex", made by "boot", at most 0 inactive)
    facts(FACTS)
    data {
        /// [`PLACES`] of them, made where they stay: boot's stack has no room for them.
        pub(super) places: Box<[Place]>,
        /// The queue of those that Rust has noted elsewhere; nobody looks at it.
        pub(super) nowhere: WaitWords,
    }
    factors(futex) {
        let places = Abs32(futex.places.as_ptr() as u64);
        let number = Imm32(nr::FUTEX as u32);
    }
    callouts FutexCallouts {}
    callbacks {}
    callentries FutexCode {
        /// Waits at a word, or wakes who does.
        futex: FileCall(nr::FUTEX) named "futex" uses(user_limit, slow, slow_many, many, inner, other, rest, rouse) {
            paste WordAddress { user_limit, slow };
            paste IsWake { no: many };
            paste Keep {};
            load_quaspace;
            paste FindFutexPlace { places };
            paste WaitsHere { nobody: inner, other: slow_many };
            paste GiveBack {};
            paste GoToMachine { number, to: rouse };
            begin_inner;
            paste GiveBack {};
            paste NoneWoken {};
            leave_uncounted;
            begin_many;
            paste IsWait { slow };
            paste_user_plain LoadFutex {};
            paste WordIs { other };
            close_user;
            paste Keep {};
            load_quaspace;
            paste FindFutexPlace { places };
            paste TakeFutexPlace { taken: slow_many };
            paste GiveBack {};
            paste GoToMachine { number, to: rest };
            begin_other;
            paste TryAgain {};
            leave_uncounted;
        }
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::value("places", "where threads wait, by the addresses of their words", "never"),
    Fact::value("nobody", "the part for a place where nobody waits", "never"),
    Fact::value("other", "the part for a word that is not as expected, or the way to the Rust twin", "never"),
    Fact::value("taken", "way to the Rust twin where others wait", "never"),
    Fact::value("no", "the part that waits", "never"),
    Fact::value("to", "the machine's code that has the thread rest, or wakes who does", "never"),
];
