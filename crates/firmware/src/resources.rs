//! Resource descriptors (6.4): windows of memory and interrupts.

use crate::bytes::{u8_at, u16_at, u32_at, u64_at};

/// What a device uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// A window at a fixed physical address.
    Window {
        physical: u64,
        bytes: u64,
    },
    Interrupt {
        line: u32,
        trigger: Trigger,
    },
}

/// How an interrupt is raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    pub is_level: bool,
    pub is_low: bool,
}

const IRQ: u8 = 0x04;
const END: u8 = 0x0F;
const MEMORY_32: u8 = 0x85;
const FIXED_MEMORY_32: u8 = 0x86;
const DWORD_SPACE: u8 = 0x87;
const INTERRUPT: u8 = 0x89;
const QWORD_SPACE: u8 = 0x8A;

/// The resources in a buffer, without those that are of no use here.
pub fn resources(mut rest: &[u8]) -> impl Iterator<Item = Resource> + '_ {
    core::iter::from_fn(move || {
        loop {
            let tag = u8_at(rest, 0)?;
            let bytes = if tag & 0x80 != 0 { 3 + usize::from(u16_at(rest, 1)?) } else { 1 + usize::from(tag & 7) };
            let item = rest.get(..bytes)?;
            rest = &rest[bytes..];
            let found = if tag & 0x80 != 0 { large(item) } else { small(item) };
            if found.is_some() {
                return found;
            }
            if tag & 0x80 == 0 && tag >> 3 == END {
                return None;
            }
        }
    })
}

/// The line of an ISA interrupt: the lowest of its mask (6.4.2.1).
fn small(item: &[u8]) -> Option<Resource> {
    if item[0] >> 3 != IRQ {
        return None;
    }
    let mask = u16_at(item, 1).filter(|mask| *mask != 0)?;
    // Without the third byte it is edge-triggered and high.
    let flags = u8_at(item, 3).unwrap_or(1);
    let trigger = Trigger { is_level: flags & 1 == 0, is_low: flags & 8 != 0 };
    Some(Resource::Interrupt { line: mask.trailing_zeros(), trigger })
}

fn large(item: &[u8]) -> Option<Resource> {
    let window = |physical: u64, bytes: u64| Some(Resource::Window { physical, bytes });
    match item[0] {
        FIXED_MEMORY_32 => window(u32_at(item, 4)?.into(), u32_at(item, 8)?.into()),
        MEMORY_32 => window(u32_at(item, 4)?.into(), u32_at(item, 16)?.into()),
        // Type 0 is memory.
        DWORD_SPACE if item.get(3) == Some(&0) => window(u32_at(item, 10)?.into(), u32_at(item, 22)?.into()),
        QWORD_SPACE if item.get(3) == Some(&0) => window(u64_at(item, 14)?, u64_at(item, 38)?),
        INTERRUPT if u8_at(item, 4)? >= 1 => {
            let flags = u8_at(item, 3)?;
            let trigger = Trigger { is_level: flags & 2 == 0, is_low: flags & 4 != 0 };
            Some(Resource::Interrupt { line: u32_at(item, 5)?, trigger })
        }
        _ => None,
    }
}
