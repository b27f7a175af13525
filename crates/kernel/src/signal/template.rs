//! The quaject of a thread's way back from its handlers.

use core::mem::offset_of;

use abi::frame::{
    FLAGS_RESTORED, FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2, FP_XSTATE_MAGIC2_BYTES, FPSTATE_ALIGN, FpState,
    FpxSoftwareBytes, SigContext, UContext, USER_CS, USER_SS, XStateHeader,
};
use abi::nr;
use abi::signal::{SIGKILL, SIGSTOP, StackT, set_bit};
use machine::Tte;
use quaject::quaject;
use synth::{Abs32, Fact, Imm32, Template, jump, template};

use crate::call::fragments::Keep;
use crate::call::{CallCode, RestoreMany, ToRust};

/// Where a register lies in a frame's context.
macro_rules! at {
    ($register:ident) => {
        offset_of!(UContext, uc_mcontext) + offset_of!(SigContext, $register)
    };
}

template! {
    /// More room, behind `Keep`. Cost: 4 instructions.
    pub struct KeepMore {}
    "push rdx",
    "push r8",
    "push r9",
    "push r11",
}

template! {
    /// The end of what `KeepMore` began. Cost: 4 instructions.
    pub struct GiveMoreBack {}
    "pop r11",
    "pop r9",
    "pop r8",
    "pop rdx",
}

template! {
    /// The frame lies where the program's stack ends, in the program's half. Out: rsi = its context, rax lost. Cost: 6 instructions.
    pub struct FindFrame { user_limit: Abs32, slow: Target }
    where { KEPT = 7 * 8, BYTES = UContext::BYTES }
    "mov rsi, qword ptr [rsp + {KEPT}]",
    "cmp rsi, qword ptr [{user_limit}]",
    jump!(jae slow),
    "lea rax, [rsi + {BYTES}]",
    "cmp rax, qword ptr [{user_limit}]",
    jump!(ja slow),
}

template! {
    /// The alternate stack is the one that the frame keeps. In: rsi = context. Out: rax lost. Cost: 9 instructions.
    pub struct SameStack { stack: Abs32, stack_size: Abs32, stack_flags: Abs32, slow: Target }
    where {
        SP = offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_sp),
        SIZE = offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_size),
        FLAGS = offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_flags)
    }
    "mov rax, qword ptr [rsi + {SP}]",
    "cmp rax, qword ptr [{stack}]",
    jump!(jne slow),
    "mov rax, qword ptr [rsi + {SIZE}]",
    "cmp rax, qword ptr [{stack_size}]",
    jump!(jne slow),
    "mov eax, dword ptr [rsi + {FLAGS}]",
    "cmp eax, dword ptr [{stack_flags}]",
    jump!(jne slow),
}

template! {
    /// The program goes on in its own code, at an address that can be one, and not step by step. In: rsi = context. Out: rax lost. Cost: 9
    /// instructions.
    pub struct PlainPlace { slow: Target }
    where { CS = at!(cs), RIP = at!(rip), FLAGS = at!(eflags), CODE = USER_CS, TRAP = 0x100 }
    "movzx eax, word ptr [rsi + {CS}]",
    "or eax, 3",
    "cmp eax, {CODE}",
    jump!(jne slow),
    "mov rax, qword ptr [rsi + {RIP}]",
    "shr rax, 47",
    jump!(jne slow),
    "test dword ptr [rsi + {FLAGS}], {TRAP}",
    jump!(jne slow),
}

template! {
    /// The vector state is whole, as this machine writes it, and one that the processor takes. In: rsi = context. Out: rdi = the state,
    /// rax lost. Cost: 28 instructions.
    pub struct WholeState { user_limit: Abs32, bytes: Imm32, sized: Imm32, features: Imm32, absent: Imm32, slow: Target }
    where {
        STATE = at!(fpstate), ALIGN = FPSTATE_ALIGN - 1, MAGIC1 = FP_XSTATE_MAGIC1, MAGIC2 = FP_XSTATE_MAGIC2,
        SOFTWARE = offset_of!(FpState, sw_reserved), SIZED = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, extended_size),
        CHOSEN = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, xfeatures),
        SIZE = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, xstate_size),
        PRESENT = FpState::BYTES + offset_of!(XStateHeader, xfeatures), ZERO = FpState::BYTES + offset_of!(XStateHeader, reserved1),
        MXCSR = offset_of!(FpState, mxcsr), MARK_BYTES = FP_XSTATE_MAGIC2_BYTES
    }
    "mov rdi, qword ptr [rsi + {STATE}]",
    "test rdi, rdi",
    jump!(je slow),
    "test dil, {ALIGN}",
    jump!(jne slow),
    "cmp rdi, qword ptr [{user_limit}]",
    jump!(jae slow),
    "lea rax, [rdi + {bytes}]",
    "lea rdx, [rax + {MARK_BYTES}]",
    "cmp rdx, qword ptr [{user_limit}]",
    jump!(ja slow),
    "cmp dword ptr [rdi + {SOFTWARE}], {MAGIC1}",
    jump!(jne slow),
    "cmp dword ptr [rdi + {SIZED}], {sized}",
    jump!(jne slow),
    "cmp qword ptr [rdi + {CHOSEN}], {features}",
    jump!(jne slow),
    "cmp dword ptr [rdi + {SIZE}], {bytes}",
    jump!(jne slow),
    "cmp dword ptr [rax], {MAGIC2}",
    jump!(jne slow),
    "test qword ptr [rdi + {PRESENT}], {absent}",
    jump!(jne slow),
    "mov rax, qword ptr [rdi + {ZERO}]",
    "or rax, qword ptr [rdi + {ZERO} + 8]",
    jump!(jne slow),
    "test dword ptr [rdi + {MXCSR}], 0xffff0000",
    jump!(jne slow),
}

template! {
    /// The vector registers are the program's again. In: rdi = the state. Out: rax, rdx lost. Cost: 3 instructions.
    pub struct LoadState { features: Imm32 }
    "mov eax, {features}",
    "xor edx, edx",
    "xrstor64 [rdi]",
}

template! {
    /// The mask is the one in the frame, if that lets no signal through which waits. In: rsi = context. Out: rax, rcx, rdx lost. Cost: 9
    /// instructions.
    pub struct TakeMask { blocked: Abs32, pending: Abs32, shared: Abs32, slow: Target }
    where { MASK = offset_of!(UContext, uc_sigmask), BLOCKABLE = !(set_bit(SIGKILL) | set_bit(SIGSTOP)) as i64 }
    "mov rcx, qword ptr [rsi + {MASK}]",
    "and rcx, {BLOCKABLE}",
    "mov rdx, rcx",
    "not rdx",
    "mov rax, qword ptr [{pending}]",
    "or rax, qword ptr [{shared}]",
    "test rax, rdx",
    jump!(jne slow),
    "mov qword ptr [{blocked}], rcx",
}

template! {
    /// Where the program goes on: the five words that an interrupt pushes. In: rsi = context, r11 = flags now. Out: rax, rdx lost. Cost: 10
    /// instructions.
    pub struct PushPlace {}
    where {
        SP = at!(rsp), RIP = at!(rip), FLAGS = at!(eflags), OWN = FLAGS_RESTORED, KEPT = !FLAGS_RESTORED as i64, CODE = USER_CS,
        DATA = USER_SS
    }
    "push {DATA}",
    "push qword ptr [rsi + {SP}]",
    "mov eax, dword ptr [rsi + {FLAGS}]",
    "and eax, {OWN}",
    "mov rdx, r11",
    "and rdx, {KEPT}",
    "or rax, rdx",
    "push rax",
    "push {CODE}",
    "push qword ptr [rsi + {RIP}]",
}

template! {
    /// All registers are the program's. In: rsi = context. Cost: 15 instructions.
    pub struct LoadRegisters {}
    where {
        RAX = at!(rax), RBX = at!(rbx), RCX = at!(rcx), RDX = at!(rdx), RDI = at!(rdi), RSI = at!(rsi), RBP = at!(rbp), R8 = at!(r8),
        R9 = at!(r9), R10 = at!(r10), R11 = at!(r11), R12 = at!(r12), R13 = at!(r13), R14 = at!(r14), R15 = at!(r15)
    }
    "mov r8, qword ptr [rsi + {R8}]",
    "mov r9, qword ptr [rsi + {R9}]",
    "mov r10, qword ptr [rsi + {R10}]",
    "mov r11, qword ptr [rsi + {R11}]",
    "mov r12, qword ptr [rsi + {R12}]",
    "mov r13, qword ptr [rsi + {R13}]",
    "mov r14, qword ptr [rsi + {R14}]",
    "mov r15, qword ptr [rsi + {R15}]",
    "mov rdi, qword ptr [rsi + {RDI}]",
    "mov rbp, qword ptr [rsi + {RBP}]",
    "mov rbx, qword ptr [rsi + {RBX}]",
    "mov rdx, qword ptr [rsi + {RDX}]",
    "mov rcx, qword ptr [rsi + {RCX}]",
    "mov rax, qword ptr [rsi + {RAX}]",
    "mov rsi, qword ptr [rsi + {RSI}]",
}

template! {
    /// Behind `PushPlace`: its words go. Cost: 1 instruction.
    pub struct DropPlace {}
    "lea rsp, [rsp + 40]",
}

quaject! {
    /// Where the words are that a thread's way back from handlers reads, and what vector states this machine has.
    pub quaject Returns ("returns", made by "rt_sigreturn", at most 0 inactive)
    facts(FACTS)
    data {
        /// The signals that the thread blocks.
        pub blocked: u64,
        /// Those that wait for the thread, and for its process.
        pub pending: u64,
        pub shared: u64,
        /// Its alternate stack: address, bytes and flags (32 bits).
        pub stack: u64,
        pub stack_size: u64,
        pub stack_flags: u64,
        /// Bytes of an XSAVE image, and its features.
        pub bytes: u64,
        pub features: u64,
    }
    factors(returns) {
        let blocked = Abs32(returns.blocked);
        let pending = Abs32(returns.pending);
        let shared = Abs32(returns.shared);
        let stack = Abs32(returns.stack);
        let stack_size = Abs32(returns.stack_size);
        let stack_flags = Abs32(returns.stack_flags);
        let bytes = Imm32(returns.bytes as u32);
        let sized = Imm32(returns.bytes as u32 + FP_XSTATE_MAGIC2_BYTES as u32);
        let features = Imm32(returns.features as u32);
        let absent = Imm32(!returns.features as u32);
    }
    callouts ReturnCallouts<'a> {
        /// The thread.
        tte: &'a dyn Tte,
        /// The machine's way back to the program with all registers.
        leave: Template,
    }
    callbacks {}
    callentries ReturnCode {
        sigreturn: CallCode(nr::RT_SIGRETURN) named "signal.sigreturn" needs(tte, leave) uses(user_limit, slow, rust) {
            enter_kernel (*tte);
            paste Keep {};
            paste KeepMore {};
            paste FindFrame { user_limit, slow };
            paste_user SameStack { stack, stack_size, stack_flags, slow };
            paste_user PlainPlace { slow };
            paste_user WholeState { user_limit, bytes, sized, features, absent, slow };
            paste_user LoadState { features };
            paste_user TakeMask { blocked, pending, shared, slow };
            paste_user_late PushPlace {};
            paste_user_late LoadRegisters {};
            paste (*leave);
            begin_late;
            paste DropPlace {};
            begin_slow;
            paste GiveMoreBack {};
            paste RestoreMany {};
            paste ToRust { number: Imm32(nr::RT_SIGRETURN as u32), slow: rust };
        }
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("blocked", "signals that the thread blocks", "the thread ends, or becomes the first of its process"),
    Fact::word("pending", "signals that wait for the thread", "as blocked"),
    Fact::word("shared", "signals that wait for its process", "as blocked"),
    Fact::word("stack", "its alternate stack", "as blocked"),
    Fact::word("stack_size", "its bytes", "as blocked"),
    Fact::word("stack_flags", "its flags", "as blocked"),
    Fact::value("bytes", "size of a vector state", "never"),
    Fact::value("sized", "the same with the mark behind it", "never"),
    Fact::value("features", "parts of a vector state", "never"),
    Fact::value("absent", "what is no part of one", "never"),
];
