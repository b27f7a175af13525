//! The event counter's quaject: the count, who waits for it, and `read` and `write` as machine code.

use abi::nr;
use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use quaject::quaject;
use synth::{Abs32, Fact, jump, template};

use crate::call::fragments::{NobodyWaits, UserAddress};
use crate::call::{FileCall, Sleeps};
use crate::schedule::WaitQueue;

template! {
    /// There is room for a count. Cost: 2 instructions.
    pub struct AtLeastCount { slow: Target }
    "cmp rdx, 8",
    jump!(jb slow),
}

template! {
    /// Something was counted. Out: rax = the count. Cost: 3 instructions.
    pub struct SomeCounted { count: Abs32, empty: Target }
    "mov rax, qword ptr [{count}]",
    "test rax, rax",
    jump!(je empty),
}

template! {
    /// Gives the count to the program. Cost: 1 instruction.
    pub struct GiveCount {}
    "mov qword ptr [rsi], rax",
}

template! {
    /// The count begins anew. Cost: 3 instructions.
    pub struct TakeCount { count: Abs32, departed: Abs32 }
    "mov qword ptr [{count}], 0",
    "inc qword ptr [{departed}]",
    "mov eax, 8",
}

template! {
    /// What is to be added. Cost: 1 instruction.
    pub struct LoadMore {}
    "mov rax, qword ptr [rsi]",
}

template! {
    /// It is a number that can be added, and the sum is one that can stand there. Out: rax = the sum. Cost: 6 instructions.
    pub struct SumFits { count: Abs32, full: Target }
    "cmp rax, -1",
    jump!(je full),
    "add rax, qword ptr [{count}]",
    jump!(jb full),                         // carry: more than a word holds
    "cmp rax, -1",
    jump!(je full),
}

template! {
    /// Stores the sum. Cost: 3 instructions.
    pub struct AddCount { count: Abs32, arrived: Abs32 }
    "mov qword ptr [{count}], rax",
    "inc qword ptr [{arrived}]",
    "mov eax, 8",
}

quaject! {
    /// What stays the same when an event counter is closed and another one made: the words, and the code that knows their addresses.
    ///
    /// Invariant: `count` is less than `u64::MAX`.
    pub quaject Body ("counter", made by "eventfd2", at most 8 inactive)
    facts(FACTS)
    data {
        pub(super) count: AtomicU64,
        /// Writes and reads so far.
        pub(super) arrived: AtomicU64,
        pub(super) departed: AtomicU64,
        /// Not 0: who finds nothing counted may sleep; nobody has it open who does not wait (`O_NONBLOCK`).
        pub(super) read_sleeps: AtomicU64,
        /// Readers sleep here.
        pub(super) readable: WaitQueue,
        /// Writers sleep here.
        pub(super) writable: WaitQueue,
    }
    factors(counter) {
        let at = core::ptr::from_ref(counter) as u64;
        let count = Abs32(at + offset_of!(Body, count) as u64);
        let arrived = Abs32(at + offset_of!(Body, arrived) as u64);
        let departed = Abs32(at + offset_of!(Body, departed) as u64);
        let read_sleeps = Abs32(at + offset_of!(Body, read_sleeps) as u64);
        let readers = Abs32(counter.readable.words());
        let writers = Abs32(counter.writable.words());
        let readers_waiting = Abs32(counter.readable.count_word());
        let writers_waiting = Abs32(counter.writable.count_word());
    }
    callouts CounterCallouts {}
    callbacks {
        /// No sum that large: the writer sleeps until a reader has taken the count, or is told that it has written no number.
        full: slow,
        /// The reader sleeps until something is counted.
        empty: sleep,
        /// A reader sleeps, it must be woken.
        not_empty: wake,
        /// A writer sleeps, it must be woken.
        not_full: wake,
    }
    callentries CounterCode {
        /// Takes the whole count.
        read: FileCall(nr::READ) named "counter.read" uses(user_limit, slow) {
            paste AtLeastCount { slow };
            paste UserAddress { user_limit, slow };
            paste NobodyWaits { waiting: writers_waiting, slow: not_full };
            paste SomeCounted { count, empty };
            paste_user_plain GiveCount {};
            paste TakeCount { count, departed };
            leave;
            wakes (writers);
            sleeps (Sleeps { queue: readers, may_sleep: read_sleeps, most: None });
        }
        write: FileCall(nr::WRITE) named "counter.write" uses(user_limit, slow) {
            paste AtLeastCount { slow };
            paste UserAddress { user_limit, slow };
            paste NobodyWaits { waiting: readers_waiting, slow: not_empty };
            paste_user_plain LoadMore {};
            paste SumFits { count, full };
            paste AddCount { count, arrived };
            leave;
            wakes (readers);
        }
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("waiting", "threads that sleep at the other side; not 0: they are woken first", "the counter is closed"),
    Fact::word("count", "what is counted", "the counter is closed"),
    Fact::word("arrived", "writes so far, for who asks about news alone", "the counter is closed"),
    Fact::word("departed", "reads so far", "the counter is closed"),
];
