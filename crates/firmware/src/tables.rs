//! The tables: found from the root pointer (5.2.5), each with the header of 5.2.6.

use alloc::vec::Vec;

use crate::aml::{self, Declarations};
use crate::bytes::{u8_at, u32_at, u64_at};

/// Physical memory, to be looked at.
pub trait Memory<'a> {
    /// The bytes at a physical address; `None` if they cannot be read.
    fn bytes(&self, physical: u64, count: usize) -> Option<&'a [u8]>;
}

/// No table is larger: a length above it is not believed.
const TABLE_BYTES_MAX: usize = 1 << 20;
const HEADER_BYTES: usize = 36;
/// Bit of the FADT's flags: there are no PM1 registers, but a sleep control register (5.2.9).
const HARDWARE_REDUCED: u32 = 1 << 20;
/// Bits of PM1's control register (4.8.3.2.1) and of the sleep control register (4.8.3.7).
const SLEEP_ENABLE: u16 = 1 << 13;
const SLEEP_TYPE_SHIFT: u16 = 10;
const REDUCED_SLEEP_ENABLE: u8 = 1 << 5;
const REDUCED_SLEEP_TYPE_SHIFT: u8 = 2;

/// The tables of a machine.
pub struct Tables<'a> {
    fadt: Option<&'a [u8]>,
    madt: Option<&'a [u8]>,
    mcfg: Option<&'a [u8]>,
    /// The definition blocks, without their headers: the first is the machine's, the others add to it.
    blocks: Vec<&'a [u8]>,
}

/// A register of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Register {
    Port(u16),
    Memory(u64),
}

/// What to write where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    Byte(Register, u8),
    Word(Register, u16),
}

/// How the machine is switched off (16.1.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerOff {
    /// The firmware keeps the registers until this port gets this value: it is written unless bit 0 of the first of `writes`
    /// registers is set.
    pub enable: Option<(u16, u8)>,
    pub writes: [Option<Write>; 2],
}

/// An I/O APIC: its window, and the first interrupt that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoApic {
    pub physical: u64,
    pub first: u32,
}

/// A window through which the configuration spaces of PCI functions are reached (PCI Firmware specification 3.0, 4.1.2): 1 MiB for each
/// bus, counted from `physical` as if bus 0 were there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciWindow {
    pub physical: u64,
    pub first_bus: u8,
    pub last_bus: u8,
}

impl PciWindow {
    /// Behind the last bus's space.
    pub fn end(&self) -> u64 {
        self.physical.saturating_add((u64::from(self.last_bus) + 1) << 20)
    }
}

impl<'a> Tables<'a> {
    /// The tables that the root pointer at `root` leads to.
    pub fn find(root: u64, memory: &impl Memory<'a>) -> Option<Tables<'a>> {
        let pointer = memory.bytes(root, 20)?;
        if pointer.get(..8)? != b"RSD PTR " || !sums_to_zero(pointer) {
            return None;
        }
        let extended =
            if u8_at(pointer, 15)? >= 2 { memory.bytes(root, 36).and_then(|bytes| u64_at(bytes, 24)) } else { None };
        let (list, entry_bytes) = match extended {
            Some(list @ 1..) => (list, 8),
            _ => (u32_at(pointer, 16)?.into(), 4),
        };
        let list = table(list, memory)?;
        let mut tables = Tables { fadt: None, madt: None, mcfg: None, blocks: Vec::new() };
        let mut added = Vec::new();
        for entry in list.get(HEADER_BYTES..)?.chunks_exact(entry_bytes) {
            let physical = if entry_bytes == 8 { u64_at(entry, 0)? } else { u32_at(entry, 0)?.into() };
            let Some(found) = table(physical, memory) else { continue };
            match &found[..4] {
                b"FACP" => tables.fadt = Some(found),
                b"APIC" => tables.madt = Some(found),
                b"MCFG" => tables.mcfg = Some(found),
                b"SSDT" => added.push(&found[HEADER_BYTES..]),
                _ => {}
            }
        }
        let first = tables.fadt.and_then(block_address).and_then(|physical| table(physical, memory));
        tables.blocks.extend(first.map(|found| &found[HEADER_BYTES..]));
        tables.blocks.extend(added);
        Some(tables)
    }

    /// What the definition blocks declare.
    pub fn declarations(&self) -> Declarations<'a> {
        aml::read(&self.blocks)
    }

    /// How the machine is switched off: the registers of the FADT with the values that `declarations` has for the state S5.
    pub fn power_off(&self, declarations: &Declarations<'a>) -> Option<PowerOff> {
        let fadt = self.fadt?;
        let [first, second] = declarations.soft_off?;
        if u32_at(fadt, 112)? & HARDWARE_REDUCED != 0 {
            let value = first.min(7) << REDUCED_SLEEP_TYPE_SHIFT | REDUCED_SLEEP_ENABLE;
            let control = generic(fadt, 244)?;
            return Some(PowerOff { enable: None, writes: [Some(Write::Byte(control, value)), None] });
        }
        let word = |extended: usize, plain: usize, kind: u8| {
            let register = generic(fadt, extended).or_else(|| match u32_at(fadt, plain)? {
                0 => None,
                port => Some(Register::Port(u16::try_from(port).ok()?)),
            })?;
            Some(Write::Word(register, u16::from(kind.min(7)) << SLEEP_TYPE_SHIFT | SLEEP_ENABLE))
        };
        let writes = [word(172, 64, first), word(184, 68, second)];
        let enable = match (u32_at(fadt, 48)?, u8_at(fadt, 52)?) {
            (0, _) | (_, 0) => None,
            (port, value) => Some((u16::try_from(port).ok()?, value)),
        };
        writes[0].map(|_| PowerOff { enable, writes })
    }

    /// Windows to the configuration spaces of PCI's first segment, from the MCFG.
    pub fn pci_windows(&self) -> impl Iterator<Item = PciWindow> + use<'a> {
        let entries = self.mcfg.and_then(|mcfg| mcfg.get(HEADER_BYTES + 8..)).unwrap_or_default();
        entries.chunks_exact(16).filter_map(|entry| {
            let is_first_segment = entry[8] == 0 && entry[9] == 0;
            let window = PciWindow { physical: u64_at(entry, 0)?, first_bus: entry[10], last_bus: entry[11] };
            (is_first_segment && window.first_bus <= window.last_bus).then_some(window)
        })
    }

    /// The I/O APICs (5.2.12.3).
    pub fn io_apics(&self) -> impl Iterator<Item = IoApic> + use<'a> {
        let mut rest = self.madt.and_then(|madt| madt.get(HEADER_BYTES + 8..)).unwrap_or_default();
        core::iter::from_fn(move || {
            loop {
                let bytes = usize::from(u8_at(rest, 1)?);
                let entry = rest.get(..bytes.max(2))?;
                rest = &rest[entry.len()..];
                if entry[0] == 1 {
                    return Some(IoApic { physical: u32_at(entry, 4)?.into(), first: u32_at(entry, 8)? });
                }
            }
        })
    }
}

/// The table at a physical address, whole and with a right sum.
fn table<'a>(physical: u64, memory: &impl Memory<'a>) -> Option<&'a [u8]> {
    let bytes = u32_at(memory.bytes(physical, HEADER_BYTES)?, 4)? as usize;
    let found = (HEADER_BYTES..=TABLE_BYTES_MAX).contains(&bytes).then(|| memory.bytes(physical, bytes))??;
    sums_to_zero(found).then_some(found)
}

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// Where the FADT says that the machine's own definition block is.
fn block_address(fadt: &[u8]) -> Option<u64> {
    match u64_at(fadt, 140) {
        Some(address @ 1..) => Some(address),
        _ => Some(u32_at(fadt, 40)?.into()).filter(|address| *address != 0),
    }
}

/// The register that a generic address (5.2.3.2) at an offset names; `None` if it names none, or one of another space.
fn generic(fadt: &[u8], at: usize) -> Option<Register> {
    match (u8_at(fadt, at)?, u64_at(fadt, at + 4)?) {
        (_, 0) => None,
        (0, address) => Some(Register::Memory(address)),
        (1, address) => Some(Register::Port(u16::try_from(address).ok()?)),
        _ => None,
    }
}
