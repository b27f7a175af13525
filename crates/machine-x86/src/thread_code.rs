//! The templates of a thread's own machine code: leaving it (S-57), and the dispatch of its calls (S-83). How it takes the
//! processor is the machine's.

use core::mem::offset_of;

use synth::{Template, template};

use crate::area::THREAD_AREA_BYTES;
use crate::thread::{CALLS, TteRecord};

template! {
    /// sw_out (S-57, S-62): called by the thread itself, which has put away what it needs. The stack pointer is stored, and
    /// the segment bases, which the program may have changed by itself; then straight into the successor: there is no
    /// dispatcher. The successor's `ret` ends the call. Cost: 6 instructions.
    pub struct SwitchOut { kernel_sp: Abs32, next: Abs32, fs_base: Abs32, gs_base: Abs32 }
    "rdfsbase rax",
    "mov qword ptr [{fs_base}], rax",
    "rdgsbase rax",
    "mov qword ptr [{gs_base}], rax",
    "mov qword ptr [{kernel_sp}], rsp",
    "jmp qword ptr [{next}]",
}

template! {
    /// The thread's dispatch (S-83): limit check, table, jump. In: rax = call number. Cost: 3 instructions.
    pub struct Dispatch { calls: Abs32, slow: Target }
    where { LIMIT = CALLS }
    "cmp rax, {LIMIT}",
    "jae 73f",
    "jmp qword ptr [{calls} + rax*8]",
    "73:",
    ".byte 0xe9",
    ".long {slow}",
}

template! {
    /// Moves a call to the thread's kernel stack and to its slow end. Cost: 3 instructions.
    pub struct SlowCall { user_sp: Abs32, common: Target }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
    ".byte 0xe9",
    ".long {common}",
}

template! {
    /// fd → entry (S-83, S-89): moves to the kernel stack and jumps to the routine of the descriptor. Cost: 5 instructions.
    pub struct ByDescriptor { user_sp: Abs32, count: Imm32, entries: Abs32, slow: Target }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
    "cmp rdi, {count}",
    "jae 73f",
    "jmp qword ptr [{entries} + rdi*8]",
    "73:",
    ".byte 0xe9",
    ".long {slow}",
}

template! {
    /// call → routine, for calls whose routine all threads have: moves to the kernel stack and jumps. Cost: 3 instructions.
    pub struct ByCall { user_sp: Abs32, common_calls: Abs32 }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
    "jmp qword ptr [{common_calls} + rax*8]",
}

template! {
    /// Loads the running thread's tag into rax: its record lies at the start of the area that the stack is in. Cost: 3
    /// instructions.
    pub struct LoadTag {}
    where { AREA = THREAD_AREA_BYTES, TAG = offset_of!(TteRecord, tag) }
    "mov rax, rsp",
    "and rax, -{AREA}",
    "mov rax, qword ptr [rax + {TAG}]",
}

template! {
    /// Loads the number of the running thread's quaspace into rax. Cost: 3 instructions.
    pub struct LoadQuaspace {}
    where { AREA = THREAD_AREA_BYTES, ROOT = offset_of!(TteRecord, root) }
    "mov rax, rsp",
    "and rax, -{AREA}",
    "mov rax, qword ptr [rax + {ROOT}]",
}

template! {
    /// Moves a routine of one thread to the thread's kernel stack, where a fault may happen. In: the program's stack.
    /// Out: the stack as the dispatch by descriptor leaves it. Cost: 2 instructions.
    pub struct ToKernelStack { user_sp: Abs32 }
    "mov qword ptr [{user_sp}], rsp",
    "mov rsp, {user_sp}",
}

/// A thread's templates under the names of the routines made of them, for the golden listings.
pub fn templates() -> [(&'static str, Template); 7] {
    [
        ("thread.sw_out", SwitchOut::template()),
        ("thread.dispatch", Dispatch::template()),
        ("thread.slow_call", SlowCall::template()),
        ("thread.by_descriptor", ByDescriptor::template()),
        ("thread.by_call", ByCall::template()),
        ("thread.tag", LoadTag::template()),
        ("thread.quaspace", LoadQuaspace::template()),
    ]
}
