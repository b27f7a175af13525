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

use crate::cpu::{Cpu, PROCESSORS};
use crate::signals::{DISTURBING_FLAGS, on_alarm, on_call, on_child, on_fault, on_news};

global_asm!(
    r#"
    .macro hosted_push_registers
"#,
    machine_x86::push_registers!(),
    r#"
    .endm

    /* A frame whose caller is the program, as the record at rsp has it: DWARF expressions, because no offset from a
       stack pointer leads there. 0x0f: the program's rsp; 0x10: where a register is. Operands: a register of the table in
       the System V ABI, AMD64 supplement, 3.6.2; the length; rsp plus an offset (breg7), of which the first is read (deref). */
    .macro hosted_cfi_at number, offset
        .cfi_escape 0x10, \number, 3, 0x77, (\offset & 0x7f) | 0x80, \offset >> 7
    .endm
    .macro hosted_cfi_record
        .cfi_escape 0x0f, 4, 0x77, ({regs_rsp} & 0x7f) | 0x80, {regs_rsp} >> 7, 0x06
        hosted_cfi_at 16, {regs_rip}
        hosted_cfi_at 3, {regs_rbx}
        hosted_cfi_at 6, {regs_rbp}
        hosted_cfi_at 12, {regs_r12}
        hosted_cfi_at 13, {regs_r13}
        hosted_cfi_at 14, {regs_r14}
        hosted_cfi_at 15, {regs_r15}
    .endm

    .pushsection .text
    /* The slow end of a system call. In: rsp = stack top - 8, [rsp] = the program's rsp, rcx = return
       address, rax = call number, all other registers as at the call. r11 gets the flags, as SYSCALL
       would have it. */
    .globl hosted_slow_call
    hosted_slow_call:
        .cfi_startproc simple
        /* At first the program's rsp is the word at rsp and the return address is in rcx; between here and the whole
           record no call can be made, so a debugger is only told of the two ends. */
        .cfi_escape 0x0f, 3, 0x77, 0, 0x06
        .cfi_register 16, 2
        push qword ptr [rsp]
        mov qword ptr [rsp + 8], {user_data}
        pushfq
        mov r11, [rsp]
        push {user_code}
        push rcx
        push 0
        push rax
        hosted_push_registers
        hosted_cfi_record
        test dword ptr [rsp + {regs_rflags}], {disturbing}
        jz hosted_call_record
        pushfq
        and dword ptr [rsp], ~{disturbing}
        popfq
    /* rsp = the record of a call. A call whose flags the kernel must not run with comes here from its signal handler. */
    .globl hosted_call_record
    hosted_call_record:
        mov rbx, rsp
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
        cld
        mov rdi, rsp
        call hosted_call_from_user
        jmp hosted_return_to_user
        .cfi_endproc

    /* A signal handler has built the record and left the registers of the program in it. In: rsp =
       the record; the vector registers are the program's. */
    .globl hosted_trap
    hosted_trap:
        .cfi_startproc simple
        .cfi_signal_frame
        hosted_cfi_record
        mov rbx, rsp
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
        cld
        mov rdi, rsp
        call hosted_trap_from_user
        jmp hosted_return_to_user

    /* A new thread's first turn: its signals must not wait for its first call. */
    .globl hosted_first_return
    hosted_first_return:
        mov rdi, rsp
        call hosted_before_user
        /* falls through */

    /* rsp = the record at the stack top. */
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
        test r11d, 0x54500                  /* AC, RF, NT, DF, TF */
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
        .cfi_endproc

    /* Called by sw_in_mmu on the stack of the thread that is being left. In: rdi = root. */
    .globl hosted_change_space
    hosted_change_space:
        .cfi_startproc
        push rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        mov rbp, rsp
        .cfi_def_cfa_register 6
        and rsp, -16
        call hosted_change_space_rust
        mov rsp, rbp
        pop rbp
        .cfi_def_cfa 7, 8
        ret
        .cfi_endproc

    /* Gives the baton to another host process, which goes on with this stack. In: rdi = top of this process's own stack,
       rsi = this process, rdx = the next. The segment bases go along; the vector registers do not (`translation.rs`). */
    .globl hosted_hand_over
    hosted_hand_over:
        push rbp
        push rbx
        push r12
        push r13
        push r14
        push r15
        rdfsbase rax
        push rax
        rdgsbase rax
        push rax
        mov [{cpu} + {cpu_handed}], rsp
        mov rsp, rdi
        xor ebp, ebp
        call hosted_give_baton
    /* This process has got the baton. */
    hosted_go_on:
        mov rsp, [{cpu} + {cpu_handed}]
        pop rax
        wrgsbase rax
        pop rax
        wrfsbase rax
        pop r15
        pop r14
        pop r13
        pop r12
        pop rbx
        pop rbp
        ret

    /* Makes a host process. In: rdi = flags, rsi = top of the new process's own stack, rdx = its place in the table. Out: its number
       or a negative error. The new process waits on its own stack for the baton. */
    .globl hosted_clone
    hosted_clone:
        mov r9, rdx
        xor edx, edx
        xor r10d, r10d
        xor r8d, r8d
        mov eax, 56                         /* clone */
        syscall
        test rax, rax
        jz 1f
        ret
    1:  xor ebp, ebp
        mov rdi, r9
        call hosted_host_begins
        jmp hosted_go_on

    /* A host call of a synthesized routine: only the image's own text may make one. */
    .globl hosted_host_call
    hosted_host_call:
        syscall
        ret

    /* The host's signal handlers. The host leaves the program's alignment checks on, and Rust is not made for them. */
    .macro hosted_handler name, rust
    .globl \name
    \name:
        pushfq
        and dword ptr [rsp], ~{disturbing}
        popfq
        jmp \rust
    .endm
    hosted_handler hosted_on_call, {on_call}
    hosted_handler hosted_on_fault, {on_fault}
    hosted_handler hosted_on_alarm, {on_alarm}
    hosted_handler hosted_on_child, {on_child}
    hosted_handler hosted_on_news, {on_news}

    .globl hosted_restorer
    hosted_restorer:
        mov eax, 15                         /* rt_sigreturn */
        syscall
        ud2
    .popsection
"#,
    disturbing = const DISTURBING_FLAGS,
    on_call = sym on_call,
    on_fault = sym on_fault,
    on_alarm = sym on_alarm,
    on_child = sym on_child,
    on_news = sym on_news,
    area = const THREAD_AREA_BYTES,
    cpu = sym PROCESSORS,
    cpu_handed = const offset_of!(Cpu, handed_sp),
    cpu_owner = const offset_of!(Cpu, slots.vector_owner),
    cpu_wide = const offset_of!(Cpu, slots.vector_wide),
    vector = const VECTOR_OFFSET,
    regs_cs = const offset_of!(Registers, cs),
    regs_rip = const offset_of!(Registers, rip),
    regs_rsp = const offset_of!(Registers, rsp),
    regs_rbx = const offset_of!(Registers, rbx),
    regs_rbp = const offset_of!(Registers, rbp),
    regs_r12 = const offset_of!(Registers, r12),
    regs_r13 = const offset_of!(Registers, r13),
    regs_r14 = const offset_of!(Registers, r14),
    regs_r15 = const offset_of!(Registers, r15),
    regs_rcx = const offset_of!(Registers, rcx),
    regs_r11 = const offset_of!(Registers, r11),
    regs_rflags = const offset_of!(Registers, rflags),
    user_data = const USER_DATA,
    user_code = const USER_CODE,
);

unsafe extern "C" {
    pub static hosted_slow_call: u8;
    pub static hosted_trap: u8;
    pub static hosted_call_record: u8;
    pub static hosted_on_call: u8;
    pub static hosted_on_fault: u8;
    pub static hosted_on_alarm: u8;
    pub static hosted_on_child: u8;
    pub static hosted_on_news: u8;
    pub static hosted_first_return: u8;
    pub static hosted_iretq: u8;
    pub static hosted_change_space: u8;
    pub static hosted_host_call: u8;
    pub static hosted_restorer: u8;
    pub fn hosted_hand_over(own_stack: u64, from: u64, to: u64);
    pub fn hosted_clone(flags: u64, own_stack: u64, index: u64) -> i64;
}
