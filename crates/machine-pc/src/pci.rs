//! Functions on PCI: their configuration spaces, the windows of their registers, and the messages by which they interrupt.
//!
//! Firmware gives functions their windows, or leaves it to us (QEMU's `microvm`): then they lie where ACPI says that the bus is heard.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::vec::Vec;

use machine::{Claimed, Line, LineError, Message, Procedure, ProcessorNumber};
use virtio::{ConfigSpace, Pci, Window, capability, kind};

use crate::devices::MmioWindow;
use crate::layout::direct;
use crate::lines;
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
    pub const CLASS: u8 = 0x08;
    pub const KIND: u8 = 0x0C;
    pub const BARS: u8 = 0x10;
    pub const BUSES: u8 = 0x18;
    pub const WIRE: u8 = 0x3C;
}

const HEARS_MEMORY: u32 = 1 << 1;
const MASTERS_THE_BUS: u32 = 1 << 2;
const NO_WIRE: u32 = 1 << 10;
/// A table of messages in a window of registers (6.8.2).
const MESSAGES_CAPABILITY: u8 = 0x11;
const MESSAGES_ON: u32 = 1 << 31;
const MESSAGES_MASKED: u32 = 1 << 30;
/// One message in the configuration space itself (6.8.1): on, how many, and whether its address has 64 bits.
const MESSAGE_CAPABILITY: u8 = 0x05;
const MESSAGE_ON: u32 = 1 << 16;
const MESSAGE_COUNT: u32 = 7 << 20;
const MESSAGE_IS_WIDE: u32 = 1 << 23;

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

    /// Has the function store this message from now on, by its capability at `at`.
    fn store_message(&self, at: u8, message: Message) {
        let control = self.read(at);
        self.write(at + 4, message.address as u32);
        let data = if control & MESSAGE_IS_WIDE != 0 {
            self.write(at + 8, (message.address >> 32) as u32);
            at + 12
        } else {
            at + 8
        };
        self.write(data, message.data);
        self.write(at, control & !MESSAGE_COUNT | MESSAGE_ON);
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
    /// The functions of virtio devices.
    pub fn virtio_functions(&self) -> Vec<Function> {
        self.functions(|function| kind(function).is_some())
    }

    /// The functions of a class (PCI Code and ID Assignment 1.11, 1).
    pub fn functions_of_class(&self, class: u16) -> Vec<Function> {
        self.functions(|function| function.read(register::CLASS) >> 16 == u32::from(class))
    }

    /// The functions that are wanted, on all buses that firmware has numbered.
    fn functions(&self, is_wanted: impl Fn(&Function) -> bool) -> Vec<Function> {
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
                        0 if is_wanted(&function) => found.push(function),
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
        let windows = self.wake(&function);
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

    /// The first window of a function that is no virtio device, of so many bytes at least. It may reach memory from then on.
    pub fn open_plain(&mut self, function: Function, bytes: u64) -> Option<(MmioWindow, Interrupts)> {
        let (physical, _) = self.wake(&function)[0].filter(|(_, room)| *room >= bytes)?;
        let message = capability(&function, MESSAGE_CAPABILITY);
        let interrupts = message.map_or(Interrupts::Wire(function), |at| Interrupts::Message(function, at));
        Some((MmioWindow(physical), interrupts))
    }

    /// Has a function hear memory and reach it, without interrupts; where its windows lie.
    fn wake(&mut self, function: &Function) -> [Option<(u64, u64)>; 6] {
        let command = function.read(register::COMMAND);
        function.write(register::COMMAND, command & !HEARS_MEMORY | MASTERS_THE_BUS | NO_WIRE);
        let windows = self.windows(function);
        function.write(register::COMMAND, command | HEARS_MEMORY | MASTERS_THE_BUS | NO_WIRE);
        windows
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
    /// By one message, which this capability of the function holds.
    Message(Function, u8),
}

/// A function's table of messages (MSI-X), of which the first entry is used.
pub struct Messages {
    function: Function,
    at: u8,
    table: MmioWindow,
}

impl Interrupts {
    /// What is claimed. A wire is the one that firmware has routed and noted; none may be.
    fn line(&self) -> Option<Line> {
        match self {
            Interrupts::Messages(_) | Interrupts::Message(..) => Some(Line::Message),
            Interrupts::Wire(function) => match function.read(register::WIRE) as u8 {
                0 | 255 => None,
                number => Some(Line::level(number.into())),
            },
        }
    }

    /// Claims the line, which chains to `procedure`, and lets the function interrupt.
    pub fn claim(&self, procedure: Procedure) -> Result<Claimed, LineError> {
        let line = self.line().ok_or(LineError::Absent)?;
        let claimed = lines::claim(line, ProcessorNumber::FIRST, procedure)?;
        self.let_in(claimed.message());
        Ok(claimed)
    }

    /// From now on the function interrupts.
    fn let_in(&self, message: Option<Message>) {
        match (self, message) {
            (Interrupts::Messages(messages), Some(message)) => {
                messages.table.write32(0, message.address as u32);
                messages.table.write32(4, (message.address >> 32) as u32);
                messages.table.write32(8, message.data);
                messages.table.write32(12, 0);
                let control = messages.function.read(messages.at) & !MESSAGES_MASKED;
                messages.function.write(messages.at, control | MESSAGES_ON);
            }
            (Interrupts::Message(function, at), Some(message)) => function.store_message(*at, message),
            (Interrupts::Messages(_) | Interrupts::Message(..), None) => {}
            (Interrupts::Wire(function), _) => {
                function.write(register::COMMAND, function.read(register::COMMAND) & !NO_WIRE);
            }
        }
    }
}
