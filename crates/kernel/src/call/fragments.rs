//! Fragments that several quajects are made of: what a call on a file asks of its arguments. Each way through a routine says all
//! that it needs; what the way before it has already asked is taken out by the optimizer.

use synth::template;

template! {
    /// One byte is asked for, or any number. Cost: 2 instructions.
    pub struct ForOne { many: Target }
    "cmp rdx, 1",
    ".byte 0x0f, 0x85",                     // jne many
    ".long {many}",
}

template! {
    /// The buffer begins in the program's half (S-87); where it ends is seen by touching it. Cost: 2 instructions.
    pub struct UserAddress { user_limit: Abs32, slow: Target }
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
}

template! {
    /// The whole buffer lies in the program's half, however little of it is used. Out: rax lost. Cost: 5 instructions.
    pub struct UserRange { user_limit: Abs32, slow: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "cmp rax, rsi",
    ".byte 0x0f, 0x82",                     // jb slow: the sum has turned round
    ".long {slow}",
}

template! {
    /// No more bytes than this. Cost: 2 instructions.
    pub struct AtMost { most: Imm32, slow: Target }
    "cmp rdx, {most}",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
}

template! {
    /// At least one byte, and at most one more than `most`. Out: rax lost. Cost: 3 instructions.
    pub struct OneToMost { most: Imm32, slow: Target }
    "lea rax, [rdx - 1]",
    "cmp rax, {most}",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
}

template! {
    /// Nobody sleeps whom the call would have to wake. Cost: 2 instructions.
    pub struct NobodyWaits { waiting: Abs32, slow: Target }
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// Room for a copy: rdi, rsi and rcx of the program go on the stack. Cost: 3 instructions.
    pub struct Keep {}
    "push rdi",
    "push rsi",
    "push rcx",
}

template! {
    /// The end of what `Keep` began. Cost: 3 instructions.
    pub struct GiveBack {}
    "pop rcx",
    "pop rsi",
    "pop rdi",
}

template! {
    /// The count that was asked for is the result. Cost: 1 instruction.
    pub struct AllDone {}
    "mov eax, edx",
}

template! {
    /// The count for a copy by words. In: edx = bytes. Out: ecx = words. Cost: 2 instructions.
    pub struct CountWords {}
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

/// For the golden listings.
pub fn templates() -> [synth::Template; 12] {
    [
        ForOne::template(),
        UserAddress::template(),
        UserRange::template(),
        AtMost::template(),
        OneToMost::template(),
        NobodyWaits::template(),
        Keep::template(),
        GiveBack::template(),
        AllDone::template(),
        CountWords::template(),
        MoveMany::template(),
        MoveManyRax::template(),
    ]
}
