//! `memcpy` and its kind: the compiler calls them, nothing else provides them here. Much is moved by words,
//! because each iteration of a REP instruction is an instruction under icount, and because they are
//! fast on every processor since 2008. They take long to begin, so little is moved by vector registers, which are
//! Rust's wherever these are called.

use core::arch::global_asm;

/// More is moved by REP instructions.
const LONG_BYTES: usize = 512;

global_asm!(
    r#"
    .pushsection .text
    /* Forward. The end is loaded before anything is stored, so memmove to a lower address may come here, too. */
    .globl memcpy
    memcpy:
        mov rax, rdi
        cmp rdx, 16
        jb 3f
        cmp rdx, {long}
        ja 4f
        movups xmm0, [rsi + rdx - 16]
        lea rcx, [rdi + rdx - 16]
        cmp edx, 32
        jbe 2f
        movups xmm2, [rsi + rdx - 32]
    1:  movups xmm1, [rsi]
        movups xmm3, [rsi + 16]
        movups [rdi], xmm1
        movups [rdi + 16], xmm3
        add rsi, 32
        add rdi, 32
        lea rdx, [rdi + 16]
        cmp rdx, rcx
        jb 1b
        movups [rcx - 16], xmm2
        movups [rcx], xmm0
        ret
    2:  movups xmm1, [rsi]
        movups [rdi], xmm1
        movups [rcx], xmm0
        ret
    3:  cmp edx, 8
        jb 5f
        mov rcx, [rsi]
        mov rsi, [rsi + rdx - 8]
        mov [rdi], rcx
        mov [rdi + rdx - 8], rsi
        ret
    4:  mov rcx, rdx
        shr rcx, 3
        rep movsq
    5:  mov ecx, edx
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
        cmp rdx, 16
        jb 3f
        cmp rdx, {long}
        ja 4f
        movq xmm0, rax
        punpcklqdq xmm0, xmm0
        lea rcx, [rdi + rdx - 16]
        cmp edx, 32
        jbe 2f
        movups [rcx - 16], xmm0
        sub rcx, 16
    1:  movups [rdi], xmm0
        movups [rdi + 16], xmm0
        add rdi, 32
        cmp rdi, rcx
        jb 1b
        movups [rcx + 16], xmm0
        mov rax, r8
        ret
    2:  movups [rdi], xmm0
        movups [rcx], xmm0
        mov rax, r8
        ret
    3:  cmp edx, 8
        jb 5f
        mov [rdi], rax
        mov [rdi + rdx - 8], rax
        mov rax, r8
        ret
    4:  mov rcx, rdx
        shr rcx, 3
        rep stosq
    5:  mov ecx, edx
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
"#,
    long = const LONG_BYTES,
);

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8;
    }

    const ROOM: usize = 800;

    fn pattern() -> Vec<u8> {
        (0..ROOM).map(|at| (at * 7 + at / 256) as u8).collect()
    }

    /// A byte at a time.
    fn moved(mut bytes: Vec<u8>, to: usize, from: usize, count: usize) -> Vec<u8> {
        let source: Vec<u8> = bytes[from..from + count].to_vec();
        for (at, byte) in source.into_iter().enumerate() {
            bytes[to + at] = byte;
        }
        bytes
    }

    #[test]
    fn each_length_at_each_distance_is_moved_whole_and_no_further() {
        for count in (0..80).chain([511, 512, 513, 600]) {
            for (to, from) in
                [(0, 100), (100, 0), (8, 0), (0, 8), (1, 0), (0, 1), (33, 0), (0, 33), (17, 16), (100, 183)]
            {
                let (mut bytes, expected) = (pattern(), moved(pattern(), to, from, count));
                let base = bytes.as_mut_ptr();
                // SAFETY: both ranges end before `ROOM`.
                let result = unsafe { memmove(base.wrapping_add(to), base.wrapping_add(from), count) };
                assert_eq!((result, &bytes), (base.wrapping_add(to), &expected), "memmove {count} from {from} to {to}");
                let (mut copy, source) = (pattern(), pattern());
                // SAFETY: as above; they do not overlap.
                unsafe { memcpy(copy.as_mut_ptr().wrapping_add(to), source.as_ptr().wrapping_add(from), count) };
                assert_eq!(copy, expected, "memcpy {count} from {from} to {to}");
            }
        }
    }

    #[test]
    fn each_length_is_set_whole_and_no_further() {
        for count in (0..80).chain([511, 512, 513, 600]) {
            let mut bytes = pattern();
            let to = bytes.as_mut_ptr().wrapping_add(3);
            // SAFETY: the range ends before `ROOM`.
            assert_eq!(unsafe { memset(to, 0x1a5, count) }, to);
            let expected: Vec<u8> = pattern()
                .into_iter()
                .enumerate()
                .map(|(at, byte)| if (3..3 + count).contains(&at) { 0xa5 } else { byte })
                .collect();
            assert_eq!(bytes, expected, "memset {count}");
        }
    }
}
