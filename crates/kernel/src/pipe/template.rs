//! The pipe's machine code: `write` and `read` on one queue.
//!
//! Two ways each: one byte, and any number that fits without turning round the end of the ring. Both leave for the Rust
//! twin when somebody waits at the other side (a word of the waiting queue), when the ring is full or empty, when the
//! other end is closed (`write_limit` is 0), and when the program's memory faults.

use abi::nr;
use codestore::{Code, Maker, PublishError};
use synth::{Abs32, Fact, Imm32, template};

use super::ends::Pipe;
use super::ring::{CAPACITY_DEFAULT, PipeWords};
use crate::call::{FileCall, Makers, Routine};
use core::mem::offset_of;

template! {
    /// One byte may be written. Out: registers as at entry, rax lost. Cost: 10 instructions.
    pub struct WriteOneCheck { many: Target, user_limit: Abs32, slow: Target, waiting: Abs32, head: Abs32, tail: Abs32, write_limit: Abs32 }
    "cmp rdx, 1",
    ".byte 0x0f, 0x85",                     // jne many
    ".long {many}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne slow: a reader sleeps, it must be woken
    ".long {slow}",
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    "cmp rax, qword ptr [{write_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow: full, or no reader
    ".long {slow}",
}

template! {
    /// Moves the byte. rdx is known to be 1, so it serves as index and is made 1 again. Cost: 6 instructions.
    pub struct WriteOneMove { head: Abs32, base: Abs32 }
    "movzx eax, byte ptr [rsi]",
    "movzx edx, word ptr [{head}]",
    "mov byte ptr [rdx + {base}], al",
    "mov edx, 1",
    "inc qword ptr [{head}]",
    "mov eax, edx",
}

template! {
    /// A run of bytes may be written. Out: rdi = place in the ring, rsi = the program's bytes, ecx = words; rdi, rsi and
    /// rcx of the program on the stack. Cost: 22 instructions.
    pub struct WriteManyCheck { capacity: Imm32, slow: Target, user_limit: Abs32, waiting: Abs32, head: Abs32, tail: Abs32, write_limit: Abs32, base: Abs32 }
    "cmp rdx, {capacity}",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    "add rax, rdx",
    "cmp rax, qword ptr [{write_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow: it does not fit
    ".long {slow}",
    "movzx eax, word ptr [{head}]",
    "add eax, edx",
    "cmp eax, {capacity}",
    ".byte 0x0f, 0x87",                     // ja slow: it would turn round the end
    ".long {slow}",
    "push rdi",
    "push rsi",
    "push rcx",
    "movzx edi, word ptr [{head}]",
    "add rdi, {base}",
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// Moves edx bytes from rsi to rdi: eight an instruction, then single ones.
    pub struct MoveMany {}
    "rep movsq",
    "test dl, 7",
    "jz 78f",
    "mov ecx, edx",
    "and ecx, 7",
    "rep movsb",
    "78:",
}

template! {
    /// The bytes are in the ring: the head says so. Cost: 5 instructions.
    pub struct WriteManyEnd { head: Abs32 }
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "add qword ptr [{head}], rdx",
    "mov rax, rdx",
}

template! {
    /// One byte may be read. Out: eax = the byte, rdx lost (it was 1). Cost: 11 instructions.
    pub struct ReadOneCheck { many: Target, user_limit: Abs32, slow: Target, waiting: Abs32, head: Abs32, tail: Abs32, slow_one: Target, base: Abs32 }
    "cmp rdx, 1",
    ".byte 0x0f, 0x85",                     // jne many
    ".long {many}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne slow: a writer sleeps, it must be woken
    ".long {slow}",
    "mov rdx, qword ptr [{tail}]",
    "cmp rdx, qword ptr [{head}]",
    ".byte 0x0f, 0x84",                     // je slow: empty
    ".long {slow_one}",
    "movzx edx, dx",
    "movzx eax, byte ptr [rdx + {base}]",
}

template! {
    /// Gives the byte to the program. Cost: 4 instructions.
    pub struct ReadOneMove { tail: Abs32 }
    "mov byte ptr [rsi], al",
    "inc qword ptr [{tail}]",
    "mov edx, 1",
    "mov eax, edx",
}

template! {
    /// A run of bytes may be read: what is there, at most what was asked for. Out: rsi = place in the ring, rdi = the program's
    /// buffer, eax = bytes, ecx = words; rdi, rsi and rcx of the program on the stack. Cost: 24 instructions.
    pub struct ReadManyCheck { user_limit: Abs32, slow: Target, waiting: Abs32, head: Abs32, tail: Abs32, capacity: Imm32, base: Abs32, slow_many: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow: the range leaves the program, however little is there to read
    ".long {slow}",
    "cmp rax, rsi",
    ".byte 0x0f, 0x82",                     // jb slow: the sum has turned round
    ".long {slow}",
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
    "mov rax, qword ptr [{head}]",
    "sub rax, qword ptr [{tail}]",
    ".byte 0x0f, 0x84",                     // je slow: empty
    ".long {slow}",
    "cmp rax, rdx",
    "cmova rax, rdx",
    "push rdi",
    "push rsi",
    "push rcx",
    "movzx ecx, word ptr [{tail}]",
    "lea edi, [rcx + rax]",
    "cmp edi, {capacity}",
    ".byte 0x0f, 0x87",                     // ja slow: it would turn round the end
    ".long {slow_many}",
    "mov rdi, rsi",
    "mov rsi, rcx",
    "add rsi, {base}",
    "mov ecx, eax",
    "shr ecx, 3",
}

template! {
    /// Moves eax bytes from rsi to rdi.
    pub struct MoveManyRax {}
    "rep movsq",
    "test al, 7",
    "jz 78f",
    "mov ecx, eax",
    "and ecx, 7",
    "rep movsb",
    "78:",
}

template! {
    /// The bytes are the program's: the tail says so. A pipe that has become empty begins at the front of its ring again, so
    /// that the bytes of the next write meet the same cache lines. Cost: 8 instructions, 10 when it is empty.
    pub struct ReadManyEnd { head: Abs32, tail: Abs32 }
    "mov rcx, rax",
    "add rcx, qword ptr [{tail}]",
    "cmp rcx, qword ptr [{head}]",
    "jne 76f",
    "xor ecx, ecx",
    "mov qword ptr [{head}], rcx",
    "76:",
    "mov qword ptr [{tail}], rcx",
    "pop rcx",
    "pop rsi",
    "pop rdi",
}

/// The addresses that are folded into a pipe's routines.
struct Words {
    head: Abs32,
    tail: Abs32,
    write_limit: Abs32,
    base: Abs32,
}

fn words(pipe: &Pipe) -> Words {
    let words = &raw const *pipe.ring().words as u64;
    let word = |offset: usize| Abs32(words + offset as u64);
    Words {
        head: word(offset_of!(PipeWords, head)),
        tail: word(offset_of!(PipeWords, tail)),
        write_limit: word(offset_of!(PipeWords, write_limit)),
        base: Abs32(pipe.ring().base()),
    }
}

/// `write` for a pipe of the default capacity.
pub fn write(pipe: &Pipe, makers: Makers) -> Result<Code<FileCall>, PublishError> {
    let Words { head, tail, write_limit, base } = words(pipe);
    let waiting = Abs32(pipe.readable().count_word());
    let capacity = Imm32(CAPACITY_DEFAULT as u32);
    let mut routine = Routine::new(makers, nr::WRITE);
    let (slow, many, user_limit) = (routine.slow(), routine.many(), routine.user_limit());
    routine.paste(|draft| {
        WriteOneCheck { many, user_limit, slow, waiting, head, tail, write_limit }.append_to(draft);
    });
    routine.paste_user_one(|draft| WriteOneMove { head, base }.append_to(draft));
    routine.leave();
    routine.begin_many();
    routine.paste(|draft| {
        WriteManyCheck { capacity, slow, user_limit, waiting, head, tail, write_limit, base }.append_to(draft);
    });
    routine.paste_user_many(|draft| MoveMany {}.append_to(draft));
    routine.paste(|draft| WriteManyEnd { head }.append_to(draft));
    routine.leave();
    routine.publish("pipe.write", Maker::new("pipe2"))
}

/// `read` for a pipe of the default capacity.
pub fn read(pipe: &Pipe, makers: Makers) -> Result<Code<FileCall>, PublishError> {
    let Words { head, tail, base, .. } = words(pipe);
    let waiting = Abs32(pipe.writable().count_word());
    let capacity = Imm32(CAPACITY_DEFAULT as u32);
    let mut routine = Routine::new(makers, nr::READ);
    let (slow, slow_one, slow_many) = (routine.slow(), routine.slow_one(), routine.slow_many());
    let (many, user_limit) = (routine.many(), routine.user_limit());
    routine.paste(|draft| {
        ReadOneCheck { many, user_limit, slow, waiting, head, tail, slow_one, base }.append_to(draft);
    });
    routine.paste_user_one(|draft| ReadOneMove { tail }.append_to(draft));
    routine.leave();
    routine.begin_many();
    routine.paste(|draft| {
        ReadManyCheck { user_limit, slow, waiting, head, tail, capacity, base, slow_many }.append_to(draft);
    });
    routine.paste_user_many(|draft| MoveManyRax {}.append_to(draft));
    routine.paste(|draft| ReadManyEnd { head, tail }.append_to(draft));
    routine.leave();
    routine.publish("pipe.read", Maker::new("pipe2"))
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 10] {
    [
        WriteOneCheck::template(),
        WriteOneMove::template(),
        WriteManyCheck::template(),
        MoveMany::template(),
        WriteManyEnd::template(),
        ReadOneCheck::template(),
        ReadOneMove::template(),
        ReadManyCheck::template(),
        MoveManyRax::template(),
        ReadManyEnd::template(),
    ]
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "waiting",
        "threads that sleep at the other side; not 0: Rust wakes them",
        "the pipe is closed or resized",
    ),
    Fact::word("head", "bytes ever written to this pipe", "the pipe is closed or resized"),
    Fact::word("tail", "bytes ever read from this pipe", "the pipe is closed or resized"),
    Fact::word("write_limit", "capacity, or 0 when nobody can read", "the pipe is closed or resized"),
    Fact::value("base", "first byte of the ring", "F_SETPIPE_SZ moves it: the routines go, Rust works on"),
    Fact::value("capacity", "size of the ring", "F_SETPIPE_SZ"),
];
