//! The code of nodes, copies and compares.

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use synth::{jump, template};

template! {
    /// A node's answer to "who has so many bytes": one of its children, or itself. It falls or jumps from node to node with
    /// no load and no indirect jump. In: edi = bytes, not more than this node's; rax = the node above, 0 at the root. Out:
    /// eax = the node, ecx = the one above. Cost: 7 instructions a level.
    pub struct Fit { node: Imm32, first_bytes: Imm32, first: Target, second_bytes: Imm32, second: Target }
    "mov ecx, eax",
    "mov eax, {node}",
    "cmp edi, {first_bytes}",
    jump!(jbe first),
    "cmp edi, {second_bytes}",
    jump!(jbe second),
    "ret",
}

template! {
    /// A node's answer to "who is before and behind this address". In: edi = address, rax = rdx = 0 at the root. Out: eax =
    /// the node before, edx = the one behind. Cost: 4 instructions a level.
    pub struct Around { node: Imm32, address: Imm32, left: Target, right: Target }
    "cmp edi, {address}",
    "ja 5f",
    "mov edx, {node}",
    jump!(jmp left),
    "5: mov eax, {node}",
    jump!(jmp right),
}

template! {
    /// Where the tree ends.
    pub struct End {}
    "ret",
}

template! {
    /// Moves 16 bytes at `at`. In: rdi = to, rsi = from. Clobbers xmm0. Programs' code may use vector registers (R5 speaks of
    /// the kernel's).
    pub struct Move16 { at: Imm32 }
    "movups xmm0, xmmword ptr [rsi + {at}]",
    "movups xmmword ptr [rdi + {at}], xmm0",
}

template! {
    /// As [`Move16`], where both are aligned for 16 bytes.
    pub struct MoveAligned16 { at: Imm32 }
    "movaps xmm0, xmmword ptr [rsi + {at}]",
    "movaps xmmword ptr [rdi + {at}], xmm0",
}

template! {
    pub struct Move8 { at: Imm32 }
    "mov rax, qword ptr [rsi + {at}]",
    "mov qword ptr [rdi + {at}], rax",
}

template! {
    pub struct Move4 { at: Imm32 }
    "mov eax, dword ptr [rsi + {at}]",
    "mov dword ptr [rdi + {at}], eax",
}

template! {
    pub struct Move1 { at: Imm32 }
    "movzx eax, byte ptr [rsi + {at}]",
    "mov byte ptr [rdi + {at}], al",
}

template! {
    /// In: rdi = to, rsi = from. Clobbers rcx.
    pub struct MoveMany { bytes: Imm32 }
    "mov ecx, {bytes}",
    "rep movsb",
}

template! {
    pub struct Return {}
    "ret",
}

template! {
    /// Leaves when the text does not have this length. In: rsi = length.
    pub struct SameLength { bytes: Imm32, other: Target }
    "cmp rsi, {bytes}",
    jump!(jne other),
}

template! {
    /// In: rdi = text. Clobbers rax, rcx.
    pub struct Same8 { at: Imm32, low: Imm32, high: Imm32, other: Target }
    "mov eax, {low}",
    "mov ecx, {high}",
    "shl rcx, 32",
    "or rax, rcx",
    "cmp qword ptr [rdi + {at}], rax",
    jump!(jne other),
}

template! {
    pub struct Same4 { at: Imm32, word: Imm32, other: Target }
    "cmp dword ptr [rdi + {at}], {word}",
    jump!(jne other),
}

template! {
    pub struct Same1 { at: Imm32, byte: Imm32, other: Target }
    "movzx eax, byte ptr [rdi + {at}]",
    "cmp eax, {byte}",
    jump!(jne other),
}

template! {
    /// Begins a comparison of 16 bytes with those at `constant`. Out: xmm0 = 0xFF where they agree.
    pub struct Same16 { at: Imm32, constant: Abs32 }
    "movups xmm0, xmmword ptr [rdi + {at}]",
    "pcmpeqb xmm0, xmmword ptr [{constant}]",
}

template! {
    /// Goes on with another 16 bytes. Clobbers xmm1.
    pub struct AndSame16 { at: Imm32, constant: Abs32 }
    "movups xmm1, xmmword ptr [rdi + {at}]",
    "pcmpeqb xmm1, xmmword ptr [{constant}]",
    "pand xmm0, xmm1",
}

template! {
    /// Ends it. Clobbers rax.
    pub struct AllSame { other: Target }
    "pmovmskb eax, xmm0",
    "cmp eax, 0xffff",
    jump!(jne other),
}

template! {
    pub struct Yes {}
    "mov eax, 1",
    "ret",
}

template! {
    pub struct No {}
    "xor eax, eax",
    "ret",
}
