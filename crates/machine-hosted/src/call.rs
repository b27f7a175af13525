//! The hosted machine's fragments for synthesized call routines.

use synth::template;

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
