//! The hosted machine's fragments for synthesized call routines.

use machine::Fragment;
use synth::{Imm32, Target, template};

use crate::layout::{HIGH, KERNEL, STUB_BYTES, STUBS};

template! {
    /// Back to the program. In: rsp as the dispatch code set it, rcx = return address, rax = result. Cost: 2 instructions.
    pub struct Leave {}
    "pop rsp",
    "jmp rcx",
}

template! {
    /// Back to the program from a routine that never left its stack. Cost: 1 instruction.
    pub struct LeaveDirect {}
    "jmp rcx",
}

template! {
    /// Strings are gone through upwards, whatever the program's direction flag says. The program, which may not have set it where
    /// it calls a function, loses it. Cost: 1 instruction.
    pub struct Upwards {}
    "cld",
}

template! {
    /// A host call, from the one place of the image that the routines' calls are made from. In: its arguments; rsp = the
    /// kernel stack. Out: rax; rcx and r11 lost. Cost: 2 instructions, 2 at that place, and the host's.
    pub struct HostCall { call_number: Imm32, host_call: Target }
    "mov eax, {call_number}",
    ".byte 0xe8",
    ".long {host_call}",
}

template! {
    /// No byte of the program's range lies where the machine is: the host's own copies look at no limit of ours. In: rsi, rdx; the
    /// sum is below the program's limit. Out: rax and rcx lost. Cost: 3 instructions below the kernel, 23 at most.
    pub struct NotReserved { refused: Target }
    where {
        KERNEL_START = KERNEL.start as usize,
        KERNEL_END = KERNEL.end as usize,
        HIGH_START = HIGH.start as usize,
        HIGH_END = HIGH.end as usize,
        NEAR_START = STUBS[1] as usize,
        NEAR_END = (STUBS[1] + STUB_BYTES) as usize,
        FAR_START = STUBS[2] as usize,
        FAR_END = (STUBS[2] + STUB_BYTES) as usize
    }
    "lea rax, [rsi + rdx]",
    "cmp rax, {KERNEL_START}",
    "jbe 75f",
    "cmp rsi, {KERNEL_END}",
    ".byte 0x0f, 0x82",                     // jb refused
    ".long {refused}",
    "movabs rcx, {HIGH_START}",
    "cmp rax, rcx",
    "jbe 75f",
    "movabs rcx, {HIGH_END}",
    "cmp rsi, rcx",
    ".byte 0x0f, 0x82",                     // jb refused
    ".long {refused}",
    "movabs rcx, {NEAR_START}",
    "cmp rax, rcx",
    "jbe 75f",
    "movabs rcx, {NEAR_END}",
    "cmp rsi, rcx",
    ".byte 0x0f, 0x82",                     // jb refused
    ".long {refused}",
    "movabs rcx, {FAR_START}",
    "cmp rax, rcx",
    "jbe 75f",
    "movabs rcx, {FAR_END}",
    "cmp rsi, rcx",
    ".byte 0x0f, 0x82",                     // jb refused
    ".long {refused}",
    "75:",
}

/// The check of a program's range as a fragment.
pub fn not_reserved(refused: Target) -> Fragment {
    Fragment { template: NotReserved::template(), holes: [refused.into()].into() }
}

/// A host call as a fragment.
pub fn host_call(number: u64) -> Fragment {
    let place = (&raw const crate::entry::hosted_host_call) as u64;
    Fragment {
        template: HostCall::template(),
        holes: [Imm32(number as u32).into(), Target::Address(place).into()].into(),
    }
}
