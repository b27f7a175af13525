//! A thread's own machine code: switching to and from it (S-57, S-58), and the dispatch of its calls (S-83).

use core::mem::offset_of;

use synth::template;

use crate::layout::THREAD_AREA_BYTES;
use crate::tte::{CALLS, TteRecord};

/// Register contract of switch code: entered by `jmp`, with no register but rsp meaningful.
pub enum Switch {}
/// Register contract of call code: entered from a call site's stub by `jmp`, registers as the program left them,
/// rcx = return address, rax = call number.
pub enum UserCall {}

template! {
    /// sw_in_mmu, then sw_in (S-57, S-58): makes this thread the running one. In: nothing; rsp is still the stack of the
    /// thread that is left. Out: the thread's stack and slots are in force. Clobbers what C calls clobber. Cost: 10
    /// instructions, 8 without the address space.
    pub struct SwitchIn { root: Abs32, change_space: Target, kernel_sp: Abs32, cpu_top: Abs32, stack_top: Abs32, cpu_dispatch: Abs32, dispatch: Abs32, fs_base: Abs32, gs_base: Abs32 }
    "mov rdi, qword ptr [{root}]",
    ".byte 0xe8",
    ".long {change_space}",
    "mov rsp, qword ptr [{kernel_sp}]",
    "mov qword ptr [{cpu_top}], {stack_top}",
    "mov qword ptr [{cpu_dispatch}], {dispatch}",
    "mov rax, qword ptr [{fs_base}]",
    "wrfsbase rax",
    "mov rax, qword ptr [{gs_base}]",
    "wrgsbase rax",
    "ret",
}
/// Bytes of the address-space part in front of `sw_in`.
pub const MMU_BYTES: u64 = 13;

template! {
    /// sw_out (S-57): called by the thread itself, C convention. Saves what the C convention keeps and jumps straight
    /// into the successor; there is no dispatcher. Cost: 14 instructions out, 7 back in.
    pub struct SwitchOut { kernel_sp: Abs32, next: Abs32, fs_base: Abs32, gs_base: Abs32 }
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "rdfsbase rax",
    "mov qword ptr [{fs_base}], rax",
    "rdgsbase rax",
    "mov qword ptr [{gs_base}], rax",
    "lea rax, [rip + 72f]",
    "push rax",
    "mov qword ptr [{kernel_sp}], rsp",
    "jmp qword ptr [{next}]",
    "72:",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
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
    /// Loads the running thread's tag into rax: its record lies at the start of the area that the stack is in. Cost: 3
    /// instructions.
    pub struct LoadTag {}
    where { AREA = THREAD_AREA_BYTES, TAG = offset_of!(TteRecord, tag) }
    "mov rax, rsp",
    "and rax, -{AREA}",
    "mov rax, qword ptr [rax + {TAG}]",
}

template! {
    /// A call whose answer is known (getpid): no stack, no table. Cost: 2 instructions.
    pub struct Constant { value: Imm32 }
    "mov eax, {value}",
    "jmp rcx",
}
