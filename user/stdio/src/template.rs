//! The code of a stream's four routines. C's calling convention: `put(c, stream)`, `get(stream)`,
//! `write(bytes, count, stream)`, `read(into, count, stream)`.
//!
//! The end of the buffer is folded in; the index is reached through the stream's address, which the caller has in a register,
//! and not at a folded address: processors of today keep a word that is stored and loaded again through the same register in
//! their registers ("memory renaming"), which makes a `put` six times faster than with the absolute address
//! (docs/adr/0024-fast-buffer.md).

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use synth::{jump, template};

template! {
    /// Stores a character and counts up. In: dil = character, rsi = stream. Out: flags of the index, rax lost. Cost: 3
    /// instructions.
    ///
    /// The word at `index` of the stream is minus the free bytes, `end` the end of the buffer (thesis figure 3.2: P and D).
    pub struct Put { index: Imm32, end: Abs32 }
    "mov rax, qword ptr [rsi + {index}]",
    "mov byte ptr [rax + {end}], dil",
    "inc qword ptr [rsi + {index}]",
}

template! {
    /// Leaves for `full` when the buffer is. In: flags of the index.
    pub struct WhenFull { full: Target }
    jump!(je full),
}

template! {
    /// Leaves for `full` after the end of a line. In: dil = character.
    pub struct WhenLine { full: Target }
    "cmp dil, 10",
    jump!(je full),
}

template! {
    /// Returns the character. In: dil.
    pub struct ReturnCharacter {}
    "movzx eax, dil",
    "ret",
}

template! {
    /// Has the call done in Rust, at the address in the word `slow`. In: registers as at entry.
    pub struct GoSlow { slow: Abs32 }
    "jmp qword ptr [{slow}]",
}

template! {
    /// Takes a character. The stream's first word is minus the bytes that are there; the byte at `end` may be read, too.
    /// In: rdi = stream. Out: eax = character. Leaves for `fill` when there is none. Cost: 6 instructions.
    pub struct Get { end: Abs32, fill: Target }
    "mov rcx, qword ptr [rdi]",
    "movzx eax, byte ptr [rcx + {end}]",
    "inc rcx",
    jump!(jg fill),
    "mov qword ptr [rdi], rcx",
    "ret",
}

template! {
    /// Takes room for rsi bytes, as long as some stays free. In: rdi = bytes, rsi = count, rdx = stream. Out: rdi = where they go, rsi =
    /// the bytes, rcx = rdx = rax = count. Leaves for `slow` with all registers but rax and rcx as at entry.
    pub struct TakeRoom { end: Abs32, slow: Target }
    "mov rax, qword ptr [rdx]",
    "mov rcx, rax",
    "add rcx, rsi", // carry: the count is not below the room
    jump!(jb slow),
    "mov qword ptr [rdx], rcx",
    "mov rdx, rsi",
    "mov rsi, rdi",
    "lea rdi, [rax + {end}]",
    "mov rax, rdx",
    "mov rcx, rdx",
}

template! {
    /// Takes rsi bytes, as long as more than that are there. In: rdi = destination, rsi = count, rdx = stream. Out: rdi =
    /// destination, rsi = the bytes, rcx = rdx = rax = count. Leaves for `slow` with all registers but rax and rcx as at entry.
    pub struct TakeBytes { end: Abs32, slow: Target }
    "mov rax, qword ptr [rdx]",
    "mov rcx, rax",
    "neg rcx",
    "cmp rsi, rcx",
    jump!(jae slow),
    "lea rcx, [rax + rsi]",
    "mov qword ptr [rdx], rcx",
    "mov rdx, rsi",
    "lea rsi, [rax + {end}]",
    "mov rax, rdx",
    "mov rcx, rdx",
}

template! {
    /// Copies rcx bytes from rsi to rdi and returns rax: up to 32 bytes by two overlapping moves each, up to 256 by 16, else by
    /// `rep movsb`. In: rdx = rcx. Clobbers: rcx, rdx, rsi, rdi, r8, xmm0, xmm1. Programs' code may use vector registers (R5
    /// speaks of the kernel's).
    pub struct CopyAndReturn {}
    "cmp rcx, 16",
    "jb 5f",
    "movups xmm1, xmmword ptr [rsi + rdx - 16]",
    "cmp rcx, 256",
    "ja 9f",
    "lea r8, [rdi + rdx - 16]",
    "4: movups xmm0, xmmword ptr [rsi]",
    "movups xmmword ptr [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "sub rcx, 16",
    "cmp rcx, 16",
    "ja 4b",
    "movups xmmword ptr [r8], xmm1",
    "ret",
    "5: cmp ecx, 8",
    "jb 6f",
    "mov rcx, qword ptr [rsi]",
    "mov r8, qword ptr [rsi + rdx - 8]",
    "mov qword ptr [rdi], rcx",
    "mov qword ptr [rdi + rdx - 8], r8",
    "ret",
    "6: test ecx, ecx",
    "jz 8f",
    "7: movzx ecx, byte ptr [rsi + rdx - 1]",
    "mov byte ptr [rdi + rdx - 1], cl",
    "dec rdx",
    "jnz 7b",
    "8: ret",
    "9: rep movsb",
    "ret",
}
