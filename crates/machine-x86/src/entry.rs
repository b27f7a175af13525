//! Pieces of the entries' assembly that both machines need in the same form: the order of [`machine::Registers`].

/// Stores a program's general registers: the lower part of the record.
#[macro_export]
macro_rules! push_registers {
    () => {
        "
        push r9
        push r8
        push r10
        push rdx
        push rsi
        push rdi
        push rcx
        push rax
        push r11
        push rbx
        push rbp
        push r12
        push r13
        push r14
        push r15
        "
    };
}

/// Loads them again, for IRETQ: rsp = the record before, its `rip` behind.
#[macro_export]
macro_rules! pop_registers {
    () => {
        "
        pop r15
        pop r14
        pop r13
        pop r12
        pop rbp
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
        add rsp, 16
        "
    };
}

/// Loads them as after a system call, all but rcx and r11, and the program's stack. In: rsp = the record.
#[macro_export]
macro_rules! pop_after_call {
    () => {
        "
        pop r15
        pop r14
        pop r13
        pop r12
        pop rbp
        pop rbx
        add rsp, 8
        pop rax
        add rsp, 8
        pop rdi
        pop rsi
        pop rdx
        pop r10
        pop r8
        pop r9
        mov rsp, [rsp + 40]
        "
    };
}
