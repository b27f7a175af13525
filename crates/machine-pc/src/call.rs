//! The pc's fragments for synthesized call routines.

use synth::template;

template! {
    /// Lets the following instructions touch user pages (SDM vol. 3A, 4.6: AC with SMAP). `leave` restores
    /// the program's own flags, so nothing closes it again.
    pub struct OpenUser {}
    "stac",
}

template! {
    /// Ends what `OpenUser` began.
    pub struct CloseUser {}
    "clac",
}

template! {
    /// Back to the program. In: rsp as the dispatch code set it, rcx and r11 as `syscall` left them, rax = result.
    /// Cost: 2 instructions.
    pub struct Leave {}
    "pop rsp",
    "sysretq",
}

template! {
    /// Back to the program from a routine that never left its stack. Cost: 1 instruction.
    pub struct LeaveDirect {}
    "sysretq",
}

template! {
    /// Back to the program with all of its registers. In: what an interrupt pushes on top of the stack. Cost: 1 instruction.
    pub struct LeaveWhole {}
    "iretq",
}

/// The fragments, for the golden listings.
pub fn templates() -> [synth::Template; 6] {
    let (open, close) = (OpenUser::template(), CloseUser::template());
    [
        open,
        Leave::template(),
        LeaveDirect::template(),
        machine_x86::ToKernelStack::template(),
        close,
        LeaveWhole::template(),
    ]
}
