//! Tracing of threads: requests, options, events and records of `ptrace` (`linux/ptrace.h`, `asm/ptrace-abi.h`).

use crate::record::{numbers, record};

numbers! {
    /// What a tracer asks for.
    PTRACE_REQUESTS: u32 {
        PTRACE_TRACEME = 0, PTRACE_PEEKTEXT = 1, PTRACE_PEEKDATA = 2, PTRACE_PEEKUSR = 3, PTRACE_POKETEXT = 4,
        PTRACE_POKEDATA = 5, PTRACE_POKEUSR = 6, PTRACE_CONT = 7, PTRACE_KILL = 8, PTRACE_SINGLESTEP = 9,
        PTRACE_GETREGS = 12, PTRACE_SETREGS = 13, PTRACE_GETFPREGS = 14, PTRACE_SETFPREGS = 15, PTRACE_ATTACH = 16,
        PTRACE_DETACH = 17, PTRACE_SYSCALL = 24, PTRACE_ARCH_PRCTL = 30, PTRACE_SYSEMU = 31,
        PTRACE_SYSEMU_SINGLESTEP = 32, PTRACE_SETOPTIONS = 0x4200, PTRACE_GETEVENTMSG = 0x4201,
        PTRACE_GETSIGINFO = 0x4202, PTRACE_SETSIGINFO = 0x4203, PTRACE_GETREGSET = 0x4204, PTRACE_SETREGSET = 0x4205,
        PTRACE_SEIZE = 0x4206, PTRACE_INTERRUPT = 0x4207, PTRACE_LISTEN = 0x4208, PTRACE_PEEKSIGINFO = 0x4209,
        PTRACE_GETSIGMASK = 0x420a, PTRACE_SETSIGMASK = 0x420b, PTRACE_GET_SYSCALL_INFO = 0x420e,
    }
}
numbers! {
    /// Options of a tracer.
    PTRACE_OPTIONS: u32 {
        PTRACE_O_TRACESYSGOOD = 1, PTRACE_O_TRACEFORK = 2, PTRACE_O_TRACEVFORK = 4, PTRACE_O_TRACECLONE = 8,
        PTRACE_O_TRACEEXEC = 0x10, PTRACE_O_TRACEVFORKDONE = 0x20, PTRACE_O_TRACEEXIT = 0x40,
        PTRACE_O_TRACESECCOMP = 0x80, PTRACE_O_EXITKILL = 0x10_0000, PTRACE_O_SUSPEND_SECCOMP = 0x20_0000,
    }
}
numbers! {
    /// Events, in the third byte of a wait status; each is the number of its option's bit.
    PTRACE_EVENTS: u32 {
        PTRACE_EVENT_FORK = 1, PTRACE_EVENT_VFORK = 2, PTRACE_EVENT_CLONE = 3, PTRACE_EVENT_EXEC = 4,
        PTRACE_EVENT_VFORK_DONE = 5, PTRACE_EVENT_EXIT = 6, PTRACE_EVENT_STOP = 128,
    }
}
numbers! {
    /// What `PTRACE_GET_SYSCALL_INFO` tells about; the first two are event messages, too.
    PTRACE_CALL_INFOS: u32 {
        PTRACE_SYSCALL_INFO_NONE = 0, PTRACE_SYSCALL_INFO_ENTRY = 1, PTRACE_SYSCALL_INFO_EXIT = 2,
        PTRACE_EVENTMSG_SYSCALL_ENTRY = 1, PTRACE_EVENTMSG_SYSCALL_EXIT = 2,
    }
}
/// Register sets of `PTRACE_GETREGSET` (`linux/elf.h`).
pub const NT_PRSTATUS: u32 = 1;
pub const NT_FPREGSET: u32 = 2;
pub const NT_X86_XSTATE: u32 = 0x202;
/// This machine in records (`linux/audit.h`).
pub const AUDIT_ARCH_X86_64: u32 = 0xC000_003E;
/// Bytes of `struct user` as the kernel knows it (`asm/user_64.h`), and where its eight debug registers begin.
pub const USER_BYTES: u64 = 928;
pub const USER_DEBUG_REGISTERS: u64 = 848;

record! {
    /// `struct user_regs_struct`.
    UserRegs, 216 bytes {
        r15: u64, r14: u64, r13: u64, r12: u64, rbp: u64, rbx: u64, r11: u64, r10: u64, r9: u64, r8: u64, rax: u64,
        rcx: u64, rdx: u64, rsi: u64, rdi: u64, orig_rax: u64, rip: u64, cs: u64, eflags: u64, rsp: u64, ss: u64,
        fs_base: u64, gs_base: u64, ds: u64, es: u64, fs: u64, gs: u64,
    }
}
