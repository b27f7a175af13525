//! A decoder for the instructions that templates are made of (SDM vol. 2). What it does not know it refuses, and then
//! nothing is optimized: a wrong guess would be a wrong kernel.
use super::instruction::{Flags, Instruction, Kind, Memory, Registers, Width};
use super::operand::{Operand, Place, Reader, byte_register, size_mask};

const RAX: Registers = 1;
const RCX: Registers = 1 << 1;
const RDX: Registers = 1 << 2;
const RBX: Registers = 1 << 3;
const RSP: Registers = 1 << 4;
const RSI: Registers = 1 << 6;
const RDI: Registers = 1 << 7;

impl Instruction {
    /// One that does nothing.
    pub(super) const fn plain() -> Instruction {
        Instruction {
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

/// The instruction at `at`. `None`: not one of those that are known.
pub fn decode(code: &[u8], at: usize) -> Option<Instruction> {
    let mut found = Instruction::plain();
    read(code, at, &mut found)?;
    Some(found)
}

/// The same into `found`, which is a plain one.
pub(super) fn read(code: &[u8], at: usize, found: &mut Instruction) -> Option<()> {
    let operand = Operand { place: Place::Anywhere, register: 0, direct: 0, address_reads: 0, address: 0 };
    let mut reader = Reader { code, at, rex: 0, operand_16: false, operand, found };
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
    let has_two = opcode == 0x0F;
    if has_two {
        opcode = reader.byte()?;
    }
    if HAS_MODRM[usize::from(has_two)][usize::from(opcode >> 5)] & 1 << (opcode & 31) != 0 {
        reader.read_operand()?;
    }
    if has_two {
        two_bytes(&mut reader, opcode)?;
    } else {
        one_byte(&mut reader, opcode, repeats)?;
    }
    reader.found.bytes = (reader.at - at) as u8;
    Some(())
}

/// Bit per opcode of one byte, and behind 0F, of those that are known: whether ModRM follows.
static HAS_MODRM: [[u32; 8]; 2] = [
    opcodes(&[
        [0x00, 0x03],
        [0x08, 0x0B],
        [0x10, 0x13],
        [0x18, 0x1B],
        [0x20, 0x23],
        [0x28, 0x2B],
        [0x30, 0x33],
        [0x38, 0x3B],
        [0x63, 0x63],
        [0x80, 0x81],
        [0x83, 0x85],
        [0x88, 0x8B],
        [0x8D, 0x8D],
        [0xC0, 0xC1],
        [0xC6, 0xC7],
        [0xD0, 0xD3],
        [0xF6, 0xF7],
        [0xFE, 0xFF],
    ]),
    opcodes(&[
        [0x1F, 0x1F],
        [0x40, 0x4F],
        [0x90, 0x9F],
        [0xA3, 0xA3],
        [0xAB, 0xAB],
        [0xAF, 0xAF],
        [0xB3, 0xB3],
        [0xB6, 0xB7],
        [0xBA, 0xBF],
    ]),
];

const fn opcodes(ranges: &[[u8; 2]]) -> [u32; 8] {
    let mut bits = [0; 8];
    let mut number = 0;
    while number < ranges.len() {
        let [mut opcode, last] = ranges[number];
        loop {
            bits[(opcode >> 5) as usize] |= 1 << (opcode & 31);
            if opcode == last {
                break;
            }
            opcode += 1;
        }
        number += 1;
    }
    bits
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
        finish_arithmetic(reader.found, operation, RAX, Some((0, value)), bytes);
        return Some(());
    }
    let operand = reader.operand;
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
    let whole = immediate.filter(|_| bytes == 8).map(|(register, value)| (register, value as i32));
    found.kind(Kind::Compare { immediate: whole });
}

fn group_1(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode == 0x80 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand;
    let value = if opcode == 0x81 { reader.immediate()? } else { reader.signed(1)? };
    let operation = operand.register & 7;
    let found = reader.found.source(operand, bytes, rex).flags(Flags::WritesAll);
    found.reads_flags = matches!(operation, 2 | 3);
    found.stores = operation != 7 && !operand.is_register();
    let immediate = operand.is_register().then_some((operand.direct, value));
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
            let operand = reader.operand;
            reader.found.source(operand, 4, rex).with(0, 1 << operand.register);
        }
        0x68 | 0x6A if !reader.operand_16 => {
            reader.signed(if opcode == 0x68 { 4 } else { 1 })?;
            reader.found.with(RSP, RSP).stores_to(Memory::Stack);
        }
        0x70..=0x7F => return branch(reader, opcode & 15, false),
        0x80 | 0x81 | 0x83 => return group_1(reader, opcode),
        0x84 | 0x85 => {
            let bytes = if opcode == 0x84 { 1 } else { reader.bytes() };
            let operand = reader.operand;
            let register = size_mask(operand.register, bytes, rex);
            let test = reader.found.source(operand, bytes, rex).with(register, 0).flags(Flags::WritesAll);
            test.kind(Kind::Compare { immediate: None });
        }
        0x88..=0x8B => return move_instruction(reader, opcode),
        0x8D => {
            let operand = reader.operand;
            if operand.is_register() {
                return None;
            }
            reader.found.with(operand.address_reads, 1 << operand.register);
        }
        0x90 if rex == 0 => {}
        0xA4 | 0xA5 => string(reader.found, repeats, RSI, RSI),
        0xAA | 0xAB => string(reader.found, repeats, RAX, 0),
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
        0xFC => {} // cld
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
    let operand = reader.operand;
    let value = if bytes == 1 { reader.signed(1)? } else { reader.immediate()? };
    if operand.register & 7 != 0 {
        return None;
    }
    if !operand.is_register() {
        reader.found.target(operand, bytes, rex);
    } else if bytes == 8 {
        let register = operand.direct;
        reader.found.with(0, 1 << register).kind(Kind::Constant { register, value: value as u64 });
    } else {
        return None;
    }
    Some(())
}

fn move_instruction(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand;
    let register = size_mask(operand.register, bytes, rex);
    // A part of a register is written: the rest of it is read.
    let merges = |target: Registers| if bytes < 4 { target } else { 0 };
    let found = &mut reader.found;
    if opcode & 2 == 0 {
        let direct = operand.mask(bytes, rex);
        found.target(operand, bytes, rex).with(register | merges(direct), 0);
        found.kind = match operand.place {
            Place::Register if bytes == 8 => Kind::Copy { register: operand.direct, from: operand.register },
            Place::Address if bytes == 8 => Kind::Store { register: operand.register, address: operand.address },
            _ => Kind::Plain,
        };
        return Some(());
    }
    found.source(operand, bytes, rex).with(merges(register), register);
    let register = operand.register;
    found.kind = match operand.place {
        Place::Register if bytes == 8 => Kind::Copy { register, from: operand.direct },
        Place::Address if bytes == 8 => Kind::Load { register, address: operand.address, width: Width::Quad },
        Place::Address if bytes == 4 => Kind::Load { register, address: operand.address, width: Width::Double },
        _ => Kind::Plain,
    };
    Some(())
}

fn shift(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
    let bytes = if opcode & 1 == 0 { 1 } else { reader.bytes() };
    let rex = reader.rex;
    let operand = reader.operand;
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
    let operand = reader.operand;
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
    let operand = reader.operand;
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
    let (operand, rex) = (reader.operand, reader.rex);
    let direct = operand.mask(8, rex);
    // The bit can lie far from the word.
    let memory = if operand.is_register() { Memory::None } else { Memory::Anywhere };
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
    let operand = reader.operand;
    reader.byte()?;
    if operand.register & 7 < 4 {
        return None;
    }
    let (bytes, rex) = (reader.bytes(), reader.rex);
    let direct = operand.mask(8, rex);
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
    let operand = reader.operand;
    let (register, is_whole) = (operand.register, reader.bytes() >= 4);
    let found = reader.found.source(operand, bytes, reader.rex).with(0, 1 << register);
    if operand.place == Place::Address && opcode < 0xB8 && is_whole {
        let width = if bytes == 1 { Width::Byte } else { Width::Half };
        found.kind(Kind::Load { register, address: operand.address, width });
    }
    Some(())
}

fn two_bytes(reader: &mut Reader<'_>, opcode: u8) -> Option<()> {
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
        0x1F => {}
        0x31 => {
            reader.found.with(0, RAX | RDX);
        }
        0x40..=0x4F => {
            let operand = reader.operand;
            let register = 1 << operand.register;
            reader.found.source(operand, bytes, rex).with(register, register).needs_flags();
        }
        0x80..=0x8F => return branch(reader, opcode & 15, true),
        0x90..=0x9F => {
            let operand = reader.operand;
            let direct = operand.mask(1, rex);
            reader.found.target(operand, 1, rex).with(direct, 0).needs_flags();
        }
        0xA2 => {
            reader.found.with(RAX | RCX, RAX | RBX | RCX | RDX);
        }
        0xA3 | 0xAB | 0xB3 | 0xBB => return bit(reader, opcode),
        // lfence, mfence, sfence; behind 0x66 they are something else
        0xAE if !reader.operand_16 => match reader.byte()? {
            0xE8 | 0xF0 | 0xF8 => reader.found.fences = true,
            _ => return None,
        },
        0xAF | 0xBC | 0xBD => {
            let operand = reader.operand;
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
