//! The operators as machine code. A value is in rax; what waits is on the stack; rbp is where the stack was at the start.

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use alloc::vec::Vec;

use synth::{Template, template};

template! {
    /// Begins a routine. C's calling convention, no arguments.
    pub struct Enter {}
    "push rbp",
    "mov rbp, rsp",
}

template! {
    /// Ends a routine. Out: rax = value, rdx = 0.
    pub struct Finish {}
    "xor edx, edx",
    "leave",
    "ret",
}

template! {
    /// Ends a routine early. Out: rdx = why.
    pub struct Give { why: Imm32 }
    "mov edx, {why}",
    "leave",
    "ret",
}

template! {
    /// Out: rax.
    pub struct Large { low: Imm32, high: Imm32 }
    "mov eax, {high}",
    "mov ecx, {low}",
    "shl rax, 32",
    "or rax, rcx",
}

template! {
    /// Out: rax. For values that are sign-extended 32-bit numbers.
    pub struct Small { value: Abs32 }
    "mov rax, {value}",
}

template! {
    pub struct Push {}
    "push rax",
}

template! {
    /// The right operand goes to rcx, the left one comes back to rax.
    pub struct PopLeft {}
    "mov rcx, rax",
    "pop rax",
}

template! {
    pub struct Negate {}
    "neg rax",
}

template! {
    pub struct Complement {}
    "not rax",
}

template! {
    pub struct Not {}
    "test rax, rax",
    "sete al",
    "movzx eax, al",
}

template! {
    /// Leaves through `fault` if rax is outside of `bytes` bytes from `low` on. Clobbers rcx.
    pub struct Reach { low: Abs32, bytes: Imm32, fault: Target }
    "mov rcx, rax",
    "sub rcx, {low}",
    "cmp rcx, {bytes}",
    ".byte 0x0f, 0x83",
    ".long {fault}",
}

template! {
    pub struct Add {}
    "add rax, rcx",
}

template! {
    pub struct Subtract {}
    "sub rax, rcx",
}

template! {
    pub struct Multiply {}
    "imul rax, rcx",
}

template! {
    /// rax = rax / rcx, rdx = the remainder; signed, rounded towards zero; by -1 without the processor's overflow.
    pub struct Divide { zero: Target }
    "test rcx, rcx",
    ".byte 0x0f, 0x84",
    ".long {zero}",
    "xor edx, edx",
    "cmp rcx, -1",
    "jne 5f",
    "neg rax",
    "jmp 6f",
    "5: cqo",
    "idiv rcx",
    "6:",
}

template! {
    pub struct Remainder {}
    "mov rax, rdx",
}

template! {
    pub struct BitAnd {}
    "and rax, rcx",
}

template! {
    pub struct BitOr {}
    "or rax, rcx",
}

template! {
    pub struct BitXor {}
    "xor rax, rcx",
}

template! {
    /// By the lowest six bits of rcx.
    pub struct ShiftLeft {}
    "shl rax, cl",
}

template! {
    pub struct ShiftRight {}
    "sar rax, cl",
}

template! {
    pub struct Equal {}
    "cmp rax, rcx",
    "sete al",
    "movzx eax, al",
}

template! {
    pub struct Less {}
    "cmp rax, rcx",
    "setl al",
    "movzx eax, al",
}

template! {
    pub struct LessEqual {}
    "cmp rax, rcx",
    "setle al",
    "movzx eax, al",
}

template! {
    /// Skips this many bytes if the value is 0.
    pub struct SkipIfZero { bytes: Imm32 }
    "test rax, rax",
    ".byte 0x0f, 0x84",
    ".long {bytes}",
}

template! {
    pub struct SkipIfNotZero { bytes: Imm32 }
    "test rax, rax",
    ".byte 0x0f, 0x85",
    ".long {bytes}",
}

template! {
    pub struct Skip { bytes: Imm32 }
    ".byte 0xe9",
    ".long {bytes}",
}

template! {
    pub struct CutU8 {}
    "movzx eax, al",
}

template! {
    pub struct CutI8 {}
    "movsx rax, al",
}

template! {
    pub struct CutU16 {}
    "movzx eax, ax",
}

template! {
    pub struct CutI16 {}
    "movsx rax, ax",
}

template! {
    pub struct CutU32 {}
    "mov eax, eax",
}

template! {
    pub struct CutI32 {}
    "movsxd rax, eax",
}

template! {
    /// In: rax = address. May fault.
    pub struct LoadU8 {}
    "movzx eax, byte ptr [rax]",
}

template! {
    pub struct LoadU16 {}
    "movzx eax, word ptr [rax]",
}

template! {
    pub struct LoadU32 {}
    "mov eax, dword ptr [rax]",
}

template! {
    pub struct LoadWord {}
    "mov rax, qword ptr [rax]",
}

template! {
    pub struct StoreVariable { word: Abs32 }
    "mov qword ptr [{word}], rax",
}

template! {
    /// Takes back the word that made the stack even for a call.
    pub struct Unalign {}
    "add rsp, 8",
}

template! {
    pub struct PopRdi {}
    "pop rdi",
}

template! {
    pub struct PopRsi {}
    "pop rsi",
}

template! {
    pub struct PopRdx {}
    "pop rdx",
}

template! {
    pub struct PopRcx {}
    "pop rcx",
}

template! {
    pub struct PopR8 {}
    "pop r8",
}

template! {
    pub struct PopR9 {}
    "pop r9",
}

template! {
    /// In: rax = the function's address, the arguments in C's registers. Out: rax.
    pub struct Call {}
    "call rax",
}

/// Every template, for the golden listings.
pub fn all() -> Vec<Template> {
    [
        Enter::template(),
        Finish::template(),
        Give::template(),
        Large::template(),
        Small::template(),
        Push::template(),
        PopLeft::template(),
        Negate::template(),
        Complement::template(),
        Not::template(),
        Add::template(),
        Subtract::template(),
        Multiply::template(),
        Divide::template(),
        Remainder::template(),
        BitAnd::template(),
        BitOr::template(),
        BitXor::template(),
        ShiftLeft::template(),
        ShiftRight::template(),
        Equal::template(),
        Less::template(),
        LessEqual::template(),
        SkipIfZero::template(),
        SkipIfNotZero::template(),
        Skip::template(),
        CutU8::template(),
        CutI8::template(),
        CutU16::template(),
        CutI16::template(),
        CutU32::template(),
        CutI32::template(),
        LoadU8::template(),
        LoadU16::template(),
        LoadU32::template(),
        LoadWord::template(),
        StoreVariable::template(),
        Unalign::template(),
        PopRdi::template(),
        PopRsi::template(),
        PopRdx::template(),
        PopRcx::template(),
        PopR8::template(),
        PopR9::template(),
        Call::template(),
        Reach::template(),
    ]
    .into()
}
