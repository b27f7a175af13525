//! A decoder for the instructions that templates are made of (SDM vol. 2). What it does not know it refuses, and then
//! nothing is optimized: a wrong guess would be a wrong kernel.
use super::instruction::{Flags, Instruction, Kind, Memory, Registers, Width};

const RAX: Registers = 1;
const RCX: Registers = 1 << 1;
const RDX: Registers = 1 << 2;
const RBX: Registers = 1 << 3;
const RSP: Registers = 1 << 4;
const RSI: Registers = 1 << 6;
const RDI: Registers = 1 << 7;

/// A cursor over one instruction.
struct Reader<'a> {
    code: &'a [u8],
    at: usize,
    rex: u8,
    operand_16: bool,
}

/// The operand that ModRM names.
#[derive(Clone, Copy)]
struct Operand {
    /// `reg` field with REX.R.
    register: u8,
    /// The register, if it is one.
    direct: Option<u8>,
    /// The address, if it is a bare one.
    address: Option<i32>,
    /// Registers of the address.
    address_reads: Registers,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline(never)]
    fn signed(&mut self, bytes: usize) -> Option<i64> {
        let field = self.code.get(self.at..self.at + bytes)?;
        self.at += bytes;
        let is_negative = field.last().is_some_and(|byte| *byte >= 0x80);
        let mut wide = [if is_negative { 0xFF } else { 0 }; 8];
        wide[..bytes].copy_from_slice(field);
        Some(i64::from_le_bytes(wide))
    }

    fn is_wide(&self) -> bool {
        self.rex & 8 != 0
    }

    /// Bytes of an operand that is not a byte.
    fn bytes(&self) -> u8 {
        if self.is_wide() {
            8
        } else if self.operand_16 {
            2
        } else {
            4
        }
    }

    /// An immediate as long as the operand, at most 4 bytes.
    #[inline(never)]
    fn immediate(&mut self) -> Option<i64> {
        let bytes = usize::from(self.bytes().min(4));
        self.signed(bytes)
    }

    #[inline(never)]
    fn operand(&mut self) -> Option<Operand> {
        let modrm = self.byte()?;
        let (mode, low) = (modrm >> 6, modrm & 7);
        let register = modrm >> 3 & 7 | (self.rex & 4) << 1;
        let mut operand = Operand { register, direct: None, address: None, address_reads: 0 };
        if mode == 3 {
            operand.direct = Some(low | (self.rex & 1) << 3);
            return Some(operand);
        }
        if low == 4 {
            let sib = self.byte()?;
            let (index, base) = (sib >> 3 & 7 | (self.rex & 2) << 2, sib & 7 | (self.rex & 1) << 3);
            if index != 4 {
                operand.address_reads |= 1 << index;
            }
            if mode == 0 && base & 7 == 5 {
                let address = self.signed(4)? as i32;
                operand.address = (index == 4).then_some(address);
                return Some(operand);
            }
            operand.address_reads |= 1 << base;
        } else if mode == 0 && low == 5 {
            return None; // relative to rip: a template that moves cannot use it
        } else {
            operand.address_reads |= 1 << (low | (self.rex & 1) << 3);
        }
        self.signed([0, 1, 4][usize::from(mode)])?;
        Some(operand)
    }
}

impl Operand {
    fn memory(&self, bytes: u8) -> Memory {
        match (self.direct, self.address) {
            (Some(_), _) => Memory::None,
            (None, Some(address)) => Memory::Word { address, bytes },
            (None, None) => Memory::Anywhere,
        }
    }
}

/// Register of a byte operand: without REX, numbers 4 to 7 are the second bytes of the first four.
fn byte_register(number: u8, rex: u8) -> Registers {
    if rex == 0 && (4..8).contains(&number) { 1 << (number - 4) } else { 1 << number }
}

impl Instruction {
    fn plain(at: usize) -> Instruction {
        Instruction {
            at,
            bytes: 0,
            kind: Kind::Plain,
            writes: 0,
            reads: 0,
            flags: Flags::Keeps,
            reads_flags: false,
            memory: Memory::None,
            stores: false,
            fences: false,
        }
    }

    #[inline(never)]
    fn with(mut self, reads: Registers, writes: Registers) -> Instruction {
        self.reads |= reads;
        self.writes |= writes;
        self
    }

    fn flags(mut self, flags: Flags) -> Instruction {
        self.flags = flags;
        self
    }

    fn needs_flags(mut self) -> Instruction {
        self.reads_flags = true;
        self
    }

    fn kind(mut self, kind: Kind) -> Instruction {
        self.kind = kind;
        self
    }

    fn reads_memory(mut self, memory: Memory) -> Instruction {
        self.memory = memory;
        self
    }

    fn stores_to(mut self, memory: Memory) -> Instruction {
        self.memory = memory;
        self.stores = memory != Memory::None;
        self
    }

    /// `operand` is read.
    #[inline(never)]
    fn source(self, operand: Operand, bytes: u8, rex: u8) -> Instruction {
        let direct = operand.direct.map_or(0, |register| size_mask(register, bytes, rex));
        self.with(operand.address_reads | direct, 0).reads_memory(operand.memory(bytes))
    }

    /// `operand` is written.
    #[inline(never)]
    fn target(self, operand: Operand, bytes: u8, rex: u8) -> Instruction {
        let direct = operand.direct.map_or(0, |register| size_mask(register, bytes, rex));
        self.with(operand.address_reads, direct).stores_to(operand.memory(bytes))
    }
}

fn size_mask(register: u8, bytes: u8, rex: u8) -> Registers {
    if bytes == 1 { byte_register(register, rex) } else { 1 << register }
}

/// The instruction at `at`. `None`: not one of those that are known.
pub fn decode(code: &[u8], at: usize) -> Option<Instruction> {
    let mut reader = Reader { code, at, rex: 0, operand_16: false };
    let mut repeats = false;
    let mut opcode = reader.byte()?;
    while matches!(opcode, 0x66 | 0xF3) {
        reader.operand_16 |= opcode == 0x66;
        repeats |= opcode == 0xF3;
        opcode = reader.byte()?;
    }
    if opcode & 0xF0 == 0x40 {
        reader.rex = opcode;
        opcode = reader.byte()?;
    }
    if repeats && !matches!(opcode, 0xA4 | 0xA5 | 0xAA | 0xAB) {
        return None;
    }
    let mut instruction =
        if opcode == 0x0F { two_bytes(&mut reader, at)? } else { one_byte(&mut reader, at, opcode, repeats)? };
    instruction.bytes = reader.at - at;
    Some(instruction)
}

/// The eight operations of 00 to 3F and of group 1; 7 is `cmp`, 2 and 3 read the carry.
#[inline(never)]
fn arithmetic(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let operation = opcode >> 3;
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let plain = Instruction::plain(at).flags(Flags::WritesAll);
    let plain = if matches!(operation, 2 | 3) { plain.needs_flags() } else { plain };
    if opcode & 7 >= 4 {
        let value = if bytes == 1 { reader.signed(1)? } else { reader.immediate()? };
        return Some(finish_arithmetic(plain.with(RAX, 0), operation, RAX, Some((0, value)), bytes));
    }
    let operand = reader.operand()?;
    let register = size_mask(operand.register, bytes, rex);
    let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
    if opcode & 2 == 0 {
        // op r/m, r
        let plain = plain.source(operand, bytes, rex).with(register, 0);
        let is_cleared = matches!(operation, 5 | 6) && direct == register && bytes >= 4;
        if is_cleared {
            return Some(Instruction { reads: 0, ..plain }.with(0, register));
        }
        let stores = operation != 7 && direct == 0;
        let done = finish_arithmetic(plain, operation, direct, None, bytes);
        return Some(Instruction { stores, ..done });
    }
    Some(finish_arithmetic(plain.source(operand, bytes, rex).with(register, 0), operation, register, None, bytes))
}

fn finish_arithmetic(
    instruction: Instruction,
    operation: u8,
    target: Registers,
    immediate: Option<(u8, i64)>,
    bytes: u8,
) -> Instruction {
    if operation != 7 {
        return instruction.with(target, target);
    }
    let whole = immediate.filter(|_| bytes == 8).map(|(register, value)| (register, value as u64));
    instruction.kind(Kind::Compare { immediate: whole })
}

#[inline(never)]
fn group_1(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let bytes = if opcode == 0x80 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let value = if opcode == 0x81 { reader.immediate()? } else { reader.signed(1)? };
    let operation = operand.register & 7;
    let plain = Instruction::plain(at).flags(Flags::WritesAll).source(operand, bytes, rex);
    let plain = if matches!(operation, 2 | 3) { plain.needs_flags() } else { plain };
    let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
    let immediate = operand.direct.map(|direct| (direct, value));
    let stores = operation != 7 && operand.direct.is_none();
    Some(Instruction { stores, ..finish_arithmetic(plain, operation, direct, immediate, bytes) })
}

#[inline(never)]
fn branch(reader: &mut Reader<'_>, at: usize, condition: u8, wide: bool) -> Option<Instruction> {
    reader.signed(if wide { 4 } else { 1 })?;
    Some(Instruction::plain(at).needs_flags().kind(Kind::Branch { condition, wide }))
}

#[inline(never)]
fn jump(reader: &mut Reader<'_>, at: usize, wide: bool) -> Option<Instruction> {
    reader.signed(if wide { 4 } else { 1 })?;
    Some(Instruction::plain(at).kind(Kind::Jump { wide }))
}

#[inline(never)]
fn one_byte(reader: &mut Reader<'_>, at: usize, opcode: u8, repeats: bool) -> Option<Instruction> {
    let plain = Instruction::plain(at);
    let rex = reader.rex;
    let low = opcode & 7 | (rex & 1) << 3;
    Some(match opcode {
        0x00..=0x3F if opcode & 7 <= 5 => return arithmetic(reader, at, opcode),
        0x50..=0x57 => plain.with(1 << low | RSP, RSP).stores_to(Memory::Stack),
        0x58..=0x5F => plain.with(RSP, 1 << low | RSP).reads_memory(Memory::Stack),
        0x63 => {
            let operand = reader.operand()?;
            plain.source(operand, 4, rex).with(0, 1 << operand.register)
        }
        0x70..=0x7F => return branch(reader, at, opcode & 15, false),
        0x80 | 0x81 | 0x83 => return group_1(reader, at, opcode),
        0x84 | 0x85 => {
            let bytes = if opcode == 0x84 { 1 } else { reader.bytes() };
            let operand = reader.operand()?;
            let register = size_mask(operand.register, bytes, rex);
            let test = plain.source(operand, bytes, rex).with(register, 0).flags(Flags::WritesAll);
            test.kind(Kind::Compare { immediate: None })
        }
        0x88..=0x8B => return move_instruction(reader, at, opcode),
        0x8D => {
            let operand = reader.operand()?;
            if operand.direct.is_some() {
                return None;
            }
            plain.with(operand.address_reads, 1 << operand.register)
        }
        0x90 if rex == 0 => plain,
        0xA4 | 0xA5 => string(plain, repeats).with(RSI, RSI),
        0xAA | 0xAB => string(plain, repeats).with(RAX, 0),
        0xA8 | 0xA9 => {
            if opcode == 0xA8 {
                reader.signed(1)?
            } else {
                reader.immediate()?
            };
            plain.with(RAX, 0).flags(Flags::WritesAll).kind(Kind::Compare { immediate: None })
        }
        0xB0..=0xB7 => {
            reader.byte()?;
            let register = byte_register(low, rex);
            plain.with(register, register)
        }
        0xB8..=0xBF => {
            let value = match reader.bytes() {
                8 => reader.signed(8)? as u64,
                4 => reader.signed(4)? as u32 as u64,
                _ => return None,
            };
            plain.with(0, 1 << low).kind(Kind::Constant { register: low, value })
        }
        0xC0 | 0xC1 | 0xD0..=0xD3 => return shift(reader, at, opcode),
        0xC6 | 0xC7 => {
            let bytes = if opcode == 0xC6 { 1 } else { reader.bytes() };
            let operand = reader.operand()?;
            let value = if bytes == 1 { reader.signed(1)? } else { reader.immediate()? };
            if operand.register & 7 != 0 {
                return None;
            }
            match operand.direct {
                Some(register) if bytes == 8 => {
                    plain.with(0, 1 << register).kind(Kind::Constant { register, value: value as u64 })
                }
                Some(_) => return None,
                None => plain.target(operand, bytes, rex),
            }
        }
        0xC3 => plain.kind(Kind::Exit),
        0xE9 => return jump(reader, at, true),
        0xEB => return jump(reader, at, false),
        0xF6 | 0xF7 => return group_3(reader, at, opcode),
        0xFC => plain, // cld
        0xFE | 0xFF => return group_5(reader, at, opcode),
        _ => return None,
    })
}

fn string(plain: Instruction, repeats: bool) -> Instruction {
    let counted = if repeats { RCX } else { 0 };
    plain.with(RDI | counted, RDI | counted).stores_to(Memory::Anywhere)
}

#[inline(never)]
fn move_instruction(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let register = size_mask(operand.register, bytes, rex);
    // A part of a register is written: the rest of it is read.
    let merges = |target: Registers| if bytes < 4 { target } else { 0 };
    if opcode & 2 == 0 {
        let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
        let plain = Instruction::plain(at).target(operand, bytes, rex).with(register | merges(direct), 0);
        return Some(match (operand.direct, operand.address) {
            (Some(to), _) if bytes == 8 => plain.kind(Kind::Copy { register: to, from: operand.register }),
            (None, Some(address)) if bytes == 8 => plain.kind(Kind::Store { register: operand.register, address }),
            _ => plain,
        });
    }
    let plain = Instruction::plain(at).source(operand, bytes, rex).with(merges(register), register);
    Some(match (operand.direct, operand.address) {
        (Some(from), _) if bytes == 8 => plain.kind(Kind::Copy { register: operand.register, from }),
        (None, Some(address)) if bytes >= 4 => {
            let width = if bytes == 8 { Width::Quad } else { Width::Double };
            plain.kind(Kind::Load { register: operand.register, address, width })
        }
        _ => plain,
    })
}

#[inline(never)]
fn shift(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    if operand.register & 7 == 2 || operand.register & 7 == 3 {
        return None; // rotations through the carry
    }
    let counted = if opcode >= 0xD2 { RCX } else { 0 };
    if opcode < 0xD0 {
        reader.byte()?;
    }
    let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
    Some(Instruction::plain(at).target(operand, bytes, rex).with(direct | counted, 0).flags(Flags::WritesSome))
}

#[inline(never)]
fn group_3(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let bytes = if opcode == 0xF6 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
    let plain = Instruction::plain(at);
    Some(match operand.register & 7 {
        0 => {
            if bytes == 1 {
                reader.signed(1)?
            } else {
                reader.immediate()?
            };
            let test = plain.source(operand, bytes, rex).flags(Flags::WritesAll);
            test.kind(Kind::Compare { immediate: None })
        }
        2 => plain.target(operand, bytes, rex).with(direct, 0),
        3 => plain.target(operand, bytes, rex).with(direct, 0).flags(Flags::WritesAll),
        4..=7 if bytes >= 4 => plain.source(operand, bytes, rex).with(RAX | RDX, RAX | RDX).flags(Flags::WritesAll),
        _ => return None,
    })
}

#[inline(never)]
fn group_5(reader: &mut Reader<'_>, at: usize, opcode: u8) -> Option<Instruction> {
    let bytes = if opcode == 0xFE { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let direct = operand.direct.map_or(0, |direct| size_mask(direct, bytes, rex));
    let plain = Instruction::plain(at);
    Some(match operand.register & 7 {
        // `inc` and `dec` leave the carry.
        0 | 1 => plain.target(operand, bytes, rex).with(direct, 0).flags(Flags::WritesSome),
        4 if opcode == 0xFF => plain.source(operand, 8, rex).kind(Kind::Exit),
        _ => return None,
    })
}

#[inline(never)]
fn two_bytes(reader: &mut Reader<'_>, at: usize) -> Option<Instruction> {
    let opcode = reader.byte()?;
    let rex = reader.rex;
    let plain = Instruction::plain(at);
    Some(match opcode {
        // clac, stac, rdtscp
        0x01 => match reader.byte()? {
            0xCA | 0xCB => plain,
            0xF9 => plain.with(0, RAX | RDX | RCX),
            _ => return None,
        },
        0x05 | 0x07 => plain.kind(Kind::Exit),
        0x1F => {
            reader.operand()?;
            plain
        }
        0x31 => plain.with(0, RAX | RDX),
        0x40..=0x4F => {
            let operand = reader.operand()?;
            let register = 1 << operand.register;
            plain.source(operand, reader.bytes(), rex).with(register, register).needs_flags()
        }
        0x80..=0x8F => return branch(reader, at, opcode & 15, true),
        0x90..=0x9F => {
            let operand = reader.operand()?;
            let direct = operand.direct.map_or(0, |direct| byte_register(direct, rex));
            plain.target(operand, 1, rex).with(direct, 0).needs_flags()
        }
        0xA2 => plain.with(RAX | RCX, RAX | RBX | RCX | RDX),
        0xA3 | 0xAB | 0xB3 | 0xBB => {
            let operand = reader.operand()?;
            let direct = operand.direct.map_or(0, |direct| 1 << direct);
            let bit = plain.with(1 << operand.register | direct, 0).flags(Flags::WritesSome);
            // With a register as number the bit can lie far from the word.
            let memory = if operand.direct.is_some() { Memory::None } else { Memory::Anywhere };
            let writes = if opcode == 0xA3 { 0 } else { direct };
            let bit = bit.with(operand.address_reads, writes);
            if opcode == 0xA3 { bit.reads_memory(memory) } else { bit.stores_to(memory) }
        }
        0xAE => match reader.byte()? {
            0xE8 | 0xF0 | 0xF8 => Instruction { fences: true, ..plain },
            _ => return None,
        },
        0xAF | 0xBC | 0xBD => {
            let operand = reader.operand()?;
            let register = 1 << operand.register;
            plain.source(operand, reader.bytes(), rex).with(register, register).flags(Flags::WritesSome)
        }
        0xB6 | 0xB7 | 0xBE | 0xBF => {
            let bytes = if opcode & 1 == 0 { 1 } else { 2 };
            let operand = reader.operand()?;
            let extended = plain.source(operand, bytes, rex).with(0, 1 << operand.register);
            match operand.address {
                Some(address) if opcode < 0xB8 && reader.bytes() >= 4 => {
                    let width = if bytes == 1 { Width::Byte } else { Width::Half };
                    extended.kind(Kind::Load { register: operand.register, address, width })
                }
                _ => extended,
            }
        }
        0xBA => {
            let operand = reader.operand()?;
            reader.byte()?;
            let direct = operand.direct.map_or(0, |direct| 1 << direct);
            if operand.register & 7 < 4 {
                return None;
            }
            let bit = plain.with(direct, 0).flags(Flags::WritesSome);
            if operand.register & 7 == 4 {
                bit.source(operand, reader.bytes(), rex)
            } else {
                bit.target(operand, reader.bytes(), rex)
            }
        }
        0xC8..=0xCF => {
            let register = 1 << (opcode & 7 | (rex & 1) << 3);
            plain.with(register, register)
        }
        _ => return None,
    })
}
