//! The two ends of a pipe: is there something, is there room?

use codestore::Code;
use quaject::{Makers, quaject};
use synth::{Abs32, Fact, Imm32, template};

use super::{RUST_LOOKS, Readiness};
use crate::pipe::ATOMIC_BYTES;

template! {
    /// There is something in the ring, or nothing yet. Cost: 7 instructions, 6 when there is nothing, 4 without
    /// a writer.
    pub struct SomethingThere { head: Abs32, tail: Abs32, writers: Abs32 }
    where { RUST = RUST_LOOKS }
    "cmp dword ptr [{writers}], 0",
    "je 71f",
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    "jz 72f",
    "mov eax, 0x41",                        // POLLIN | POLLRDNORM
    "72: ret",
    "71: mov eax, {RUST}",
    "ret",
}

template! {
    /// A write that is not torn finds room, or not. Cost: 9 instructions, 10 when not, 4 without a reader.
    pub struct RoomThere { head: Abs32, tail: Abs32, write_limit: Abs32, readers: Abs32, least: Imm32 }
    where { RUST = RUST_LOOKS }
    "cmp dword ptr [{readers}], 0",
    "je 71f",
    "mov rax, qword ptr [{write_limit}]",
    "add rax, qword ptr [{tail}]",
    "sub rax, qword ptr [{head}]",
    "cmp rax, {least}",
    "mov eax, 0x104",                       // POLLOUT | POLLWRNORM
    "jae 72f",
    "xor eax, eax",
    "72: ret",
    "71: mov eax, {RUST}",
    "ret",
}

quaject! {
    /// Where the words of a pipe are that say what its ends are ready for.
    pub quaject PipeReady ("pipe readiness", made by "poll", at most 0 inactive)
    facts(FACTS)
    data {
        pub head: u64,
        pub tail: u64,
        pub write_limit: u64,
        /// 32-bit words: how many have the end open.
        pub readers: u64,
        pub writers: u64,
    }
    factors(pipe) {
        let head = Abs32(pipe.head);
        let tail = Abs32(pipe.tail);
        let write_limit = Abs32(pipe.write_limit);
        let readers = Abs32(pipe.readers);
        let writers = Abs32(pipe.writers);
        let least = Imm32(ATOMIC_BYTES as u32);
    }
    callouts PipeReadyCallouts {}
    callbacks {}
    callentries PipeReadyCode {
        read: Readiness(0) named "ready.pipe.read" uses() {
            paste SomethingThere { head, tail, writers };
        }
        write: Readiness(0) named "ready.pipe.write" uses() {
            paste RoomThere { head, tail, write_limit, readers, least };
        }
    }
}

/// Each returns `None` without room for code.
impl PipeReady {
    pub fn of_read_end(&self, makers: Makers) -> Option<Code<Readiness>> {
        PipeReadyCode::read(self, makers, &PipeReadyCallouts {}).create(makers)
    }

    pub fn of_write_end(&self, makers: Makers) -> Option<Code<Readiness>> {
        PipeReadyCode::write(self, makers, &PipeReadyCallouts {}).create(makers)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("head", "bytes written, and places skipped", "the open file is closed"),
    Fact::word("tail", "bytes read, and places skipped", "the open file is closed"),
    Fact::word("write_limit", "capacity, or 0 when nobody can read", "the open file is closed"),
    Fact::word("readers", "how many have the other end open", "the open file is closed"),
    Fact::word("writers", "how many have the other end open", "the open file is closed"),
    Fact::value("least", "room that a pipe has which is ready for a write", "never"),
];
