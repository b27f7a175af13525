//! An ELF object in memory for one routine: its name and how to unwind from it. The bytes stay where they run.

use alloc::vec::Vec;

use super::unwind::{self, Frames};

const HEADER_BYTES: u64 = 64;
const SECTION_BYTES: u16 = 64;
const SYMBOL_BYTES: u64 = 24;

/// Names of sections, each with the NUL in front and behind.
const SECTION_NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.shstrtab\0.eh_frame\0";

/// Values of the ELF specification (System V ABI, chapters 4 and 5).
mod elf {
    pub const RELOCATABLE: u16 = 1;
    pub const X86_64: u16 = 62;
    pub const PROGBITS: u32 = 1;
    pub const SYMTAB: u32 = 2;
    pub const STRTAB: u32 = 3;
    pub const NOBITS: u32 = 8;
    pub const ALLOC: u64 = 2;
    pub const EXECUTE: u64 = 4;
    /// A global function.
    pub const GLOBAL_FUNCTION: u8 = 0x12;
}

const TEXT: u16 = 1;
const STRINGS: u32 = 3;
const SECTIONS: u16 = 6;

struct Section {
    name: &'static [u8],
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    bytes: u64,
    link: u32,
    /// One more than the last local symbol.
    info: u32,
    alignment: u64,
    entry_bytes: u64,
}

/// The object for the routine `name` at `address`.
pub fn build(name: &str, address: u64, bytes: u64, frames: Frames) -> Vec<u8> {
    let strings_at = HEADER_BYTES;
    let strings = name.len() as u64 + 2;
    let names_at = strings_at + strings;
    let symbols_at = (names_at + SECTION_NAMES.len() as u64).next_multiple_of(8);
    let symbols = 2 * SYMBOL_BYTES;
    let frame = unwind::eh_frame(address, bytes, frames);
    let frame_at = symbols_at + symbols;
    let table_at = (frame_at + frame.len() as u64).next_multiple_of(8);

    let mut object = Vec::new();
    header(&mut object, table_at);
    object.push(0);
    object.extend_from_slice(name.as_bytes());
    object.push(0);
    object.extend_from_slice(SECTION_NAMES);
    object.resize((symbols_at + SYMBOL_BYTES) as usize, 0);
    symbol(&mut object, bytes);
    object.extend_from_slice(&frame);
    object.resize(table_at as usize, 0);

    let part = |name, kind, offset, bytes| Section {
        name,
        kind,
        flags: 0,
        address: 0,
        offset,
        bytes,
        link: 0,
        info: 0,
        alignment: 1,
        entry_bytes: 0,
    };
    let text = part(b".text\0", elf::NOBITS, 0, bytes);
    let symbol_table = part(b".symtab\0", elf::SYMTAB, symbols_at, symbols);
    let frames = part(b".eh_frame\0", elf::PROGBITS, frame_at, frame.len() as u64);
    let table = [
        part(b"\0", 0, 0, 0),
        Section { flags: elf::ALLOC | elf::EXECUTE, address, alignment: 16, ..text },
        Section { link: STRINGS, info: 1, alignment: 8, entry_bytes: SYMBOL_BYTES, ..symbol_table },
        part(b".strtab\0", elf::STRTAB, strings_at, strings),
        part(b".shstrtab\0", elf::STRTAB, names_at, SECTION_NAMES.len() as u64),
        Section { flags: elf::ALLOC, alignment: 8, ..frames },
    ];
    table.iter().for_each(|section| section.append(&mut object));
    object
}

fn header(object: &mut Vec<u8>, table_at: u64) {
    object.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [elf::RELOCATABLE, elf::X86_64] {
        object.extend_from_slice(&half.to_le_bytes());
    }
    object.extend_from_slice(&1u32.to_le_bytes());
    for word in [0, 0, table_at] {
        object.extend_from_slice(&word.to_le_bytes());
    }
    object.extend_from_slice(&0u32.to_le_bytes());
    for half in [HEADER_BYTES as u16, 0, 0, SECTION_BYTES, SECTIONS, SECTIONS - 2] {
        object.extend_from_slice(&half.to_le_bytes());
    }
}

/// The routine's symbol: the first name, at the start of the first section.
fn symbol(object: &mut Vec<u8>, bytes: u64) {
    object.extend_from_slice(&1u32.to_le_bytes());
    object.extend_from_slice(&[elf::GLOBAL_FUNCTION, 0]);
    object.extend_from_slice(&TEXT.to_le_bytes());
    object.extend_from_slice(&0u64.to_le_bytes());
    object.extend_from_slice(&bytes.to_le_bytes());
}

impl Section {
    fn append(&self, object: &mut Vec<u8>) {
        let name = SECTION_NAMES.windows(self.name.len()).position(|place| place == self.name).unwrap_or(0);
        object.extend_from_slice(&(name as u32).to_le_bytes());
        object.extend_from_slice(&self.kind.to_le_bytes());
        for word in [self.flags, self.address, self.offset, self.bytes] {
            object.extend_from_slice(&word.to_le_bytes());
        }
        object.extend_from_slice(&self.link.to_le_bytes());
        object.extend_from_slice(&self.info.to_le_bytes());
        for word in [self.alignment, self.entry_bytes] {
            object.extend_from_slice(&word.to_le_bytes());
        }
    }
}
