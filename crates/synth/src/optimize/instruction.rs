//! What the optimizer knows of an instruction.

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
