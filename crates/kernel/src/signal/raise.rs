//! A signal that a thread sends to itself and handles: the call ends in the handler, and Rust never runs.
//!
//! The usual case alone: a standard signal that is not blocked and has a handler of its own, nothing else waits, there is no alternate
//! stack, and the program is in no restartable sequence. The frame is written where it is to lie, and only when it stands the mask
//! changes; a fault before that is Rust's, which begins anew.

use core::mem::offset_of;

use abi::frame::{
    FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2, FP_XSTATE_MAGIC2_BYTES, FPSTATE_ALIGN, FRAME_BYTES, FRAME_RESTORER,
    FRAME_SIGINFO, FRAME_UCONTEXT, FpState, FpxSoftwareBytes, RED_ZONE_BYTES, SigContext, UC_FP_XSTATE,
    UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS, UContext, USER_CS, USER_SS, XStateHeader,
};
use abi::nr;
use abi::siginfo::SI_TKILL;
use abi::signal::{SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTORER, SA_SIGINFO, SIGCONT, SIGTTOU, SigAction, StackT};
use machine::Tte;
use quaject::{fragments, quaject};
use synth::{Abs32, Fact, Imm32, Target, Template, jump, template};

use super::template::{GiveMoreBack, KeepMore};
use crate::call::fragments::Keep;
use crate::call::{CallCode, CallRoutine, RestoreMany, ToRust};

/// The first bytes of a vector state in which nothing is present: what a handler starts with.
#[repr(C, align(64))]
pub struct InitialState([u32; 144]);

impl InitialState {
    pub const fn new() -> InitialState {
        let mut words = [0; 144];
        words[0] = 0x037F;
        words[offset_of!(FpState, mxcsr) / 4] = 0x1F80;
        InitialState(words)
    }
}

impl Default for InitialState {
    fn default() -> InitialState {
        InitialState::new()
    }
}

/// Where a register lies in a frame's context, from the frame on.
macro_rules! at {
    ($register:ident) => {
        FRAME_UCONTEXT as usize + offset_of!(UContext, uc_mcontext) + offset_of!(SigContext, $register)
    };
}

/// Where the words are that `Keep` and `KeepMore` have put away, and the program's stack pointer.
const R11: usize = 0;
const R9: usize = 8;
const R8: usize = 16;
const RDX: usize = 24;
const RCX: usize = 32;
const RSI: usize = 40;
const RDI: usize = 48;
const RSP: usize = 56;

template! {
    /// The process that is named is the thread's own, and it has no other. Cost: 4 instructions.
    pub struct ToOwnProcess { pid: Imm32, threads: Abs32, slow: Target }
    "cmp edi, {pid}",
    jump!(jne slow),
    "cmp dword ptr [{threads}], 1",
    jump!(jne slow),
}

template! {
    /// The thread that is named is the thread itself. Cost: 4 instructions.
    pub struct ToOwnThread { pid: Imm32, tid: Imm32, slow: Target }
    "cmp edi, {pid}",
    jump!(jne slow),
    "cmp esi, {tid}",
    jump!(jne slow),
}

template! {
    /// The second argument is the signal. Out: ecx. Cost: 1 instruction.
    pub struct SecondIsSignal {}
    "mov ecx, esi",
}

template! {
    /// The third argument is the signal. Out: ecx. Cost: 1 instruction.
    pub struct ThirdIsSignal {}
    "mov ecx, edx",
}

template! {
    /// A standard signal, and none that stops or continues. In: ecx = signal. Out: rcx = its number from 0 on; rax lost. Cost: 6
    /// instructions.
    pub struct StandardSignal { slow: Target }
    where { FIRST = SIGCONT - 1, COUNT = SIGTTOU - SIGCONT }
    "dec ecx",
    "cmp ecx, 30",
    jump!(ja slow),
    "lea eax, [rcx - {FIRST}]",
    "cmp eax, {COUNT}",
    jump!(jbe slow),
}

template! {
    /// Nothing waits, nobody waits for signals, the signal is not blocked, there is no alternate stack. In: rcx = number. Out: rax, rdx
    /// lost. Cost: 12 instructions.
    pub struct NothingWaits {
        pending: Abs32, shared: Abs32, hearers: Abs32, blocked: Abs32, stack_size: Abs32, stack_flags: Abs32, slow: Target,
    }
    "mov rax, qword ptr [{pending}]",
    "or rax, qword ptr [{shared}]",
    "or rax, qword ptr [{hearers}]",
    "or rax, qword ptr [{stack_size}]",
    jump!(jne slow),
    "cmp dword ptr [{stack_flags}], 2",
    jump!(ja slow),
    "mov rdx, qword ptr [{blocked}]",
    "bt rdx, rcx",
    jump!(jb slow),
    "test r11d, 0x100",                     // step by step
    jump!(jne slow),
}

template! {
    /// There is a handler, with a way back, that runs on this stack and stays. In: rcx = number. Out: rdi = the action, r9 = its flags; rax
    /// lost. Cost: 14 instructions.
    pub struct OwnHandler { actions: Abs32, slow: Target }
    where {
        HANDLER = offset_of!(SigAction, sa_handler), FLAGS = offset_of!(SigAction, sa_flags), NEEDS = SA_RESTORER,
        REFUSES = (SA_ONSTACK | SA_RESETHAND) as u32, SHIFT = size_of::<SigAction>().ilog2()
    }
    "mov rdi, rcx",
    "shl rdi, {SHIFT}",
    "add rdi, {actions}",
    "mov rax, qword ptr [rdi + {HANDLER}]",
    "cmp rax, 1",                           // SIG_DFL, SIG_IGN
    jump!(jbe slow),
    "shr rax, 47",
    jump!(jne slow),
    "mov r9, qword ptr [rdi + {FLAGS}]",
    "test r9d, {NEEDS}",
    jump!(je slow),
    "mov eax, r9d",
    "and eax, {REFUSES}",
    jump!(jne slow),
}

template! {
    /// The program is in no restartable sequence. Out: rax lost. Cost: 3 instructions.
    pub struct NoSequence { sequence: Abs32, slow: Target }
    "mov rax, qword ptr [{sequence}]",
    "cmp qword ptr [rax], 0",
    jump!(jne slow),
}

template! {
    /// The frame's place on the program's stack. Out: rsi = the frame, rdx = vector state, r8 = the program's stack pointer. Cost: 12
    /// instructions.
    pub struct PlaceFrame { user_limit: Abs32, sized: Imm32, slow: Target }
    where {
        KEPT = RSP, RED = RED_ZONE_BYTES, ALIGN = FPSTATE_ALIGN, FRAME = FRAME_BYTES
    }
    "mov r8, qword ptr [rsp + {KEPT}]",
    "cmp r8, qword ptr [{user_limit}]",
    jump!(ja slow),
    "lea rdx, [r8 - {RED}]",
    "sub rdx, {sized}",
    jump!(jb slow),
    "and rdx, -{ALIGN}",
    "lea rsi, [rdx - {FRAME}]",
    "and rsi, -16",
    "sub rsi, 8",
    "cmp rsi, qword ptr [{user_limit}]",
    jump!(jae slow),
}

template! {
    /// The interrupted program: the call is done, with result 0. In: rsi = frame, rdi = action, rdx = vector state, r8 = stack
    /// pointer. Out: rax lost. Cost: 53 instructions.
    pub struct WriteContext { blocked: Abs32, stack_flags: Abs32, trapno: Abs32, trap_error: Abs32, trap_address: Abs32 }
    where {
        GIVEN = offset_of!(SigAction, sa_restorer), BACK = FRAME_RESTORER,
        UC_FLAGS = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_flags),
        HAS = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS, LINK = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_link),
        SS_SP = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_sp),
        SS_FLAGS = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_flags),
        SS_SIZE = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_stack) + offset_of!(StackT, ss_size),
        MASK = FRAME_UCONTEXT as usize + offset_of!(UContext, uc_sigmask), OLD = at!(oldmask), STATE = at!(fpstate), REST = at!(reserved1),
        A = at!(rax), B = at!(rbx), C = at!(rcx), D = at!(rdx), DI = at!(rdi), SI = at!(rsi), BP = at!(rbp), SP = at!(rsp), IP = at!(rip),
        FLAGS = at!(eflags), R_8 = at!(r8), R_9 = at!(r9), R_10 = at!(r10), R_11 = at!(r11), R_12 = at!(r12), R_13 = at!(r13),
        R_14 = at!(r14), R_15 = at!(r15), SELECTORS = at!(cs), CODE = USER_CS, DATA = (USER_SS as u32) << 16, NUMBER = at!(trapno),
        ERROR = at!(err), ADDRESS = at!(cr2), KEPT_R9 = R9, KEPT_R8 = R8, KEPT_DX = RDX, KEPT_CX = RCX, KEPT_SI = RSI, KEPT_DI = RDI
    }
    "mov rax, qword ptr [rdi + {GIVEN}]",
    "mov qword ptr [rsi + {BACK}], rax",
    "mov qword ptr [rsi + {UC_FLAGS}], {HAS}",
    "mov eax, dword ptr [{stack_flags}]",
    "mov qword ptr [rsi + {SS_FLAGS}], rax",
    "mov qword ptr [rsi + {R_10}], r10",
    "mov qword ptr [rsi + {R_11}], r11",
    "mov qword ptr [rsi + {FLAGS}], r11",
    "mov qword ptr [rsi + {R_12}], r12",
    "mov qword ptr [rsi + {R_13}], r13",
    "mov qword ptr [rsi + {R_14}], r14",
    "mov qword ptr [rsi + {R_15}], r15",
    "mov qword ptr [rsi + {BP}], rbp",
    "mov qword ptr [rsi + {B}], rbx",
    "mov qword ptr [rsi + {SP}], r8",
    "mov qword ptr [rsi + {STATE}], rdx",
    "mov rax, qword ptr [rsp + {KEPT_R8}]",
    "mov qword ptr [rsi + {R_8}], rax",
    "mov rax, qword ptr [rsp + {KEPT_R9}]",
    "mov qword ptr [rsi + {R_9}], rax",
    "mov rax, qword ptr [rsp + {KEPT_DI}]",
    "mov qword ptr [rsi + {DI}], rax",
    "mov rax, qword ptr [rsp + {KEPT_SI}]",
    "mov qword ptr [rsi + {SI}], rax",
    "mov rax, qword ptr [rsp + {KEPT_DX}]",
    "mov qword ptr [rsi + {D}], rax",
    "mov rax, qword ptr [rsp + {KEPT_CX}]",
    "mov qword ptr [rsi + {C}], rax",
    "mov qword ptr [rsi + {IP}], rax",
    "mov dword ptr [rsi + {SELECTORS}], {CODE}",
    "mov dword ptr [rsi + {SELECTORS} + 4], {DATA}",
    "mov rax, qword ptr [{trap_error}]",
    "mov qword ptr [rsi + {ERROR}], rax",
    "mov rax, qword ptr [{trapno}]",
    "mov qword ptr [rsi + {NUMBER}], rax",
    "mov rax, qword ptr [{trap_address}]",
    "mov qword ptr [rsi + {ADDRESS}], rax",
    "mov rax, qword ptr [{blocked}]",
    "mov qword ptr [rsi + {MASK}], rax",
    "mov qword ptr [rsi + {OLD}], rax",
    "xor eax, eax",
    "mov qword ptr [rsi + {A}], rax",
    "mov qword ptr [rsi + {LINK}], rax",
    "mov qword ptr [rsi + {SS_SP}], rax",
    "mov qword ptr [rsi + {SS_SIZE}], rax",
    "mov qword ptr [rsi + {REST}], rax",
    "mov qword ptr [rsi + {REST} + 8], rax",
    "mov qword ptr [rsi + {REST} + 16], rax",
    "mov qword ptr [rsi + {REST} + 24], rax",
    "mov qword ptr [rsi + {REST} + 32], rax",
    "mov qword ptr [rsi + {REST} + 40], rax",
    "mov qword ptr [rsi + {REST} + 48], rax",
    "mov qword ptr [rsi + {REST} + 56], rax",
}

template! {
    /// Who sent the signal, if the handler wants to know. In: rsi = frame, rcx = number, r9 = flags, rax = 0. Out: rax lost. Cost: 23
    /// instructions, or 2.
    pub struct WriteDetails { code: Imm32, pid: Imm32, user: Abs32 }
    where { WANTS = SA_SIGINFO, INFO = FRAME_SIGINFO }
    "test r9d, {WANTS}",
    "jz 71f",
    "mov qword ptr [rsi + {INFO} + 24], rax",
    "mov qword ptr [rsi + {INFO} + 32], rax",
    "mov qword ptr [rsi + {INFO} + 40], rax",
    "mov qword ptr [rsi + {INFO} + 48], rax",
    "mov qword ptr [rsi + {INFO} + 56], rax",
    "mov qword ptr [rsi + {INFO} + 64], rax",
    "mov qword ptr [rsi + {INFO} + 72], rax",
    "mov qword ptr [rsi + {INFO} + 80], rax",
    "mov qword ptr [rsi + {INFO} + 88], rax",
    "mov qword ptr [rsi + {INFO} + 96], rax",
    "mov qword ptr [rsi + {INFO} + 104], rax",
    "mov qword ptr [rsi + {INFO} + 112], rax",
    "mov qword ptr [rsi + {INFO} + 120], rax",
    "mov dword ptr [rsi + {INFO} + 4], eax",
    "mov dword ptr [rsi + {INFO} + 12], eax",
    "lea eax, [rcx + 1]",
    "mov dword ptr [rsi + {INFO}], eax",
    "mov dword ptr [rsi + {INFO} + 8], {code}",
    "mov dword ptr [rsi + {INFO} + 16], {pid}",
    "mov eax, dword ptr [{user}]",
    "mov dword ptr [rsi + {INFO} + 20], eax",
    "71:",
}

template! {
    /// The vector state. In: rsi = frame, rdx = where it goes. Out: rdx = 0, rax, r8 lost. Cost: 21 instructions.
    pub struct WriteState { bytes: Imm32, sized: Imm32, features: Imm32 }
    where {
        MAGIC1 = FP_XSTATE_MAGIC1, MAGIC2 = FP_XSTATE_MAGIC2, SOFTWARE = offset_of!(FpState, sw_reserved),
        SIZED = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, extended_size),
        CHOSEN = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, xfeatures),
        SIZE = offset_of!(FpState, sw_reserved) + offset_of!(FpxSoftwareBytes, xstate_size),
        HEADER = FpState::BYTES + offset_of!(XStateHeader, xfeatures)
    }
    "mov r8, rdx",
    "xor edx, edx",
    "mov dword ptr [r8 + {SOFTWARE}], {MAGIC1}",
    "mov dword ptr [r8 + {SIZED}], {sized}",
    "mov qword ptr [r8 + {CHOSEN}], {features}",
    "mov qword ptr [r8 + {SIZE}], {bytes}",
    "mov qword ptr [r8 + {SIZE} + 8], rdx",
    "mov qword ptr [r8 + {SIZE} + 16], rdx",
    "mov qword ptr [r8 + {SIZE} + 24], rdx",
    "mov qword ptr [r8 + {HEADER}], rdx",
    "mov qword ptr [r8 + {HEADER} + 8], rdx",
    "mov qword ptr [r8 + {HEADER} + 16], rdx",
    "mov qword ptr [r8 + {HEADER} + 24], rdx",
    "mov qword ptr [r8 + {HEADER} + 32], rdx",
    "mov qword ptr [r8 + {HEADER} + 40], rdx",
    "mov qword ptr [r8 + {HEADER} + 48], rdx",
    "mov qword ptr [r8 + {HEADER} + 56], rdx",
    "mov dword ptr [r8 + {bytes}], {MAGIC2}",
    "mov eax, {features}",
    "xsave64 [r8]",
    "or byte ptr [r8 + {HEADER}], 3",       // old programs change x87 and SSE without touching the header
}

template! {
    /// The frame stands: the handler's mask is in force, and the vector registers are nobody's. In: rdi = action, r9 = flags, rcx = number,
    /// edx = 0. Out: rax, r8 lost. Cost: 8 instructions, or 7.
    pub struct TakeHandler { blocked: Abs32, features: Imm32, initial: Abs32 }
    where { MASK = offset_of!(SigAction, sa_mask), OPEN = SA_NODEFER }
    "mov r8, qword ptr [{blocked}]",
    "or r8, qword ptr [rdi + {MASK}]",
    "test r9d, {OPEN}",
    "jnz 71f",
    "bts r8, rcx",
    "71:",
    "mov qword ptr [{blocked}], r8",
    "mov eax, {features}",
    "xrstor64 [{initial}]",
}

template! {
    /// Registers as a handler finds them, and on the stack what an interrupt pushes. In: rsi = frame, rdi = action, rcx = number. Cost: 17
    /// instructions.
    pub struct EnterHandler {}
    where {
        HANDLER = offset_of!(SigAction, sa_handler), CONTEXT = FRAME_UCONTEXT, INFO = FRAME_SIGINFO, CODE = USER_CS, DATA = USER_SS,
        CLEARED = !(1u64 << 8 | 1 << 10 | 1 << 16) as i64, KEPT_R11 = R11, KEPT_R9 = R9, KEPT_R8 = R8, KEPT_CX = RCX
    }
    "mov r11, qword ptr [rsp + {KEPT_R11}]",
    "mov r8, r11",
    "and r8, {CLEARED}",
    "mov rax, qword ptr [rdi + {HANDLER}]",
    "lea edi, [rcx + 1]",
    "lea rdx, [rsi + {CONTEXT}]",
    "mov rcx, qword ptr [rsp + {KEPT_CX}]",
    "mov r9, qword ptr [rsp + {KEPT_R9}]",
    "push qword ptr [rsp + {KEPT_R8}]",
    "push {DATA}",
    "push rsi",
    "push r8",
    "push {CODE}",
    "push rax",
    "mov r8, qword ptr [rsp + 40]",
    "lea rsi, [rsi + {INFO}]",
    "xor eax, eax",
}

fragments! {
    /// The signal runs a handler of the program, now and here. In: ecx = signal.
    pub list IsHandled of CallRoutine {
        pending: Abs32, shared: Abs32, hearers: Abs32, blocked: Abs32, stack_size: Abs32, stack_flags: Abs32, actions: Abs32, slow: Target,
    } {
        paste StandardSignal { slow };
        paste NothingWaits { pending, shared, hearers, blocked, stack_size, stack_flags, slow };
        paste OwnHandler { actions, slow };
    }
}

fragments! {
    /// Where its frame goes.
    pub list FindPlace of CallRoutine { sequence: Abs32, user_limit: Abs32, sized: Imm32, slow: Target } {
        paste_user NoSequence { sequence, slow };
        paste PlaceFrame { user_limit, sized, slow };
    }
}

fragments! {
    /// The end of a routine in which `Keep` and `KeepMore` were pasted.
    pub list GoToRust of CallRoutine { number: Imm32, rust: Target } {
        begin_slow;
        paste GiveMoreBack {};
        paste RestoreMany {};
        paste ToRust { number, slow: rust };
    }
}

quaject! {
    /// Where the words are that a thread needs to handle its own signals.
    pub quaject Raises ("raises", made by "kill", at most 0 inactive)
    facts(FACTS)
    data {
        pub pid: u64,
        pub tid: u64,
        /// 32 bits: how many threads the process has.
        pub threads: u64,
        /// The signals that the thread blocks; those that wait for it, and for its process; who waits for signals.
        pub blocked: u64,
        pub pending: u64,
        pub shared: u64,
        pub hearers: u64,
        /// Its alternate stack: bytes, and flags (32 bits).
        pub stack_size: u64,
        pub stack_flags: u64,
        /// The actions of the process, from signal 1 on.
        pub actions: u64,
        /// A word with the address of the word that names a restartable sequence.
        pub sequence: u64,
        /// The thread's last fault, as frames tell of it.
        pub trapno: u64,
        pub trap_error: u64,
        pub trap_address: u64,
        /// 32 bits: the user for whom the process runs.
        pub user: u64,
        /// Bytes of an XSAVE image, its features, and one in which nothing is present.
        pub bytes: u64,
        pub features: u64,
        pub initial: u64,
    }
    factors(raises) {
        let pid = Imm32(raises.pid as u32);
        let tid = Imm32(raises.tid as u32);
        let threads = Abs32(raises.threads);
        let blocked = Abs32(raises.blocked);
        let pending = Abs32(raises.pending);
        let shared = Abs32(raises.shared);
        let hearers = Abs32(raises.hearers);
        let stack_size = Abs32(raises.stack_size);
        let stack_flags = Abs32(raises.stack_flags);
        let actions = Abs32(raises.actions);
        let sequence = Abs32(raises.sequence);
        let trapno = Abs32(raises.trapno);
        let trap_error = Abs32(raises.trap_error);
        let trap_address = Abs32(raises.trap_address);
        let user = Abs32(raises.user);
        let bytes = Imm32(raises.bytes as u32);
        let sized = Imm32(raises.bytes as u32 + FP_XSTATE_MAGIC2_BYTES as u32);
        let features = Imm32(raises.features as u32);
        let initial = Abs32(raises.initial);
    }
    callouts RaiseCallouts<'a> {
        /// The thread.
        tte: &'a dyn Tte,
        /// The machine's way back to the program with all registers.
        leave: Template,
    }
    callbacks {}
    callentries RaiseCode {
        kill: CallCode(nr::KILL) named "signal.kill" needs(tte, leave) uses(user_limit, slow, rust) {
            paste ToOwnProcess { pid, threads, slow: Target::Address(tte.slow_entry().address()) };
            enter_kernel (*tte);
            paste Keep {};
            paste KeepMore {};
            paste SecondIsSignal {};
            include IsHandled { pending, shared, hearers, blocked, stack_size, stack_flags, actions, slow };
            include FindPlace { sequence, user_limit, sized, slow };
            paste_user WriteContext { blocked, stack_flags, trapno, trap_error, trap_address };
            paste_user WriteDetails { code: Imm32(0), pid, user };
            paste_user WriteState { bytes, sized, features };
            paste TakeHandler { blocked, features, initial };
            paste EnterHandler {};
            paste (*leave);
            include GoToRust { number: Imm32(nr::KILL as u32), rust };
        }
        tgkill: CallCode(nr::TGKILL) named "signal.tgkill" needs(tte, leave) uses(user_limit, slow, rust) {
            paste ToOwnThread { pid, tid, slow: Target::Address(tte.slow_entry().address()) };
            enter_kernel (*tte);
            paste Keep {};
            paste KeepMore {};
            paste ThirdIsSignal {};
            include IsHandled { pending, shared, hearers, blocked, stack_size, stack_flags, actions, slow };
            include FindPlace { sequence, user_limit, sized, slow };
            paste_user WriteContext { blocked, stack_flags, trapno, trap_error, trap_address };
            paste_user WriteDetails { code: Imm32(SI_TKILL as u32), pid, user };
            paste_user WriteState { bytes, sized, features };
            paste TakeHandler { blocked, features, initial };
            paste EnterHandler {};
            paste (*leave);
            include GoToRust { number: Imm32(nr::TGKILL as u32), rust };
        }
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::value("pid", "number of the thread's process", "the thread ends, or becomes the first of its process"),
    Fact::value("tid", "number of the thread", "as pid"),
    Fact::word("threads", "threads of the process", "as pid"),
    Fact::word("blocked", "signals that the thread blocks", "as pid"),
    Fact::word("pending", "signals that wait for the thread", "as pid"),
    Fact::word("shared", "signals that wait for its process", "as pid"),
    Fact::word("hearers", "who waits for signals of the process", "as pid"),
    Fact::word("stack_size", "bytes of its alternate stack", "as pid"),
    Fact::word("stack_flags", "flags of its alternate stack", "as pid"),
    Fact::value(
        "actions",
        "what the process does with signals",
        "as pid, and where the process gets other actions: exec",
    ),
    Fact::word("sequence", "leads to the word that names a restartable sequence", "as pid"),
    Fact::word("trapno", "the last fault's vector", "as pid"),
    Fact::word("trap_error", "its error code", "as pid"),
    Fact::word("trap_address", "its address", "as pid"),
    Fact::word("user", "for whom the process runs", "as pid"),
    Fact::value("code", "how the signal was sent", "never"),
    Fact::value("bytes", "size of a vector state", "never"),
    Fact::value("sized", "the same with the mark behind it", "never"),
    Fact::value("features", "parts of a vector state", "never"),
    Fact::word("initial", "a vector state in which nothing is present", "never"),
];
