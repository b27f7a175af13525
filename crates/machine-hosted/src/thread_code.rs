//! How a thread of the hosted machine takes the processor (S-57, S-58).

use core::mem::offset_of;

use machine_x86::{Slots, THREAD_AREA_BYTES, TteRecord};
use quaject::Class;
use synth::{Abs32, Target, template};

use crate::cpu::{Cpu, cpu};
use crate::entry::hosted_change_space;

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
    /// A call whose answer is known (getpid): no stack, no table. Cost: 2 instructions.
    pub struct Constant { value: Imm32 }
    "mov eax, {value}",
    "jmp rcx",
}

/// The thread with this area and dispatch takes the processor.
pub fn switch_in(area: u64, dispatch: u64) -> SwitchIn {
    let field = |offset: usize| Abs32(area + offset as u64);
    let cpu_field = |offset: usize| Abs32(cpu() as u64 + offset as u64);
    SwitchIn {
        root: field(offset_of!(TteRecord, root)),
        kernel_sp: field(offset_of!(TteRecord, kernel_sp)),
        change_space: Target::Address((&raw const hosted_change_space) as u64),
        cpu_top: cpu_field(offset_of!(Cpu, stack_top)),
        stack_top: Abs32(area + THREAD_AREA_BYTES),
        cpu_dispatch: cpu_field(offset_of!(Cpu, slots) + offset_of!(Slots, dispatch)),
        dispatch: Abs32(dispatch),
        fs_base: field(offset_of!(TteRecord, fs_base)),
        gs_base: field(offset_of!(TteRecord, gs_base)),
    }
}

/// The classes of quajects that this machine makes.
pub fn each_class(see: &mut dyn FnMut(&'static Class)) {
    see(machine_x86::class());
}
