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

template! {
    /// Moves edx bytes from rsi to rdi, by how many they are (ADR 31): whole words from 40 bytes on as one run; 2 to 7 bytes
    /// singly; 8 to 32 by two or four times two moves that overlap in the middle; others as a run with the last word moved
    /// first. At most 64 KiB. Out: rcx, rsi, rdi lost. A run of words takes five instructions and one a word.
    pub struct MoveSorted {}
    "lea ecx, [rdx - 40]",
    "ror ecx, 3",                           // above the limit: less than 40, or no whole words
    "cmp ecx, 8187",
    "jbe 77f",
    "cmp edx, 32",
    "ja 76f",
    "cmp edx, 8",
    "jb 75f",
    "mov rcx, qword ptr [rsi]",
    "mov qword ptr [rdi], rcx",
    "cmp edx, 16",
    "jbe 74f",
    "mov rcx, qword ptr [rsi + 8]",
    "mov qword ptr [rdi + 8], rcx",
    "mov rcx, qword ptr [rsi + rdx - 16]",
    "mov qword ptr [rdi + rdx - 16], rcx",
    "74:",
    "mov rcx, qword ptr [rsi + rdx - 8]",
    "mov qword ptr [rdi + rdx - 8], rcx",
    "jmp 79f",
    "75:",
    "mov ecx, edx",
    "rep movsb",
    "jmp 79f",
    "76:",
    "mov rcx, qword ptr [rsi + rdx - 8]",
    "mov qword ptr [rdi + rdx - 8], rcx",
    "mov ecx, edx",
    "shr ecx, 3",
    "jmp 78f",
    "77:",
    "add ecx, 5",
    "78:",
    "rep movsq",
    "79:",
}

template! {
    /// The same of eax bytes.
    pub struct MoveSortedRax {}
    "lea ecx, [rax - 40]",
    "ror ecx, 3",
    "cmp ecx, 8187",
    "jbe 77f",
    "cmp eax, 32",
    "ja 76f",
    "cmp eax, 8",
    "jb 75f",
    "mov rcx, qword ptr [rsi]",
    "mov qword ptr [rdi], rcx",
    "cmp eax, 16",
    "jbe 74f",
    "mov rcx, qword ptr [rsi + 8]",
    "mov qword ptr [rdi + 8], rcx",
    "mov rcx, qword ptr [rsi + rax - 16]",
    "mov qword ptr [rdi + rax - 16], rcx",
    "74:",
    "mov rcx, qword ptr [rsi + rax - 8]",
    "mov qword ptr [rdi + rax - 8], rcx",
    "jmp 79f",
    "75:",
    "mov ecx, eax",
    "rep movsb",
    "jmp 79f",
    "76:",
    "mov rcx, qword ptr [rsi + rax - 8]",
    "mov qword ptr [rdi + rax - 8], rcx",
    "mov ecx, eax",
    "shr ecx, 3",
    "jmp 78f",
    "77:",
    "add ecx, 5",
    "78:",
    "rep movsq",
    "79:",
}
