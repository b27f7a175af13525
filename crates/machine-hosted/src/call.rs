//! The hosted machine's fragments for synthesized call routines.

use machine::Fragment;
use synth::{Imm32, Target, template};

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
    /// A host call, from the one place of the image that the routines' calls are made from. In: its arguments; rsp = the
    /// kernel stack. Out: rax; rcx and r11 lost. Cost: 2 instructions, 2 at that place, and the host's.
    pub struct HostCall { call_number: Imm32, host_call: Target }
    "mov eax, {call_number}",
    ".byte 0xe8",
    ".long {host_call}",
}

/// A host call as a fragment.
pub fn host_call(number: u64) -> Fragment {
    let place = (&raw const crate::entry::hosted_host_call) as u64;
    Fragment {
        template: HostCall::template(),
        holes: [Imm32(number as u32).into(), Target::Address(place).into()].into(),
    }
}
