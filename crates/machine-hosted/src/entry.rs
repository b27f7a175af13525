//! Entries into the kernel that are not synthesized: the slow end of every call, and what signal handlers turn into
//! traps. All of them build one [`Registers`] record at the top of the thread's kernel stack.
//!
//! Vector registers (S-59): Rust uses the 128-bit registers, so every entry from a program saves the thread's legacy
//! state and every exit restores it; the wide parts stay in the registers until another thread goes back to its
//! program, which exchanges them. A switch itself moves no vector state. Segment bases change in switches only.

use core::arch::global_asm;
use core::mem::offset_of;

use machine::Registers;
use machine_x86::{THREAD_AREA_BYTES, USER_CODE, USER_DATA, VECTOR_OFFSET};

use crate::cpu::{CPU, Cpu};

global_asm!(
    r#"
    .macro hosted_push_registers
"#,
    machine_x86::push_registers!(),
    r#"
    .endm

    .pushsection .text
    /* The slow end of a system call. In: rsp = stack top - 8, [rsp] = the program's rsp, rcx = return
       address, rax = call number, all other registers as at the call. r11 gets the flags, as SYSCALL
       would have it. */
    .globl hosted_slow_call
    hosted_slow_call:
        push qword ptr [rsp]
        mov qword ptr [rsp + 8], {user_data}
        pushfq
        mov r11, [rsp]
        push {user_code}
        push rcx
        push 0
        push rax
        hosted_push_registers
        mov rbx, rsp
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
        cld
        mov rdi, rsp
        call hosted_call_from_user
        jmp hosted_return_to_user

    /* A signal handler has built the record and left the registers of the program in it. In: rsp =
       the record; the vector registers are the program's. */
    .globl hosted_trap
    hosted_trap:
        mov rbx, rsp
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
        cld
        mov rdi, rsp
        call hosted_trap_from_user
        /* falls through */

    /* rsp = the record at the stack top. */
    .globl hosted_return_to_user
    hosted_return_to_user:
        mov rbx, rsp
        and rbx, -{area}
        mov rcx, [{cpu} + {cpu_owner}]
        cmp rcx, rbx
        je 1f
        mov eax, [{cpu} + {cpu_wide}]
        mov edx, [{cpu} + {cpu_wide} + 4]
        xsave64 [rcx + {vector}]
        xrstor64 [rbx + {vector}]
        mov [{cpu} + {cpu_owner}], rbx
    1:  fxrstor64 [rbx + {vector}]
        mov rcx, [rsp + {regs_rip}]
        cmp rcx, [rsp + {regs_rcx}]
        jne 2f
        mov r11, [rsp + {regs_rflags}]
        cmp r11, [rsp + {regs_r11}]
        jne 2f
        test r11d, 0x10500                  /* RF, DF, TF */
        jnz 2f
        cmp dword ptr [rsp + {regs_cs}], {user_code}
        jne 2f
"#,
    machine_x86::pop_after_call!(),
    r#"
        jmp rcx

    /* IRETQ may return to the same privilege level, and it restores everything at once. */
    2:
"#,
    machine_x86::pop_registers!(),
    r#"
    .globl hosted_iretq
    hosted_iretq:
        iretq

    /* Called by sw_in_mmu on the stack of the thread that is being left. In: rdi = root. */
    .globl hosted_change_space
    hosted_change_space:
        push rbp
        mov rbp, rsp
        and rsp, -16
        call hosted_change_space_rust
        mov rsp, rbp
        pop rbp
        ret

    .globl hosted_restorer
    hosted_restorer:
        mov eax, 15                         /* rt_sigreturn */
        syscall
        ud2
    .popsection
"#,
    area = const THREAD_AREA_BYTES,
    cpu = sym CPU,
    cpu_owner = const offset_of!(Cpu, slots.vector_owner),
    cpu_wide = const offset_of!(Cpu, wide_mask),
    vector = const VECTOR_OFFSET,
    regs_cs = const offset_of!(Registers, cs),
    regs_rip = const offset_of!(Registers, rip),
    regs_rcx = const offset_of!(Registers, rcx),
    regs_r11 = const offset_of!(Registers, r11),
    regs_rflags = const offset_of!(Registers, rflags),
    user_data = const USER_DATA,
    user_code = const USER_CODE,
);

unsafe extern "C" {
    pub static hosted_slow_call: u8;
    pub static hosted_trap: u8;
    pub static hosted_return_to_user: u8;
    pub static hosted_iretq: u8;
    pub static hosted_change_space: u8;
    pub static hosted_restorer: u8;
}
