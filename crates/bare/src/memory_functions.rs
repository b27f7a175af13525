//! `memcpy` and its kind: the compiler calls them, nothing else provides them here. Word moves,
//! because each iteration of a REP instruction is an instruction under icount, and because they are
//! fast on every processor since 2008.

use core::arch::global_asm;

global_asm!(
    r#"
    .pushsection .text
    .globl memcpy
    memcpy:
        mov rax, rdi
        mov rcx, rdx
        shr rcx, 3
        rep movsq
        mov ecx, edx
        and ecx, 7
        rep movsb
        ret
    .globl memmove
    memmove:
        mov rax, rdi
        mov rcx, rdi
        sub rcx, rsi
        cmp rcx, rdx
        jae memcpy
        std
        lea rdi, [rdi + rdx - 1]
        lea rsi, [rsi + rdx - 1]
        mov ecx, edx
        and ecx, 7
        rep movsb
        sub rdi, 7
        sub rsi, 7
        mov rcx, rdx
        shr rcx, 3
        rep movsq
        cld
        ret
    .globl memset
    memset:
        mov r8, rdi
        movzx eax, sil
        mov rcx, 0x0101010101010101
        imul rax, rcx
        mov rcx, rdx
        shr rcx, 3
        rep stosq
        mov ecx, edx
        and ecx, 7
        rep stosb
        mov rax, r8
        ret
    .globl bcmp
    bcmp:
    .globl memcmp
    memcmp:
        xor eax, eax
        mov rcx, rdx
        cmp rcx, rcx
        repe cmpsb
        je 2f
        movzx eax, byte ptr [rdi - 1]
        movzx ecx, byte ptr [rsi - 1]
        sub eax, ecx
    2:  ret
    .globl strlen
    strlen:
        xor eax, eax
    3:  cmp byte ptr [rdi + rax], 0
        je 4f
        inc rax
        jmp 3b
    4:  ret
    .popsection
"#
);
