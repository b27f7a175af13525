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

template! {
    /// Moves a routine of one thread to the thread's kernel stack, where a fault may happen. In: the program's stack.
    /// Out: the stack as the dispatch by descriptor leaves it. Cost: 2 instructions.
    pub struct ToKernelStack { user_sp: Abs32 }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
}
