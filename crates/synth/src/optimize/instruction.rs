//! What the optimizer knows of an instruction.

use super::decode::read;

/// Bit per register: 0 is rax, 4 is rsp.
pub type Registers = u16;

/// What an instruction does to the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flags {
    Keeps,
    /// Writes some, or none for some counts.
    WritesSome,
    WritesAll,
}

/// Memory that an instruction touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    None,
    /// The stack alone.
    Stack,
    /// A word of the kernel, named by its address.
    Word {
        address: i32,
        bytes: u8,
    },
    /// Reached through a register: a program's, a device's, anything.
    Anywhere,
}

/// How a register is filled from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Byte,
    Half,
    Double,
    Quad,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    /// Only flags come of it. `immediate`: register and value it is compared with, all 64 bits.
    Compare {
        immediate: Option<(u8, i32)>,
    },
    /// A register becomes a constant.
    Constant {
        register: u8,
        value: u64,
    },
    /// All 64 bits from another register.
    Copy {
        register: u8,
        from: u8,
    },
    /// From a word, zero-extended.
    Load {
        register: u8,
        address: i32,
        width: Width,
    },
    /// All 64 bits to a word.
    Store {
        register: u8,
        address: i32,
    },
    /// The relative field is the instruction's last.
    Jump {
        wide: bool,
    },
    Branch {
        condition: u8,
        wide: bool,
    },
    /// Nothing comes after it.
    Exit,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub bytes: u8,
    pub kind: Kind,
    pub writes: Registers,
    pub reads: Registers,
    pub flags: Flags,
    pub reads_flags: bool,
    pub memory: Memory,
    pub stores: bool,
    /// Memory is not what it was, wherever.
    pub fences: bool,
}

impl Instruction {
    /// What a row of instructions does, as if it were one. `None`: it must be looked at one by one, because something can
    /// be known of it, or it is no row of several. What lies between its jumps is not told apart.
    pub(crate) fn row(code: &[u8]) -> Option<Instruction> {
        let mut whole = Instruction { bytes: u8::try_from(code.len()).ok()?, ..Instruction::plain() };
        let (mut at, mut count) = (0, 0);
        while at < code.len() {
            let mut one = Instruction::plain();
            read(code, at, &mut one)?;
            at += usize::from(one.bytes);
            count += 1;
            match one.kind {
                Kind::Exit if at == code.len() => whole.kind = Kind::Exit,
                Kind::Plain | Kind::Compare { .. } | Kind::Jump { wide: false } | Kind::Branch { wide: false, .. } => {}
                _ => return None,
            }
            whole.reads_flags |= one.reads_flags && whole.flags != Flags::WritesAll;
            if whole.flags == Flags::Keeps {
                whole.flags = one.flags;
            }
            whole.reads |= one.reads;
            whole.writes |= one.writes;
            whole.memory = match (whole.memory, one.memory) {
                (whole, Memory::None) => whole,
                (Memory::None, one) => one,
                (Memory::Stack, Memory::Stack) => Memory::Stack,
                _ => Memory::Anywhere,
            };
            whole.stores |= one.stores;
            whole.fences |= one.fences;
        }
        (count > 1).then_some(whole)
    }

    /// Without the address of a word: all that a row can be.
    pub(crate) fn packed(&self) -> u64 {
        let memory = match self.memory {
            Memory::None => 0,
            Memory::Stack => 1,
            _ => 2,
        };
        let flags = match self.flags {
            Flags::Keeps => 0,
            Flags::WritesSome => 1,
            Flags::WritesAll => 2,
        };
        let bits = [self.kind == Kind::Exit, self.reads_flags, self.stores, self.fences];
        let bits = bits.iter().rev().fold(0, |bits, bit| bits << 1 | u64::from(*bit));
        u64::from(self.bytes)
            | u64::from(self.reads) << 8
            | u64::from(self.writes) << 24
            | memory << 40
            | flags << 42
            | bits << 44
    }

    pub(crate) fn unpacked(packed: u64) -> Instruction {
        let bit = |number: u32| packed >> (44 + number) & 1 != 0;
        Instruction {
            bytes: packed as u8,
            kind: if bit(0) { Kind::Exit } else { Kind::Plain },
            reads: (packed >> 8) as u16,
            writes: (packed >> 24) as u16,
            memory: [Memory::None, Memory::Stack, Memory::Anywhere, Memory::Anywhere][(packed >> 40 & 3) as usize],
            flags: [Flags::Keeps, Flags::WritesSome, Flags::WritesAll, Flags::WritesAll][(packed >> 42 & 3) as usize],
            reads_flags: bit(1),
            stores: bit(2),
            fences: bit(3),
        }
    }
}
