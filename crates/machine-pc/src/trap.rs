//! Entries into the kernel that are not synthesized: traps, interrupts, and the slow end of every
//! system call. All of them build one [`Registers`] record at the top of the thread's kernel stack.
//!
//! Vector registers (S-59): at user level the running thread owns them. Rust code may use the 128-bit registers, so every
//! entry from a program saves its legacy state and every exit restores it; the wide parts stay in the registers until another
//! thread goes back to its program, which exchanges them. A switch itself moves no vector state (ADR 77).

use core::arch::global_asm;
use core::mem::offset_of;

use machine::{LINES_MAX, Registers};
use machine_x86::{Slots, THREAD_AREA_BYTES, TteRecord, USER_CODE, USER_DATA, VECTOR_OFFSET};

use crate::apic;
use crate::cpu::Cpu;
use crate::layout::{KERNEL_CODE, direct};

/// What the timer means for the kernel: to this vector's entry its interrupt goes on, and when that came too early the processor
/// sends it to itself.
pub const TIMER_VECTOR: u8 = 0x20;
/// The timer itself, above the kernel's Rust when its handler is code.
pub const CLOCK_VECTOR: u8 = 0xC0;
/// The first of the lines that lead to code of their own: above the kernel's Rust.
pub const DEVICE_VECTOR: u8 = 0xD0;
/// The first of the lines by default.
pub const LINE_VECTOR: u8 = 0x30;
/// Sent by the processor to itself: what was chained is to be done.
pub const CHAIN_VECTOR: u8 = 0x22;
/// The sample clock, above all devices.
pub const SAMPLE_VECTOR: u8 = 0xE0;
pub const SPURIOUS_VECTOR: u8 = 0xFF;

unsafe extern "C" {
    static trap_stubs: u8;
}

/// Bytes per trap stub.
const STUB_BYTES: u64 = 16;

/// The interrupt gate of `vector` of a processor: ring-3 may raise #BP and #OF itself; NMI, #DF and #MC have a stack of
/// their own.
pub fn gate(vector: usize, processor: usize) -> [u64; 2] {
    let entry = if vector == SAMPLE_VECTOR as usize {
        crate::sample_clock::entry(processor)
    } else if (DEVICE_VECTOR as usize..DEVICE_VECTOR as usize + LINES_MAX).contains(&vector) {
        crate::lines::entry(processor, vector - DEVICE_VECTOR as usize)
    } else if vector == CLOCK_VECTOR as usize {
        crate::timer::entry(processor)
    } else {
        (&raw const trap_stubs) as u64 + vector as u64 * STUB_BYTES
    };
    let level = if vector == 3 || vector == 4 { 3u64 } else { 0 };
    let stack = match vector {
        2 => 1u64,
        8 | 18 => 2,
        _ => 0,
    };
    [
        entry & 0xFFFF
            | (KERNEL_CODE as u64) << 16
            | stack << 32
            | 0x8E00u64 << 32
            | level << 45
            | (entry >> 16 & 0xFFFF) << 48,
        entry >> 32,
    ]
}

global_asm!(
    r#"
    .macro push_registers
"#,
    machine_x86::push_registers!(),
    r#"
    .endm

    /* From a program: save its legacy vector state, for Rust. Leaves the TTE in rbx. */
    .macro enter_rust
        cld
        mov rbx, rsp
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
    .endm

    .pushsection .text
    .balign 16
    .globl trap_stubs
    trap_stubs:
    .set vector_number, 0
    .rept 256
        .balign 16
        .if (vector_number == 8) || (vector_number >= 10 && vector_number <= 14) || vector_number == 17 || vector_number == 21
        .else
            push 0
        .endif
        push vector_number
        .if vector_number == {timer}
            jmp timer_trap
        .elseif vector_number == {chain}
            jmp chain_trap
        .elseif vector_number == 2 || vector_number == 8 || vector_number == 18
            jmp fatal_trap
        .else
            jmp common_trap
        .endif
        .set vector_number, vector_number + 1
    .endr

    /* S-80: the end of the kernel's work, or the idle thread, which has nothing that Rust would have to save. */
    chain_trap:
        test byte ptr [rsp + 24], 3
        jnz common_trap
        add rsp, 16
        jmp chained_in_kernel

    /* S-81: in a program, with no alarm near and somebody else ready, the timer's interrupt means that the quantum is
       over. It goes straight to the switch: on the record's account of time, on the timer, on the vector registers
       and the bases all is done as Rust and `sw_out` would, and nothing else is. */
    timer_trap:
        push_registers
        .globl clac_site_timer
    clac_site_timer:
        .byte 0x0f, 0x1f, 0x00              /* clac where SMAP is on */
        test byte ptr [rsp + {regs_cs}], 3
        jz timer_in_kernel
        mov rbx, rsp
        and rbx, -{area}
        mov r12, [rbx + {tte_cpu}]
        rdtsc
        shl rdx, 32
        or rax, rdx
        mov r14, rax
        sub rax, [rip + {clock_base}]       /* clock::now, and the longest quantum */
        mul qword ptr [rip + {clock_scale}]
        shrd rax, rdx, 32
        add rax, {quantum_most}
        cmp rax, [r12 + {cpu_due}]
        jae program_trap
        mov r13, [rbx + {tte_next}]
        cmp r13, [rbx + {tte_switch_in}]
        je program_trap
        mov rcx, r14
        xchg rcx, [r12 + {cpu_since}]
        sub r14, rcx
        add [rbx + {tte_ran}], r14
        mov qword ptr [r12 + {cpu_armed}], -1
        inc qword ptr [r12 + {cpu_preemptions}]
        mov rcx, [rbx + {tte_ran}]          /* quantum::take_gauge: the turn was long enough */
        mov rsi, rcx
        xchg rsi, [rbx + {tte_adjusted_at}]
        sub rcx, rsi
        mov rax, [r12 + {cpu_gauge}]
        mov rdx, rax
        xchg rdx, [r12 + {cpu_gauge_seen}]
        sub rax, rdx
        add rax, [rbx + {tte_moved}]
        jz 3f
        mov qword ptr [rbx + {tte_moved}], 0
        imul rax, [r12 + {cpu_gauge_weight}]
        xor edx, edx
        or rcx, 1
        div rcx
        mov ecx, {earned_most}
        cmp rax, rcx
        cmova rax, rcx
    3:  mov rcx, [rbx + {tte_quantum}]
        lea rax, [rax + rcx*8 + {least}]
        sub rax, rcx
        shr rax, 3
        mov [rbx + {tte_quantum}], rax
        mov rdx, {apic}
        mov dword ptr [rdx + {eoi}], 0
        mov rcx, [rbx + {tte_next_quantum}]
        mov eax, [rcx]
        .globl quantum_site
    quantum_site:
        mov [rdx + {count}], eax            /* `call arm_slow_timer` where a tick is longer than a nanosecond */
        cld
        fxsave64 [rbx + {vector}]
        rdfsbase rax
        mov [rbx + {tte_fs}], rax
        rdgsbase rax
        mov [rbx + {tte_gs}], rax
        lea rax, [rip + timer_resume]
        push rax
        mov [rbx + {tte_sp}], rsp
        jmp r13

    /* apic::start_timer: in eax nanoseconds, in rdx the local APIC. */
    arm_slow_timer:
        imul rax, [rip + {multiplier}]
        shr rax, {multiplier_shift}
        inc eax
        mov [rdx + {count}], eax
        ret

    /* The idle thread, or the kernel's Rust while interrupts nest: then the kernel is left first. */
    timer_in_kernel:
        mov rbx, rsp
        and rbx, -{area}
        mov rbx, [rbx + {tte_cpu}]
        cmp byte ptr [rbx + {is_open}], 0
        je kernel_trap
        mov rdx, {apic}
        mov dword ptr [rdx + {command}], {timer_later}
        mov dword ptr [rdx + {eoi}], 0
        jmp restore_by_iret

    /* The pre-empted thread's turn again, or a new thread's first. Its signals must not wait for the next call. */
    .globl timer_resume
    timer_resume:
        mov rbx, rsp
        and rbx, -{area}
        mov rax, [rbx + {tte_attention}]
        movzx eax, byte ptr [rax]
        mov rcx, [rsp + {regs_rip}]
        shr rcx, 47                         /* a program counter that IRET would not take */
        or rax, rcx
        mov rcx, [rbx + {tte_preemption_word}]
        mov edx, 1
        .globl stac_site_timer
    stac_site_timer:
        .byte 0x0f, 0x1f, 0x00              /* stac where SMAP is on */
        .globl timer_look
    timer_look:
        mov rdx, [rcx]                      /* the program is in a restartable sequence */
        .globl timer_looked
    timer_looked:
        .globl clac_site_timer_look
    clac_site_timer_look:
        .byte 0x0f, 0x1f, 0x00              /* clac */
        or rax, rdx
        jz to_program
        mov rdi, rsp
        call resumed_from_timer
        jmp return_to_user

    common_trap:
        push_registers
        .globl clac_site_trap
    clac_site_trap:
        .byte 0x0f, 0x1f, 0x00              /* clac where SMAP is on */
        test byte ptr [rsp + {regs_cs}], 3
        jz kernel_trap
    program_trap:
        enter_rust
        mov rdi, rsp
        call trap_from_user
        jmp return_to_user

    /* A fault inside the kernel: user copies and synthesized code, whose vector registers are the
       program's, or an interrupt in the idle thread. */
    kernel_trap:
        cld
        mov rbx, rsp
        sub rsp, 512 + 16
        and rsp, -64
        fxsave64 [rsp]
        mov rdi, rbx
        call trap_from_kernel
        fxrstor64 [rsp]
        mov rsp, rbx
        jmp restore_by_iret

    fatal_trap:
        push_registers
        mov rdi, rsp
        and rsp, -16
        call trap_fatal
        ud2

    /* The slow end of a system call. In: rsp = stack top - 8, [rsp] = the program's rsp, all other
       registers as at the call. */
    .globl slow_call
    slow_call:
    .globl clac_site_call
    clac_site_call:
        .byte 0x0f, 0x1f, 0x00              /* clac: a routine may have opened user memory */
        push qword ptr [rsp]
        mov qword ptr [rsp + 8], {user_data}
        push r11
        push {user_code}
        push rcx
        push 0
        push rax
        push_registers
        mov rbx, rsp                        /* enter_rust; FMASK has cleared the direction */
        and rbx, -{area}
        fxsave64 [rbx + {vector}]
        mov rdi, rsp
        call call_from_user
        test al, al
        jz to_program
        /* Only rax is another one: rip is rcx and the flags are r11, and Rust has kept what it must keep. */
        mov rcx, [rbx + {tte_cpu}]
        cmp rbx, [rcx + {cpu_owner}]
        jne exchange_vectors
        fxrstor64 [rbx + {vector}]
        test byte ptr [rsp + {regs_r11} + 1], 1     /* TF */
        jnz restore_by_iret
        add rsp, {regs_rbx}
        pop rbx
        pop r11
        pop rax
        pop rcx
        pop rdi
        pop rsi
        pop rdx
        pop r10
        pop r8
        pop r9
        mov rsp, [rsp + 40]
        sysretq

    /* rsp = the Registers record at the stack top. */
    return_to_user:
        mov rbx, rsp
        and rbx, -{area}
    to_program:
        mov rcx, [rbx + {tte_cpu}]
        cmp rbx, [rcx + {cpu_owner}]
        je 2f
    /* The wide parts are another's: its legacy part was saved when it entered. */
    exchange_vectors:
        mov eax, [rcx + {cpu_wide}]
        xor edx, edx
        mov rdi, [rcx + {cpu_owner}]
        xsave64 [rdi + {vector}]
        xrstor64 [rbx + {vector}]
        mov [rcx + {cpu_owner}], rbx
    2:  fxrstor64 [rbx + {vector}]
        mov rcx, [rsp + {regs_rip}]
        cmp rcx, [rsp + {regs_rcx}]
        jne restore_by_iret
        mov r11, [rsp + {regs_rflags}]
        cmp r11, [rsp + {regs_r11}]
        jne restore_by_iret
        test r11d, 0x10100                  /* RF, TF */
        jnz restore_by_iret
        bt rcx, 47                          /* SYSRET must not see a non-canonical rip */
        jc restore_by_iret
"#,
    machine_x86::pop_after_call!(),
    r#"
        sysretq

    restore_by_iret:
"#,
    machine_x86::pop_registers!(),
    r#"
        iretq
    .popsection
"#,
    timer = const TIMER_VECTOR,
    chain = const CHAIN_VECTOR,
    apic = const direct(apic::LOCAL),
    eoi = const apic::EOI,
    is_open = const offset_of!(Cpu, nesting.is_open),
    command = const apic::COMMAND,
    timer_later = const apic::TIMER_LATER,
    count = const apic::INITIAL_COUNT,
    multiplier = sym apic::MULTIPLIER,
    multiplier_shift = const apic::MULTIPLIER_SHIFT,
    clock_base = sym machine_x86::CLOCK_BASE,
    clock_scale = sym machine_x86::CLOCK_SCALE,
    quantum_most = const machine::QUANTUM_MOST_NS,
    cpu_due = const offset_of!(Slots, words.due),
    cpu_armed = const offset_of!(Slots, words.armed),
    cpu_since = const offset_of!(Slots, since),
    cpu_preemptions = const offset_of!(Slots, words.preemptions),
    tte_quantum = const offset_of!(TteRecord, quantum),
    tte_next_quantum = const offset_of!(TteRecord, next_quantum),
    tte_moved = const offset_of!(TteRecord, moved),
    tte_adjusted_at = const offset_of!(TteRecord, adjusted_at),
    cpu_gauge = const offset_of!(Slots, gauge),
    cpu_gauge_seen = const offset_of!(Slots, gauge_seen),
    cpu_gauge_weight = const offset_of!(Slots, gauge_weight),
    earned_most = const machine::QUANTUM_MOST_NS - machine::QUANTUM_LEAST_NS,
    least = const machine::QUANTUM_LEAST_NS,
    tte_next = const offset_of!(TteRecord, next),
    tte_switch_in = const offset_of!(TteRecord, switch_in),
    tte_ran = const offset_of!(TteRecord, ran),
    tte_fs = const offset_of!(TteRecord, fs_base),
    tte_gs = const offset_of!(TteRecord, gs_base),
    tte_sp = const offset_of!(TteRecord, kernel_sp),
    tte_preemption_word = const offset_of!(TteRecord, preemption_word),
    tte_attention = const offset_of!(TteRecord, attention),
    area = const THREAD_AREA_BYTES,
    tte_cpu = const offset_of!(TteRecord, cpu),
    cpu_owner = const offset_of!(Slots, vector_owner),
    cpu_wide = const offset_of!(Slots, vector_wide),
    vector = const VECTOR_OFFSET,
    regs_cs = const offset_of!(Registers, cs),
    regs_rbx = const offset_of!(Registers, rbx),
    regs_rip = const offset_of!(Registers, rip),
    regs_rcx = const offset_of!(Registers, rcx),
    regs_r11 = const offset_of!(Registers, r11),
    regs_rflags = const offset_of!(Registers, rflags),
    user_data = const USER_DATA,
    user_code = const USER_CODE,
);

unsafe extern "C" {
    pub static slow_call: u8;
    pub static timer_resume: u8;
    static clac_site_trap: u8;
    static clac_site_call: u8;
    static clac_site_timer: u8;
    static clac_site_timer_look: u8;
    static stac_site_timer: u8;
    static timer_look: u8;
    static quantum_site: u8;
    static arm_slow_timer: u8;
    static timer_looked: u8;
}

/// Places that hold a three-byte no-op where `clac` stands when SMAP is on.
pub fn clac_sites() -> [u64; 4] {
    let sites = [
        &raw const clac_site_timer,
        &raw const clac_site_timer_look,
        &raw const clac_site_trap,
        &raw const clac_site_call,
    ];
    sites.map(|site| site as u64)
}

/// The same for `stac`.
pub fn stac_sites() -> [u64; 1] {
    [(&raw const stac_site_timer) as u64]
}

/// Where an instruction of six bytes arms the timer, and what is to stand there where it is slow.
pub fn slow_timer_site() -> (u64, [u8; 6]) {
    let site = (&raw const quantum_site) as u64;
    let distance = ((&raw const arm_slow_timer) as u64).wrapping_sub(site + 5) as u32;
    let [a, b, c, d] = distance.to_le_bytes();
    // call, and a no-op.
    (site, [0xE8, a, b, c, d, 0x90])
}

/// Where a fault at `rip` continues, if it was the look into the program at its turn.
pub fn look_landing(rip: u64) -> Option<u64> {
    (rip == (&raw const timer_look) as u64).then_some((&raw const timer_looked) as u64)
}
