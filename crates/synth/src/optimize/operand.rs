//! Reading the bytes of one instruction: the cursor, the operand that ModRM names, immediates (SDM vol. 2, chapter 2).

use super::instruction::{Instruction, Memory, Registers};

/// A cursor over one instruction, and what is known of it so far.
pub struct Reader<'a> {
    pub code: &'a [u8],
    pub at: usize,
    pub rex: u8,
    pub operand_16: bool,
    pub operand: Operand,
    pub found: &'a mut Instruction,
}

/// What ModRM names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Register,
    /// A bare address.
    Address,
    Anywhere,
}

/// The operand that ModRM names.
#[derive(Clone, Copy)]
pub struct Operand {
    pub place: Place,
    /// `reg` field with REX.R.
    pub register: u8,
    /// The other register, if the operand is one.
    pub direct: u8,
    /// Registers of the address.
    pub address_reads: Registers,
    /// If the operand is a bare one.
    pub address: i32,
}

impl Reader<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline(never)]
    pub fn signed(&mut self, bytes: usize) -> Option<i64> {
        let field = self.code.get(self.at..)?;
        self.at += bytes;
        Some(match bytes {
            4 => i64::from(i32::from_le_bytes(*field.first_chunk()?)),
            1 => i64::from(*field.first()? as i8),
            2 => i64::from(i16::from_le_bytes(*field.first_chunk()?)),
            _ => i64::from_le_bytes(*field.first_chunk()?),
        })
    }

    pub fn is_wide(&self) -> bool {
        self.rex & 8 != 0
    }

    /// Bytes of an operand that is not a byte.
    pub fn bytes(&self) -> u8 {
        if self.is_wide() {
            8
        } else if self.operand_16 {
            2
        } else {
            4
        }
    }

    /// An immediate as long as the operand, at most 4 bytes.
    pub fn immediate(&mut self) -> Option<i64> {
        let bytes = usize::from(self.bytes().min(4));
        self.signed(bytes)
    }

    pub fn read_operand(&mut self) -> Option<()> {
        let (modrm, rex) = (self.byte()?, self.rex);
        let (mode, low) = (modrm >> 6, modrm & 7);
        let operand = &mut self.operand;
        operand.register = modrm >> 3 & 7 | (rex & 4) << 1;
        if mode == 3 {
            operand.place = Place::Register;
            operand.direct = low | (rex & 1) << 3;
            return Some(());
        }
        operand.place = Place::Anywhere;
        if low == 4 {
            let sib = *self.code.get(self.at)?;
            self.at += 1;
            let (index, base) = (sib >> 3 & 7 | (rex & 2) << 2, sib & 7 | (rex & 1) << 3);
            if index != 4 {
                operand.address_reads |= 1 << index;
            }
            if mode == 0 && base & 7 == 5 {
                if index == 4 {
                    operand.place = Place::Address;
                }
                operand.address = i32::from_le_bytes(*self.code.get(self.at..)?.first_chunk()?);
                self.at += 4;
                return Some(());
            }
            operand.address_reads |= 1 << base;
        } else if mode == 0 && low == 5 {
            return None; // relative to rip: a template that moves cannot use it
        } else {
            operand.address_reads |= 1 << (low | (rex & 1) << 3);
        }
        // What is behind the code is missed by whoever reads on: an instruction ends inside.
        self.at += [0, 1, 4][usize::from(mode)];
        (self.at <= self.code.len()).then_some(())
    }
}

impl Operand {
    pub fn is_register(&self) -> bool {
        self.place == Place::Register
    }

    /// The register, if it is one.
    pub fn mask(&self, bytes: u8, rex: u8) -> Registers {
        if self.is_register() { size_mask(self.direct, bytes, rex) } else { 0 }
    }

    pub fn memory(&self, bytes: u8) -> Memory {
        match self.place {
            Place::Register => Memory::None,
            Place::Address => Memory::Word { address: self.address, bytes },
            Place::Anywhere => Memory::Anywhere,
        }
    }
}

/// Register of a byte operand: without REX, numbers 4 to 7 are the second bytes of the first four.
pub fn byte_register(number: u8, rex: u8) -> Registers {
    if rex == 0 && (4..8).contains(&number) { 1 << (number - 4) } else { 1 << number }
}

pub fn size_mask(register: u8, bytes: u8, rex: u8) -> Registers {
    if bytes == 1 { byte_register(register, rex) } else { 1 << register }
}
