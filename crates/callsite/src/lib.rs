//! Layer 0: shapes of call sites: what stands in front of a `syscall` instruction.
//!
//! The replaced instruction is always one that stands *before* the call, and the call instruction itself stays. So a
//! jump into the middle of the sequence finds what it expects, and a call that is to be restarted, which the kernel
//! asks for by going back two bytes, finds the instruction and traps.
//!
//! Only evidence counts: the number in the instruction must be the number of the call that came, and all bytes from
//! there to the call must decode, to the byte, as instructions that may be copied.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Bytes in front of the call that are looked at.
pub const BEFORE: usize = 40;
/// Bytes on each side of a two-byte site in which a long no-op is looked for.
pub const AROUND: usize = 120;

/// What can be replaced. Offsets count from the first byte of the window; the call stands at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Where the replaced instruction begins.
    pub at: usize,
    /// Its length. Five bytes hold a jump; two hold one to a no-op nearby that becomes the long jump.
    pub bytes: usize,
    /// It loads the call number; otherwise it is copied like those behind it.
    pub loads_number: bool,
}

/// The shape of a call with this number behind `window`.
pub fn find(window: &[u8; BEFORE], number: u32) -> Option<Shape> {
    for at in (1..BEFORE - 1).rev() {
        let rest = &window[at..];
        // A prefix in front would make it another instruction.
        if is_prefix(window[at - 1]) {
            continue;
        }
        let Some(bytes) = loads(rest, number) else { continue };
        if copies(&rest[bytes..]) {
            return Some(Shape { at, bytes, loads_number: true });
        }
    }
    // The C library's `syscall`: mov r9, [rsp + 8]; syscall.
    window.ends_with(&[0x4C, 0x8B, 0x4C, 0x24, 0x08]).then_some(Shape { at: BEFORE - 5, bytes: 5, loads_number: false })
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x40..=0x4F | 0x66 | 0x67 | 0xF0 | 0xF2 | 0xF3 | 0x0F)
}

/// A segment override means nothing to an instruction without memory, nor to a jump in its place (SDM vol. 2A, 2.1.1), and is more often
/// the end of the instruction before.
fn is_override(byte: u8) -> bool {
    matches!(byte, 0x2E | 0x36 | 0x3E | 0x26 | 0x64 | 0x65)
}

/// The length of the instruction at the front of `code`, if it loads `number` into eax or rax.
fn loads(code: &[u8], number: u32) -> Option<usize> {
    let immediate = |at: usize| {
        let bytes = code.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    match code {
        [0xB8, ..] if immediate(1) == Some(number) => Some(5),
        [0x48, 0xC7, 0xC0, ..] if immediate(3) == Some(number) => Some(7),
        [0x31 | 0x33, 0xC0, ..] if number == 0 => Some(2),
        _ => None,
    }
}

/// `code` is a row of instructions that do the same anywhere, and leave the call number as it is.
fn copies(mut code: &[u8]) -> bool {
    while !code.is_empty() {
        match instruction_bytes(code) {
            Some(bytes) if bytes <= code.len() && !may_change_number(&code[..bytes]) => code = &code[bytes..],
            _ => return false,
        }
    }
    true
}

/// Whether an instruction that `instruction_bytes` knows may store into rax, or a part of it: the number then comes from elsewhere,
/// and may be another one next time. Such an instruction only reads it where the first operand is another register.
fn may_change_number(code: &[u8]) -> bool {
    let rex = if matches!(code[0], 0x40..=0x4F) { code[0] } else { 0 };
    let code = &code[usize::from(rex != 0)..];
    let (opcode, operands) = (code[0], code[1]);
    // Without REX, 4 is ah where bytes are moved.
    let is_number = |register: u8, extension: u8, bytes: bool| {
        rex & extension == 0 && (register == 0 || bytes && rex == 0 && register == 4)
    };
    let first = operands >> 3 & 7;
    let second = operands >= 0xC0 && is_number(operands & 7, 1, opcode == 0x88);
    match opcode {
        0xB8..=0xBF => is_number(opcode & 7, 1, false),
        // To the second operand, of which the first is a register, or says what is done.
        0x01 | 0x09 | 0x21 | 0x29 | 0x31 | 0x88 | 0x89 | 0xC7 => second,
        // CMP.
        0x81 | 0x83 => second && first != 7,
        0x39 | 0x3B | 0x85 => false,
        0x0F => code[1] != 0x1F && is_number(code[2] >> 3 & 7, 4, false),
        _ => is_number(first, 4, opcode == 0x8A),
    }
}

/// The length of a plain move or arithmetic instruction; `None` for all others and for those that name their own place.
fn instruction_bytes(code: &[u8]) -> Option<usize> {
    let rex = usize::from(matches!(code.first()?, 0x40..=0x4F));
    let wide = rex == 1 && code[0] & 8 != 0;
    let operand = |at: usize| modrm_bytes(code.get(at..)?);
    match *code.get(rex)? {
        0x01
        | 0x03
        | 0x09
        | 0x0B
        | 0x21
        | 0x23
        | 0x29
        | 0x2B
        | 0x31
        | 0x33
        | 0x39
        | 0x3B
        | 0x63
        | 0x85
        | 0x88..=0x8B
        | 0x8D => Some(rex + 1 + operand(rex + 1)?),
        0x83 => Some(rex + 2 + operand(rex + 1)?),
        0x81 | 0xC7 => Some(rex + 5 + operand(rex + 1)?),
        0xB8..=0xBF => Some(rex + if wide { 9 } else { 5 }),
        0x0F if matches!(code.get(rex + 1)?, 0xB6 | 0xB7 | 0xBE | 0xBF | 0x1F) => Some(rex + 2 + operand(rex + 2)?),
        _ => None,
    }
}

/// Bytes of ModRM, SIB and displacement (SDM vol. 2A, 2.1.3); `None` for an address relative to rip.
fn modrm_bytes(code: &[u8]) -> Option<usize> {
    let (mode, base) = (code.first()? >> 6, code[0] & 7);
    if mode == 3 {
        return Some(1);
    }
    if mode == 0 && base == 5 {
        return None;
    }
    let sib = usize::from(base == 4);
    let no_base = sib == 1 && mode == 0 && code.get(1)? & 7 == 5;
    let displacement = match mode {
        1 => 1,
        2 => 4,
        _ if no_base => 4,
        _ => 0,
    };
    Some(1 + sib + displacement)
}

/// A no-op of at least seven bytes in `window`, whose third byte a two-byte jump at `site` (an offset) reaches:
/// its offset and length.
///
/// It becomes `jmp over; jmp stub`: whoever runs into it falls through it as before.
pub fn long_no_op(window: &[u8], site: usize) -> Option<(usize, usize)> {
    (1..window.len().saturating_sub(8)).find_map(|at| {
        let bytes = no_op_bytes(&window[at..], window[at - 1])?;
        let distance = (at + 2) as i64 - (site + 2) as i64;
        (i8::try_from(distance).is_ok() && at + bytes <= window.len()).then_some((at, bytes))
    })
}

/// The length of the recommended no-op (SDM vol. 2B, NOP) at the front of `code`, when it is at least seven bytes long. With
/// prefixes it must follow a `ret`, so that the prefixes are its own.
fn no_op_bytes(code: &[u8], before: u8) -> Option<usize> {
    let prefixes = code.iter().take_while(|byte| matches!(byte, 0x66 | 0x2E)).count();
    let body = match code.get(prefixes..)? {
        [0x0F, 0x1F, 0x80, 0, 0, 0, 0, ..] => 7,
        [0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0, ..] => 8,
        _ => return None,
    };
    let own = if prefixes == 0 { !is_prefix(before) && !is_override(before) } else { before == 0xC3 };
    own.then_some(prefixes + body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(end: &[u8]) -> [u8; BEFORE] {
        let mut window = [0x90; BEFORE];
        window[BEFORE - end.len()..].copy_from_slice(end);
        window
    }

    #[test]
    fn a_move_right_before_the_call_is_found() {
        let shape = find(&window(&[0xB8, 1, 0, 0, 0]), 1).unwrap();
        assert_eq!(shape, Shape { at: BEFORE - 5, bytes: 5, loads_number: true });
        assert_eq!(find(&window(&[0xB8, 1, 0, 0, 0]), 2), None);
        assert_eq!(find(&window(&[0x48, 0xC7, 0xC0, 9, 0, 0, 0]), 9).unwrap().bytes, 7);
    }

    #[test]
    fn a_move_to_another_register_is_no_shape() {
        assert_eq!(find(&window(&[0x41, 0xB8, 1, 0, 0, 0]), 1), None);
        assert_eq!(find(&window(&[0x49, 0xC7, 0xC0, 9, 0, 0, 0]), 9), None);
    }

    #[test]
    fn plain_instructions_may_stand_between_and_others_not() {
        // mov eax, 202; mov rdi, rbx; lea rsi, [rsp + 16]; xor edx, edx
        let code = [0xB8, 202, 0, 0, 0, 0x48, 0x89, 0xDF, 0x48, 0x8D, 0x74, 0x24, 0x10, 0x31, 0xD2];
        assert_eq!(find(&window(&code), 202).unwrap().at, BEFORE - code.len());
        // lea rsi, [rip + 16] cannot be copied, nor a jump.
        assert_eq!(find(&window(&[0xB8, 2, 0, 0, 0, 0x48, 0x8D, 0x35, 16, 0, 0, 0]), 2), None);
        assert_eq!(find(&window(&[0xB8, 2, 0, 0, 0, 0x74, 0x02]), 2), None);
    }

    #[test]
    fn an_instruction_between_that_changes_the_number_is_no_shape() {
        let between = |code: &[u8]| {
            let load = [0xB8, 39, 0, 0, 0];
            find(&window(&[&load, code].concat()), 39).is_some()
        };
        // add eax, edi; mov eax, edi; mov al, dil; add eax, [rdi]; add eax, 1; mov ah, dl; movzx eax, byte [rdi]; lea rax, [rax + 1]
        let changing: [&[u8]; 8] = [
            &[0x01, 0xF8],
            &[0x89, 0xF8],
            &[0x40, 0x88, 0xF8],
            &[0x03, 0x07],
            &[0x83, 0xC0, 0x01],
            &[0x88, 0xD4],
            &[0x0F, 0xB6, 0x07],
            &[0x48, 0x8D, 0x40, 0x01],
        ];
        assert!(changing.iter().all(|code| !between(code)));
        // mov r8, rdi; mov rdi, rax; cmp eax, edi; cmp eax, 1; test eax, eax; mov [rdi], eax; mov r8d, 1; movzx edx, al; xor r8d, r8d;
        // add [rax], edi; nop [rax]
        let keeping: [&[u8]; 11] = [
            &[0x49, 0x89, 0xF8],
            &[0x48, 0x89, 0xC7],
            &[0x39, 0xF8],
            &[0x83, 0xF8, 0x01],
            &[0x85, 0xC0],
            &[0x89, 0x07],
            &[0x41, 0xB8, 1, 0, 0, 0],
            &[0x0F, 0xB6, 0xD0],
            &[0x45, 0x31, 0xC0],
            &[0x01, 0x38],
            &[0x0F, 0x1F, 0x00],
        ];
        assert!(keeping.iter().all(|code| between(code)));
    }

    #[test]
    fn a_displacement_that_looks_like_an_override_is_none() {
        // glibc's fcntl: je +0x26; mov eax, 72; syscall.
        let code = [0x74, 0x26, 0xB8, 0x48, 0, 0, 0];
        assert_eq!(find(&window(&code), 72).map(|shape| shape.bytes), Some(5));
        let other = [0x74, 0x48, 0xB8, 0x48, 0, 0, 0];
        assert_eq!(find(&window(&other), 72), None);
    }

    #[test]
    fn two_byte_loads_borrow_a_no_op_nearby() {
        assert_eq!(find(&window(&[0x31, 0xC0]), 0).unwrap().bytes, 2);
        let mut around = [0xCC; 64];
        around[20] = 0xC3;
        around[21..31].copy_from_slice(&[0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0]);
        assert_eq!(long_no_op(&around, 4), Some((21, 10)));
        around[20] = 0x66;
        assert_eq!(long_no_op(&around, 4), None);
    }
}
