//! How a thread of the pc takes the processor (S-57, S-58), and the entry of calls.

use core::mem::offset_of;

use machine_x86::{Slots, THREAD_AREA_BYTES, TteRecord, UserCall};
use quaject::{Class, Quaject, quaject};
use synth::{Abs32, Template, template};

use crate::cpu::{Cpu, Tss};

template! {
    /// sw_in_mmu, then sw_in (S-57, S-58): makes this thread the running one. In: nothing.
    /// Out: the thread's stack and slots are in force. Clobbers rax. Cost: 10 instructions, 8 without the
    /// address space.
    pub struct SwitchIn { root: Abs32, kernel_sp: Abs32, rsp0: Abs32, stack_top: Abs32, cpu_dispatch: Abs32, dispatch: Abs32, fs_base: Abs32, gs_base: Abs32 }
    "mov rax, qword ptr [{root}]",
    "mov cr3, rax",
    "mov rsp, qword ptr [{kernel_sp}]",
    "mov qword ptr [{rsp0}], {stack_top}",
    "mov qword ptr [{cpu_dispatch}], {dispatch}",
    "mov rax, qword ptr [{fs_base}]",
    "wrfsbase rax",
    "mov rax, qword ptr [{gs_base}]",
    "wrgsbase rax",
    "ret",
}
/// Bytes of the address-space part in front of `sw_in`.
pub const MMU_BYTES: u64 = 11;

template! {
    /// A call whose answer is known (getpid): no stack, no table. Cost: 2 instructions.
    pub struct Constant { value: Imm32 }
    "mov eax, {value}",
    "sysretq",
}

template! {
    /// What LSTAR points to: one jump through the processor's slot to the running thread's dispatch.
    pub struct Entry { dispatch: Abs32 }
    "jmp qword ptr [{dispatch}]",
}

quaject! {
    /// The processor as programs enter it.
    pub quaject Processor ("processor", made by "boot", at most 0 inactive)
    data {
        /// Address of its slot for the running thread's dispatch.
        pub dispatch: u64,
    }
    factors(processor) {
        let dispatch = Abs32(processor.dispatch);
    }
    callouts ProcessorCallouts {}
    callbacks {}
    callentries ProcessorCode {
        entry: UserCall(0) named "cpu.entry" uses() {
            paste Entry { dispatch };
        }
    }
}

/// The classes of quajects that this machine makes.
pub fn each_class(see: &mut dyn FnMut(&'static Class)) {
    see(Processor::class());
    see(machine_x86::class());
    see(machine_x86::Handover::class());
}

/// The thread with this area and dispatch takes the processor.
pub fn switch_in(area: u64, dispatch: u64, cpu: *mut Cpu) -> SwitchIn {
    let field = |offset: usize| Abs32(area + offset as u64);
    let cpu_field = |offset: usize| Abs32(cpu as u64 + offset as u64);
    SwitchIn {
        root: field(offset_of!(TteRecord, root)),
        kernel_sp: field(offset_of!(TteRecord, kernel_sp)),
        rsp0: cpu_field(offset_of!(Cpu, tss) + offset_of!(Tss, rsp0)),
        stack_top: Abs32(area + THREAD_AREA_BYTES),
        cpu_dispatch: cpu_field(offset_of!(Cpu, slots) + offset_of!(Slots, dispatch)),
        dispatch: Abs32(dispatch),
        fs_base: field(offset_of!(TteRecord, fs_base)),
        gs_base: field(offset_of!(TteRecord, gs_base)),
    }
}

/// A thread's templates under the names of the routines made of them, for the golden listings.
pub fn templates() -> [(&'static str, Template); 10] {
    let [out, dispatch, slow, by_descriptor, by_call, tag, quaspace] = machine_x86::templates();
    let sw_in = ("thread.sw_in", SwitchIn::template());
    let (constant, entry) = (("thread.constant", Constant::template()), ("cpu.entry", Entry::template()));
    [sw_in, out, dispatch, slow, by_descriptor, by_call, constant, tag, quaspace, entry]
}
