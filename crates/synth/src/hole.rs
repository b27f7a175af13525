//! Holes: what may be filled into a template, and how the place is recognized.

/// An address used as a sign-extended 32-bit displacement or immediate. It must lie in the lowest
/// or highest 2 GB; the kernel keeps everything that code names there (top 2 GB on the pc, low 2 GB
/// when hosted).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abs32(pub u64);

/// A plain 32-bit value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imm32(pub u32);

/// The target of a `jmp`, `jcc` or `call` with a 32-bit relative field (the last field of its instruction).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Code that stands at a fixed address.
    Address(u64),
    /// A place in the same draft, named by [`Draft::place`](crate::Draft::place).
    Label(Label),
}

/// A place in a draft, so that fragments can jump to each other before they have an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(pub u8);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoleKind {
    Abs32,
    Imm32,
    Target,
    Label,
}

/// A value on its way into a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoleValue {
    pub kind: HoleKind,
    pub value: u64,
}

impl From<Abs32> for HoleValue {
    fn from(hole: Abs32) -> HoleValue {
        HoleValue { kind: HoleKind::Abs32, value: hole.0 }
    }
}

impl From<Imm32> for HoleValue {
    fn from(hole: Imm32) -> HoleValue {
        HoleValue { kind: HoleKind::Imm32, value: hole.0 as u64 }
    }
}

impl From<Target> for HoleValue {
    fn from(hole: Target) -> HoleValue {
        match hole {
            Target::Address(value) => HoleValue { kind: HoleKind::Target, value },
            Target::Label(label) => HoleValue { kind: HoleKind::Label, value: label.0.into() },
        }
    }
}

impl HoleValue {
    /// Whether the value can be encoded; `Target` is checked when its place is known.
    pub fn fits(self) -> bool {
        match self.kind {
            HoleKind::Abs32 => self.value as i64 == self.value as i64 as i32 as i64,
            HoleKind::Imm32 => self.value <= u32::MAX as u64,
            HoleKind::Target | HoleKind::Label => true,
        }
    }
}

/// The 32-bit pattern that marks the hole `name` in assembled bytes: FNV-1a of the name, forced
/// positive and large so that the assembler picks a 32-bit field for it.
pub const fn pattern(name: &str) -> i32 {
    let bytes = name.as_bytes();
    let mut hash: u32 = 0x811C_9DC5;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    ((hash & 0x0FFF_FFFF) | 0x5000_0000) as i32
}
