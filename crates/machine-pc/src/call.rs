//! The pc's fragments for synthesized call routines.

use synth::template;

template! {
    /// Lets the following instructions touch user pages (SDM vol. 3A, 4.6: AC with SMAP). `leave` restores
    /// the program's own flags, so nothing closes it again.
    pub struct OpenUser {}
    "stac",
}

template! {
    /// Back to the program. In: rsp as the dispatch code set it, rcx and r11 as `syscall` left them, rax = result.
    /// Cost: 2 instructions.
    pub struct Leave {}
    "pop rsp",
    "sysretq",
}

template! {
    /// Moves a routine of one thread to the thread's kernel stack, where a fault may happen. In: the program's stack.
    /// Out: the stack as the dispatch by descriptor leaves it. Cost: 2 instructions.
    pub struct ToKernelStack { user_sp: Abs32 }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
}

template! {
    /// Back to the program from a routine that never left its stack. Cost: 1 instruction.
    pub struct LeaveDirect {}
    "sysretq",
}

/// The fragments, for the golden listings.
pub fn templates() -> [synth::Template; 4] {
    [OpenUser::template(), Leave::template(), LeaveDirect::template(), ToKernelStack::template()]
}
