//! A name as code.

use synth::{Draft, Imm32, Target, jump, template};

template! {
    /// Four bytes of the path are those of before. Cost: 2 instructions.
    pub struct SamePath { offset: Imm32, bytes: Imm32, next: Target }
    "cmp dword ptr [rsi + {offset}], {bytes}",
    jump!(jne next),
}

/// Compares the text at rsi with a name and the NUL behind it, in words of four bytes; the last word overlaps the one before.
/// Goes on behind if they are the same, else at `other`. `name`: at least 3 bytes, or nothing is compared.
pub fn paste_name(draft: &mut Draft, name: &[u8], other: Target) {
    let word = |at: usize| match name[at..] {
        [a, b, c, d, ..] => [a, b, c, d],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    let Some(last) = name.len().checked_sub(3) else { return };
    for at in (0..last).step_by(4).chain([last]) {
        let bytes = Imm32(u32::from_le_bytes(word(at)));
        SamePath { offset: Imm32(at as u32), bytes, next: other }.append_to(draft);
    }
}
