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

/// A cursor over one instruction, and what is known of it so far.
struct Reader<'a> {
    code: &'a [u8],
    at: usize,
    rex: u8,
    operand_16: bool,
    found: Instruction,
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
        let field = self.code.get(self.at..)?;
        self.at += bytes;
        Some(match bytes {
            0 => 0,
            1 => i64::from(*field.first()? as i8),
            2 => i64::from(i16::from_le_bytes(*field.first_chunk()?)),
            4 => i64::from(i32::from_le_bytes(*field.first_chunk()?)),
            _ => i64::from_le_bytes(*field.first_chunk()?),
        })
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
    /// The register, if it is one.
    fn mask(&self, bytes: u8, rex: u8) -> Registers {
        self.direct.map_or(0, |register| size_mask(register, bytes, rex))
    }

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

    fn with(&mut self, reads: Registers, writes: Registers) -> &mut Instruction {
        self.reads |= reads;
        self.writes |= writes;
        self
    }

    fn flags(&mut self, flags: Flags) -> &mut Instruction {
        self.flags = flags;
        self
    }

    fn needs_flags(&mut self) -> &mut Instruction {
        self.reads_flags = true;
        self
    }

    fn kind(&mut self, kind: Kind) -> &mut Instruction {
        self.kind = kind;
        self
    }

    fn reads_memory(&mut self, memory: Memory) -> &mut Instruction {
        self.memory = memory;
        self
    }

    fn stores_to(&mut self, memory: Memory) -> &mut Instruction {
        self.memory = memory;
        self.stores = memory != Memory::None;
        self
    }

    /// `operand` is read.
    #[inline(never)]
    fn source(&mut self, operand: Operand, bytes: u8, rex: u8) -> &mut Instruction {
        let direct = operand.mask(bytes, rex);
        self.with(operand.address_reads | direct, 0).reads_memory(operand.memory(bytes))
    }

    /// `operand` is written.
    #[inline(never)]
    fn target(&mut self, operand: Operand, bytes: u8, rex: u8) -> &mut Instruction {
        let direct = operand.mask(bytes, rex);
        self.with(operand.address_reads, direct).stores_to(operand.memory(bytes))
    }
}

fn size_mask(register: u8, bytes: u8, rex: u8) -> Registers {
    if bytes == 1 { byte_register(register, rex) } else { 1 << register }
}

/// The instruction at `at`. `None`: not one of those that are known.
pub fn decode(code: &[u8], at: usize) -> Option<Instruction> {
    let mut reader = Reader { code, at, rex: 0, operand_16: false, found: Instruction::plain(at) };
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
    if opcode == 0x0F {
        two_bytes(&mut reader)?;
    } else {
        one_byte(&mut reader, opcode, repeats)?;
    }
    reader.found.bytes = reader.at - at;
    Some(reader.found)
}

/// The eight operations of 00 to 3F and of group 1; 7 is `cmp`, 2 and 3 read the carry.
fn arithmetic(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let operation = opcode >> 3;
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    reader.found.flags = Flags::WritesAll;
    reader.found.reads_flags = matches!(operation, 2 | 3);
    if opcode & 7 >= 4 {
        let value = if bytes == 1 { reader.signed(1)? } else { reader.immediate()? };
        reader.found.with(RAX, 0);
        finish_arithmetic(&mut reader.found, operation, RAX, Some((0, value)), bytes);
        return Some(());
    }
    let operand = reader.operand()?;
    let register = size_mask(operand.register, bytes, rex);
    let direct = operand.mask(bytes, rex);
    let found = reader.found.source(operand, bytes, rex).with(register, 0);
    if opcode & 2 != 0 {
        finish_arithmetic(found, operation, register, None, bytes);
        return Some(());
    }
    // op r/m, r
    let is_cleared = matches!(operation, 5 | 6) && direct == register && bytes >= 4;
    if is_cleared {
        found.reads = 0;
        found.with(0, register);
        return Some(());
    }
    found.stores = operation != 7 && direct == 0;
    finish_arithmetic(found, operation, direct, None, bytes);
    Some(())
}

fn finish_arithmetic(
    found: &mut Instruction,
    operation: u8,
    target: Registers,
    immediate: Option<(u8, i64)>,
    bytes: u8,
) {
    if operation != 7 {
        found.with(target, target);
        return;
    }
    let whole = immediate.filter(|_| bytes == 8).map(|(register, value)| (register, value as u64));
    found.kind(Kind::Compare { immediate: whole });
}

fn group_1(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode == 0x80 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let value = if opcode == 0x81 { reader.immediate()? } else { reader.signed(1)? };
    let operation = operand.register & 7;
    let found = reader.found.source(operand, bytes, rex).flags(Flags::WritesAll);
    found.reads_flags = matches!(operation, 2 | 3);
    found.stores = operation != 7 && operand.direct.is_none();
    let immediate = operand.direct.map(|direct| (direct, value));
    finish_arithmetic(found, operation, operand.mask(bytes, rex), immediate, bytes);
    Some(())
}

fn branch(reader: &mut Reader<'_>, condition: u8, wide: bool) -> Option<()> {
    reader.signed(if wide { 4 } else { 1 })?;
    reader.found.needs_flags().kind(Kind::Branch { condition, wide });
    Some(())
}

fn jump(reader: &mut Reader<'_>, wide: bool) -> Option<()> {
    reader.signed(if wide { 4 } else { 1 })?;
    reader.found.kind(Kind::Jump { wide });
    Some(())
}

fn one_byte(reader: &mut Reader<'_>, opcode: u8, repeats: bool) -> Option<()> {
    let rex = reader.rex;
    let low = opcode & 7 | (rex & 1) << 3;
    match opcode {
        0x00..=0x3F if opcode & 7 <= 5 => return arithmetic(reader, opcode),
        0x50..=0x57 => {
            reader.found.with(1 << low | RSP, RSP).stores_to(Memory::Stack);
        }
        0x58..=0x5F => {
            reader.found.with(RSP, 1 << low | RSP).reads_memory(Memory::Stack);
        }
        0x63 => {
            let operand = reader.operand()?;
            reader.found.source(operand, 4, rex).with(0, 1 << operand.register);
        }
        0x70..=0x7F => return branch(reader, opcode & 15, false),
        0x80 | 0x81 | 0x83 => return group_1(reader, opcode),
        0x84 | 0x85 => {
            let bytes = if opcode == 0x84 { 1 } else { reader.bytes() };
            let operand = reader.operand()?;
            let register = size_mask(operand.register, bytes, rex);
            let test = reader.found.source(operand, bytes, rex).with(register, 0).flags(Flags::WritesAll);
            test.kind(Kind::Compare { immediate: None });
        }
        0x88..=0x8B => return move_instruction(reader, opcode),
        0x8D => {
            let operand = reader.operand()?;
            if operand.direct.is_some() {
                return None;
            }
            reader.found.with(operand.address_reads, 1 << operand.register);
        }
        0x90 if rex == 0 => {}
        0xA4 | 0xA5 => string(&mut reader.found, repeats, RSI, RSI),
        0xAA | 0xAB => string(&mut reader.found, repeats, RAX, 0),
        0xA8 | 0xA9 => {
            if opcode == 0xA8 {
                reader.signed(1)?
            } else {
                reader.immediate()?
            };
            reader.found.with(RAX, 0).flags(Flags::WritesAll).kind(Kind::Compare { immediate: None });
        }
        0xB0..=0xB7 => {
            reader.byte()?;
            let register = byte_register(low, rex);
            reader.found.with(register, register);
        }
        0xB8..=0xBF => {
            let value = match reader.bytes() {
                8 => reader.signed(8)? as u64,
                4 => reader.signed(4)? as u32 as u64,
                _ => return None,
            };
            reader.found.with(0, 1 << low).kind(Kind::Constant { register: low, value });
        }
        0xC0 | 0xC1 | 0xD0..=0xD3 => return shift(reader, opcode),
        0xC6 | 0xC7 => return move_immediate(reader, opcode),
        0xC3 => {
            reader.found.kind(Kind::Exit);
        }
        0xE9 => return jump(reader, true),
        0xEB => return jump(reader, false),
        0xF6 | 0xF7 => return group_3(reader, opcode),
        0xFE | 0xFF => return group_5(reader, opcode),
        _ => return None,
    }
    Some(())
}

fn string(found: &mut Instruction, repeats: bool, reads: Registers, writes: Registers) {
    let counted = if repeats { RCX } else { 0 };
    found.with(reads | RDI | counted, writes | RDI | counted).stores_to(Memory::Anywhere);
}

fn move_immediate(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode == 0xC6 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let value = if bytes == 1 { reader.signed(1)? } else { reader.immediate()? };
    if operand.register & 7 != 0 {
        return None;
    }
    match operand.direct {
        Some(register) if bytes == 8 => {
            reader.found.with(0, 1 << register).kind(Kind::Constant { register, value: value as u64 });
        }
        Some(_) => return None,
        None => {
            reader.found.target(operand, bytes, rex);
        }
    }
    Some(())
}

fn move_instruction(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let register = size_mask(operand.register, bytes, rex);
    // A part of a register is written: the rest of it is read.
    let merges = |target: Registers| if bytes < 4 { target } else { 0 };
    let found = &mut reader.found;
    if opcode & 2 == 0 {
        let direct = operand.mask(bytes, rex);
        found.target(operand, bytes, rex).with(register | merges(direct), 0);
        match (operand.direct, operand.address) {
            (Some(to), _) if bytes == 8 => found.kind = Kind::Copy { register: to, from: operand.register },
            (None, Some(address)) if bytes == 8 => {
                found.kind = Kind::Store { register: operand.register, address };
            }
            _ => {}
        }
        return Some(());
    }
    found.source(operand, bytes, rex).with(merges(register), register);
    match (operand.direct, operand.address) {
        (Some(from), _) if bytes == 8 => found.kind = Kind::Copy { register: operand.register, from },
        (None, Some(address)) if bytes >= 4 => {
            let width = if bytes == 8 { Width::Quad } else { Width::Double };
            found.kind = Kind::Load { register: operand.register, address, width };
        }
        _ => {}
    }
    Some(())
}

fn shift(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
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
    let direct = operand.mask(bytes, rex);
    reader.found.target(operand, bytes, rex).with(direct | counted, 0).flags(Flags::WritesSome);
    Some(())
}

fn group_3(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode == 0xF6 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let direct = operand.mask(bytes, rex);
    match operand.register & 7 {
        0 => {
            if bytes == 1 {
                reader.signed(1)?
            } else {
                reader.immediate()?
            };
            let test = reader.found.source(operand, bytes, rex).flags(Flags::WritesAll);
            test.kind(Kind::Compare { immediate: None });
        }
        2 => {
            reader.found.target(operand, bytes, rex).with(direct, 0);
        }
        3 => {
            reader.found.target(operand, bytes, rex).with(direct, 0).flags(Flags::WritesAll);
        }
        4..=7 if bytes >= 4 => {
            let found = reader.found.source(operand, bytes, rex);
            found.with(RAX | RDX, RAX | RDX).flags(Flags::WritesAll);
        }
        _ => return None,
    }
    Some(())
}

fn group_5(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode == 0xFE { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand()?;
    let direct = operand.mask(bytes, rex);
    match operand.register & 7 {
        // `inc` and `dec` leave the carry.
        0 | 1 => {
            reader.found.target(operand, bytes, rex).with(direct, 0).flags(Flags::WritesSome);
        }
        4 if opcode == 0xFF => {
            reader.found.source(operand, 8, rex).kind(Kind::Exit);
        }
        _ => return None,
    }
    Some(())
}

/// `bt`, `bts`, `btr`, `btc` with a register as number.
fn bit(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let operand = reader.operand()?;
    let direct = operand.direct.map_or(0, |direct| 1 << direct);
    // The bit can lie far from the word.
    let memory = if operand.direct.is_some() { Memory::None } else { Memory::Anywhere };
    let reads = 1 << operand.register | direct | operand.address_reads;
    if opcode == 0xA3 {
        reader.found.with(reads, 0).reads_memory(memory);
    } else {
        reader.found.with(reads, direct).stores_to(memory);
    }
    reader.found.flags(Flags::WritesSome);
    Some(())
}

/// The same with a constant as number.
fn constant_bit(reader: &mut Reader<'_>) -> Option<()> {
    let operand = reader.operand()?;
    reader.byte()?;
    if operand.register & 7 < 4 {
        return None;
    }
    let (bytes, rex) = (reader.bytes(), reader.rex);
    let direct = operand.direct.map_or(0, |direct| 1 << direct);
    let found = reader.found.with(direct, 0).flags(Flags::WritesSome);
    if operand.register & 7 == 4 {
        found.source(operand, bytes, rex);
    } else {
        found.target(operand, bytes, rex);
    }
    Some(())
}

/// `movzx` and `movsx`.
fn extended(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode & 1 == 0 { 1 } else { 2 };
    let operand = reader.operand()?;
    let register = operand.register;
    let found = reader.found.source(operand, bytes, reader.rex).with(0, 1 << register);
    if let Some(address) = operand.address.filter(|_| opcode < 0xB8) {
        let width = if bytes == 1 { Width::Byte } else { Width::Half };
        found.kind(Kind::Load { register, address, width });
    }
    Some(())
}

fn two_bytes(reader: &mut Reader<'_>) -> Option<()> {
    let opcode = reader.byte()?;
    let (rex, bytes) = (reader.rex, reader.bytes());
    match opcode {
        // clac, stac, rdtscp
        0x01 => match reader.byte()? {
            0xCA | 0xCB => {}
            0xF9 => {
                reader.found.with(0, RAX | RDX | RCX);
            }
            _ => return None,
        },
        0x05 | 0x07 => {
            reader.found.kind(Kind::Exit);
        }
        0x1F => {
            reader.operand()?;
        }
        0x31 => {
            reader.found.with(0, RAX | RDX);
        }
        0x40..=0x4F => {
            let operand = reader.operand()?;
            let register = 1 << operand.register;
            reader.found.source(operand, bytes, rex).with(register, register).needs_flags();
        }
        0x80..=0x8F => return branch(reader, opcode & 15, true),
        0x90..=0x9F => {
            let operand = reader.operand()?;
            let direct = operand.mask(1, rex);
            reader.found.target(operand, 1, rex).with(direct, 0).needs_flags();
        }
        0xA2 => {
            reader.found.with(RAX | RCX, RAX | RBX | RCX | RDX);
        }
        0xA3 | 0xAB | 0xB3 | 0xBB => return bit(reader, opcode),
        0xAE => match reader.byte()? {
            0xE8 | 0xF0 | 0xF8 => reader.found.fences = true,
            _ => return None,
        },
        0xAF | 0xBC | 0xBD => {
            let operand = reader.operand()?;
            let register = 1 << operand.register;
            reader.found.source(operand, bytes, rex).with(register, register).flags(Flags::WritesSome);
        }
        0xB6 | 0xB7 | 0xBE | 0xBF => return extended(reader, opcode),
        0xBA => return constant_bit(reader),
        0xC8..=0xCF => {
            let register = 1 << (opcode & 7 | (rex & 1) << 3);
            reader.found.with(register, register);
        }
        _ => return None,
    }
    Some(())
}
