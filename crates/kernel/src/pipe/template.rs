//! The pipe's quaject: the queue, who waits at it, and `write` and `read` as machine code.
//!
//! Two ways each: one byte, and any number that fits without turning round the end of the ring. Both leave for the Rust
//! twin when somebody waits at the other side (a word of the waiting queue), when the ring is full or empty, when the
//! other end is closed (`write_limit` is 0), and when the program's memory faults.

use abi::nr;
use alloc::sync::Arc;
use core::mem::offset_of;
use quaject::quaject;
use synth::{Abs32, Fact, Imm32, jump, template};

use super::ATOMIC_BYTES;
use super::ring::{CAPACITY_DEFAULT, PipeRing, PipeWords};
use crate::call::fragments::{
    AtMost, ForOne, GiveBack, Keep, MoveSorted, MoveSortedRax, NobodyWaits, UserAddress, UserRange,
};
use crate::call::{FileCall, Sleeps};
use crate::schedule::WaitQueue;

template! {
    /// One more byte fits. Out: rax lost. Cost: 4 instructions.
    pub struct RoomForOne { head: Abs32, tail: Abs32, write_limit: Abs32, full: Target }
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    "cmp rax, qword ptr [{write_limit}]",
    ".byte 0x0f, 0x83",                     // jae full: or no reader
    ".long {full}",
}

template! {
    /// Puts the byte. rdx is known to be 1, so it serves as index and is made 1 again. Cost: 6 instructions.
    pub struct PutOne { head: Abs32, base: Abs32 }
    "movzx eax, byte ptr [rsi]",
    "movzx edx, word ptr [{head}]",
    "mov byte ptr [rdx + {base}], al",
    "mov edx, 1",
    "inc qword ptr [{head}]",
    "mov eax, edx",
}

template! {
    /// A run of bytes fits. Out: rax lost. Cost: 5 instructions.
    pub struct RoomForMany { head: Abs32, tail: Abs32, run_limit: Abs32, full: Target }
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    "add rax, rdx",
    "cmp rax, qword ptr [{run_limit}]",
    jump!(jae full),                        // or no reader: then not even nothing can be written
}

template! {
    /// The run does not turn round the end. Out: rdi = place in the ring, rax lost. Cost: 5 instructions.
    pub struct PlaceToPut { head: Abs32, capacity: Imm32, base: Abs32, slow_many: Target }
    "movzx edi, word ptr [{head}]",
    "lea eax, [rdi + rdx]",
    "cmp eax, {capacity}",
    ".byte 0x0f, 0x87",                     // ja slow: it would turn round
    ".long {slow_many}",
    "add rdi, {base}",
}

template! {
    /// The bytes are in the ring: the head says so. Cost: 2 instructions.
    pub struct PutMany { head: Abs32 }
    "add qword ptr [{head}], rdx",
    "mov rax, rdx",
}

template! {
    /// There is a byte. Out: rdx = the tail (it was 1). Cost: 3 instructions.
    pub struct OneThere { head: Abs32, tail: Abs32, empty: Target }
    "mov rdx, qword ptr [{tail}]",
    "cmp rdx, qword ptr [{head}]",
    ".byte 0x0f, 0x84",                     // je empty
    ".long {empty}",
}

template! {
    /// The byte at the tail. Out: eax; rdx lost. Cost: 2 instructions.
    pub struct OneAtTail { tail: Abs32, base: Abs32 }
    "movzx edx, word ptr [{tail}]",
    "movzx eax, byte ptr [rdx + {base}]",
}

template! {
    /// Gives the byte to the program. Cost: 4 instructions.
    pub struct GetOne { tail: Abs32 }
    "mov byte ptr [rsi], al",
    "inc qword ptr [{tail}]",
    "mov edx, 1",
    "mov eax, edx",
}

template! {
    /// What is there, at most what was asked for. Out: rax = bytes. Cost: 5 instructions.
    pub struct SomeThere { head: Abs32, tail: Abs32, empty: Target }
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    ".byte 0x0f, 0x84",                     // je empty
    ".long {empty}",
    "cmp rax, rdx",
    "cmova rax, rdx",
}

template! {
    /// The run does not turn round the end. Out: rsi = place in the ring, rdi = the program's buffer. Cost: 6 instructions.
    pub struct PlaceToGet { tail: Abs32, capacity: Imm32, base: Abs32, slow_many: Target }
    "movzx ecx, word ptr [{tail}]",
    "lea edi, [rcx + rax]",
    "cmp edi, {capacity}",
    ".byte 0x0f, 0x87",                     // ja slow: it would turn round
    ".long {slow_many}",
    "mov rdi, rsi",
    "lea rsi, [rcx + {base}]",
}

template! {
    /// The bytes are the program's: the tail says so. A pipe that has become empty begins at the front of its ring again, so
    /// that the bytes of the next write meet the same cache lines: both words skip what is left of it, for they only grow. Cost: 5
    /// instructions, 8 when it is empty.
    pub struct GetMany { head: Abs32, tail: Abs32 }
    "mov rcx, rax",
    "add rcx, qword ptr [{tail}]",
    "cmp rcx, qword ptr [{head}]",
    "jne 76f",
    "or rcx, 0xffff",
    "inc rcx",
    "mov qword ptr [{head}], rcx",
    "76:",
    "mov qword ptr [{tail}], rcx",
}

quaject! {
    /// What stays the same when a pipe is closed and another one opened: the queue, and the code that knows its addresses.
    ///
    /// Invariant: `tail <= head <= tail + capacity`, and the limits are 0 without a reader.
    pub quaject Body ("pipe", made by "pipe2", at most 8 inactive)
    facts(FACTS)
    data {
        pub(super) ring: PipeRing,
        /// Readers sleep here.
        pub(super) readable: Arc<WaitQueue>,
        /// Writers sleep here.
        pub(super) writable: Arc<WaitQueue>,
    }
    factors(pipe) {
        let words = &raw const *pipe.ring.words as u64;
        let head = Abs32(words + offset_of!(PipeWords, head) as u64);
        let tail = Abs32(words + offset_of!(PipeWords, tail) as u64);
        let write_limit = Abs32(words + offset_of!(PipeWords, write_limit) as u64);
        let run_limit = Abs32(words + offset_of!(PipeWords, run_limit) as u64);
        let base = Abs32(pipe.ring.base());
        let capacity = Imm32(CAPACITY_DEFAULT as u32);
        let read_sleeps = Abs32(words + offset_of!(PipeWords, read_sleeps) as u64);
        let write_sleeps = Abs32(words + offset_of!(PipeWords, write_sleeps) as u64);
        let readers = Abs32(pipe.readable.words());
        let writers = Abs32(pipe.writable.words());
        let readers_waiting = Abs32(pipe.readable.count_word());
        let writers_waiting = Abs32(pipe.writable.count_word());
    }
    callouts PipeCallouts {}
    callbacks {
        /// The writer sleeps until a reader has made room.
        full: sleep,
        /// The reader sleeps until there is something.
        empty: sleep,
        /// As `empty`, where one byte was asked for.
        empty_for_one: sleep_one,
        /// A reader sleeps, it must be woken: the pipe is no longer empty.
        not_empty: wake,
        /// A writer sleeps, it must be woken.
        not_full: wake,
    }
    callentries PipeCode {
        read: FileCall(nr::READ) named "pipe.read" uses(user_limit, slow, slow_many, many) {
            paste NobodyWaits { waiting: writers_waiting, slow: not_full };
            paste ForOne { many };
            paste UserAddress { user_limit, slow };
            paste OneThere { head, tail, empty: empty_for_one };
            paste OneAtTail { tail, base };
            paste_user_one GetOne { tail };
            leave;
            begin_many;
            paste UserRange { user_limit, slow };
            paste NobodyWaits { waiting: writers_waiting, slow: not_full };
            paste SomeThere { head, tail, empty };
            paste Keep {};
            paste PlaceToGet { tail, capacity, base, slow_many };
            paste_user_many MoveSortedRax {};
            paste GetMany { head, tail };
            paste GiveBack {};
            leave;
            wakes (writers);
            sleeps (Sleeps { queue: readers, may_sleep: read_sleeps, most: None });
        }
        write: FileCall(nr::WRITE) named "pipe.write" uses(user_limit, slow, slow_many, many) {
            paste UserAddress { user_limit, slow };
            paste NobodyWaits { waiting: readers_waiting, slow: not_empty };
            paste ForOne { many };
            paste RoomForOne { head, tail, write_limit, full };
            paste_user_one PutOne { head, base };
            leave;
            begin_many;
            paste AtMost { most: capacity, slow };
            paste UserAddress { user_limit, slow };
            paste NobodyWaits { waiting: readers_waiting, slow: not_empty };
            paste RoomForMany { head, tail, run_limit, full };
            paste Keep {};
            paste PlaceToPut { head, capacity, base, slow_many };
            paste_user_many MoveSorted {};
            paste GiveBack {};
            paste PutMany { head };
            leave;
            wakes (readers);
            sleeps (Sleeps { queue: writers, may_sleep: write_sleeps, most: Some(Imm32(ATOMIC_BYTES as u32)) });
        }
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "waiting",
        "threads that sleep at the other side; not 0: Rust wakes them",
        "the pipe is closed or resized",
    ),
    Fact::value("full", "callback: no room; unconnected, the way to the Rust twin, where the writer sleeps", "never"),
    Fact::value(
        "empty",
        "callback: nothing there; unconnected, the way to the Rust twin, where the reader sleeps",
        "never",
    ),
    Fact::word("head", "bytes written, and places skipped", "the pipe is closed or resized"),
    Fact::word("tail", "bytes read, and places skipped", "the pipe is closed or resized"),
    Fact::word("write_limit", "capacity, or 0 when nobody can read", "the pipe is closed or resized"),
    Fact::word("run_limit", "one more than the capacity, or 0 when nobody can read", "the pipe is closed or resized"),
    Fact::value("base", "first byte of the ring", "F_SETPIPE_SZ moves it: the routines go, Rust works on"),
    Fact::value("capacity", "size of the ring", "F_SETPIPE_SZ"),
];
