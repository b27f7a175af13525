//! Calls that a program makes without leaving user mode (S-88): what they ask for is written into the program's own copy
//! of the vDSO as an instruction. The same source is compiled into the vDSO.
//!
//! ```text
//!        until somebody asks       since then
//!   0    jmp 8; int3 ×3            mov eax, value
//!   5    ret; int3 ×2              ret; int3 ×2
//!   8    mov edi, PR_SYNTHESIS_USER_CALL; mov esi, number; mov eax, prctl; syscall; ret      never changes
//! ```
//! The eight bytes of the head change in one store. A thread can stand in them only at 0, 5 or 8, and byte 5 is `ret` in both.
#![allow(dead_code, reason = "the vDSO itself needs the number only")]

/// `prctl(PR_SYNTHESIS_USER_CALL, number)`: does call `number`, and has the kernel write its answer into the caller's
/// vDSO if it can stand there. `EINVAL` for a number that has no user-level call; and on Linux, which does not know the option.
pub const PR_SYNTHESIS_USER_CALL: u32 = 0x5359_4e01;

/// The calls: getpid, getuid, geteuid, getgid, getegid.
pub const USER_CALLS: [u64; 5] = [39, 102, 107, 104, 108];

/// The part of a user-level call that the kernel replaces.
pub type Head = [u8; 8];

/// Asks the kernel.
pub const fn slow_head() -> Head {
    [0xEB, 0x06, 0xCC, 0xCC, 0xCC, 0xC3, 0xCC, 0xCC]
}

/// Answers.
pub const fn constant_head(value: u32) -> Head {
    let [a, b, c, d] = value.to_le_bytes();
    [0xB8, a, b, c, d, 0xC3, 0xCC, 0xCC]
}

/// Whether the bytes are one of the two.
pub fn is_head(head: &Head) -> bool {
    let [_, a, b, c, d, ..] = *head;
    *head == slow_head() || *head == constant_head(u32::from_le_bytes([a, b, c, d]))
}

/// Where the call for `number` lies in an image.
pub fn find(image: &[u8], number: u64) -> Option<usize> {
    let number = u32::try_from(number).ok()?.to_le_bytes();
    let ask = PR_SYNTHESIS_USER_CALL.to_le_bytes();
    image
        .chunks_exact(32)
        .position(|slot| {
            slot[..8] == slow_head()
                && slot[8] == 0xBF
                && slot[9..13] == ask
                && slot[13] == 0xBE
                && slot[14..18] == number
        })
        .map(|slot| slot * 32)
}
