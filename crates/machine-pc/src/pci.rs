//! Functions on PCI: their configuration spaces, the windows of their registers, and the messages by which they interrupt.
//!
//! Firmware gives functions their windows, or leaves it to us (QEMU's `microvm`): then they lie where ACPI says that the bus is heard.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::vec::Vec;

use machine::{Line, Message};
use virtio::{ConfigSpace, Pci, Window, capability, kind};

use crate::devices::MmioWindow;
use crate::layout::direct;
use crate::registers::{in32, out32};

/// The direct map reaches all below.
const SEEN: u64 = 4 << 30;

/// The ports of mechanism 1 (PCI 3.0, 3.2.2.3.2).
const ADDRESS: u16 = 0xCF8;
const DATA: u16 = 0xCFC;
const ENABLE: u32 = 1 << 31;

/// How configuration spaces are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Ports,
    /// A window of memory, counted from bus 0.
    Memory {
        physical: u64,
        last_bus: u8,
    },
}

/// What is known of the machine's PCI.
pub struct Root {
    pub way: Way,
    /// Addresses that the bus hears and nobody has got: for functions that firmware left without.
    pub room: core::ops::Range<u64>,
}

/// A function's configuration space.
#[derive(Clone, Copy)]
pub struct Function {
    way: Way,
    /// Bus, device and function, as the ports want them.
    place: u32,
}

/// Registers of every space (6.1).
mod register {
    pub const COMMAND: u8 = 0x04;
    pub const KIND: u8 = 0x0C;
    pub const BARS: u8 = 0x10;
    pub const BUSES: u8 = 0x18;
    pub const WIRE: u8 = 0x3C;
}

const HEARS_MEMORY: u32 = 1 << 1;
const MASTERS_THE_BUS: u32 = 1 << 2;
const NO_WIRE: u32 = 1 << 10;
const MESSAGES_CAPABILITY: u8 = 0x11;
const MESSAGES_ON: u32 = 1 << 31;
const MESSAGES_MASKED: u32 = 1 << 30;

/// Whether the ports of mechanism 1 answer.
pub fn has_ports() -> bool {
    // SAFETY: the ports are PCI's on every PC that has it, and nobody's elsewhere.
    unsafe {
        out32(ADDRESS, ENABLE);
        let answers = in32(ADDRESS) == ENABLE;
        out32(ADDRESS, 0);
        answers
    }
}

impl Function {
    fn at(way: Way, bus: u8, device: u8, function: u8) -> Function {
        Function { way, place: u32::from(bus) << 16 | u32::from(device) << 11 | u32::from(function) << 8 }
    }

    fn read(&self, offset: u8) -> u32 {
        match self.way {
            // SAFETY: the ports answer (`has_ports`); reading a configuration space has no effect.
            Way::Ports => unsafe {
                out32(ADDRESS, ENABLE | self.place | u32::from(offset));
                in32(DATA)
            },
            // SAFETY: ACPI says that the window is here; the direct map has it (`Root`).
            Way::Memory { .. } => unsafe { self.window(offset).read_volatile() },
        }
    }

    fn write(&self, offset: u8, value: u32) {
        match self.way {
            // SAFETY: as in `read`; only registers of PCI 3.0, chapter 6, are written, of functions that we drive.
            Way::Ports => unsafe {
                out32(ADDRESS, ENABLE | self.place | u32::from(offset));
                out32(DATA, value);
            },
            // SAFETY: as above.
            Way::Memory { .. } => unsafe { self.window(offset).write_volatile(value) },
        }
    }

    fn window(&self, offset: u8) -> *mut u32 {
        let Way::Memory { physical, .. } = self.way else { return core::ptr::null_mut() };
        direct(physical + (u64::from(self.place) << 4) + u64::from(offset)) as *mut u32
    }

    fn is_there(&self) -> bool {
        self.read(0) as u16 != 0xFFFF
    }

    /// What register `bar` says; for one of 64 bits with its upper half.
    fn bar(&self, bar: u8) -> Option<Bar> {
        let at = register::BARS + 4 * bar;
        let low = self.read(at);
        // Bit 0: ports.
        if low & 1 != 0 {
            return None;
        }
        let is_wide = low >> 1 & 3 == 2 && bar < 5;
        let high = if is_wide { self.read(at + 4) } else { 0 };
        self.write(at, u32::MAX);
        let low_mask = self.read(at) & !15;
        self.write(at, low);
        let bytes = if low_mask == 0 { return None } else { u64::from(low_mask & low_mask.wrapping_neg()) };
        Some(Bar { at, physical: u64::from(high) << 32 | u64::from(low & !15), bytes, is_wide })
    }
}

/// A window of registers.
struct Bar {
    at: u8,
    physical: u64,
    bytes: u64,
    is_wide: bool,
}

impl ConfigSpace for Function {
    fn read(&self, offset: u8) -> u32 {
        Function::read(self, offset)
    }
}

impl Root {
    /// The functions of virtio devices, on all buses that firmware has numbered.
    pub fn virtio_functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        let mut seen = [false; 256];
        let mut buses = alloc::vec![0u8];
        while let Some(bus) = buses.pop() {
            // Each bus once, whatever bridges say.
            if core::mem::replace(&mut seen[usize::from(bus)], true) || !self.reaches(bus) {
                continue;
            }
            for device in 0..32 {
                let is_there = Function::at(self.way, bus, device, 0);
                let functions = match is_there.is_there() {
                    false => 0,
                    true if is_there.read(register::KIND) >> 16 & 0x80 != 0 => 8,
                    true => 1,
                };
                for function in (0..functions).map(|function| Function::at(self.way, bus, device, function)) {
                    match function.read(register::KIND) >> 16 & 0x7F {
                        0 if kind(&function).is_some() => found.push(function),
                        1 => buses.push((function.read(register::BUSES) >> 8) as u8),
                        _ => {}
                    }
                }
            }
        }
        found
    }

    fn reaches(&self, bus: u8) -> bool {
        match self.way {
            Way::Ports => true,
            Way::Memory { last_bus, .. } => bus <= last_bus,
        }
    }

    /// What drives a function, if it is a virtio device that can be driven. It may reach memory from then on.
    pub fn open(&mut self, function: Function, polls: bool) -> Option<(u32, Pci<MmioWindow>, Interrupts)> {
        let command = function.read(register::COMMAND);
        function.write(register::COMMAND, command & !HEARS_MEMORY | MASTERS_THE_BUS | NO_WIRE);
        let windows = self.windows(&function);
        function.write(register::COMMAND, command | HEARS_MEMORY | MASTERS_THE_BUS | NO_WIRE);
        let window = |bar: u8, offset: u32, bytes: u32| {
            let (physical, room) = windows.get(usize::from(bar)).copied().flatten()?;
            let end = u64::from(offset) + u64::from(bytes);
            (end <= room).then(|| MmioWindow(physical + u64::from(offset)))
        };
        let table = capability(&function, MESSAGES_CAPABILITY);
        let messages = table.and_then(|at| {
            let place = function.read(at + 4);
            Some(Messages { function, at, table: window(place as u8 & 7, place & !7, 16)? })
        });
        let message = if polls { None } else { messages.as_ref().map(|_| 0) };
        let (kind, device) = Pci::find(&function, window, message).ok()?;
        Some((kind, device, messages.map_or(Interrupts::Wire(function), Interrupts::Messages)))
    }

    /// Where the function's windows lie, and how large they are; those that had no place get one.
    fn windows(&mut self, function: &Function) -> [Option<(u64, u64)>; 6] {
        let mut windows = [None; 6];
        let mut bar = 0;
        while bar < 6 {
            let Some(found) = function.bar(bar) else {
                bar += 1;
                continue;
            };
            let physical = if found.physical == 0 { self.give(function, &found) } else { Some(found.physical) };
            let is_seen = |physical: &u64| physical.checked_add(found.bytes).is_some_and(|end| end <= SEEN);
            windows[usize::from(bar)] = physical.filter(is_seen).map(|physical| (physical, found.bytes));
            bar += if found.is_wide { 2 } else { 1 };
        }
        windows
    }

    fn give(&mut self, function: &Function, bar: &Bar) -> Option<u64> {
        let physical = self.room.start.next_multiple_of(bar.bytes.max(4096));
        let end = physical + bar.bytes;
        if end > self.room.end {
            return None;
        }
        self.room.start = end;
        function.write(bar.at, physical as u32);
        if bar.is_wide {
            function.write(bar.at + 4, 0);
        }
        Some(physical)
    }
}

/// How a function interrupts.
pub enum Interrupts {
    Wire(Function),
    Messages(Messages),
}

/// A function's table of messages (MSI-X), of which the first entry is used.
pub struct Messages {
    function: Function,
    at: u8,
    table: MmioWindow,
}

impl Interrupts {
    /// What is claimed. A wire is the one that firmware has routed and noted; none may be.
    pub fn line(&self) -> Option<Line> {
        match self {
            Interrupts::Messages(_) => Some(Line::Message),
            Interrupts::Wire(function) => match function.read(register::WIRE) as u8 {
                0 | 255 => None,
                number => Some(Line::level(number.into())),
            },
        }
    }

    /// From now on the function interrupts.
    pub fn let_in(&self, message: Option<Message>) {
        match (self, message) {
            (Interrupts::Messages(messages), Some(message)) => {
                messages.table.write32(0, message.address as u32);
                messages.table.write32(4, (message.address >> 32) as u32);
                messages.table.write32(8, message.data);
                messages.table.write32(12, 0);
                let control = messages.function.read(messages.at) & !MESSAGES_MASKED;
                messages.function.write(messages.at, control | MESSAGES_ON);
            }
            (Interrupts::Messages(_), None) => {}
            (Interrupts::Wire(function), _) => {
                function.write(register::COMMAND, function.read(register::COMMAND) & !NO_WIRE);
            }
        }
    }
}
