//! The virtio devices of the machine: in windows that the loader lists or ACPI declares, and on PCI.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use machine::{Claimed, Line, LineError, Procedure, ProcessorNumber};
use virtio::{Mmio, Pci, QueuePlace, Transport, Window, device_id};

use crate::acpi::Firmware;
use crate::layout::direct;
use crate::{clock, lines, pci, sound};

/// A device's registers in the direct map.
#[derive(Clone, Copy)]
pub struct MmioWindow(pub u64);

impl MmioWindow {
    fn at<T>(&self, offset: u32) -> *mut T {
        direct(self.0 + u64::from(offset)) as *mut T
    }
}

macro_rules! access {
    ($read:ident, $write:ident, $type:ty) => {
        fn $read(&self, offset: u32) -> $type {
            // SAFETY: a window of a virtio device is here, as the loader or the firmware says; the direct map has it.
            unsafe { self.at::<$type>(offset).read_volatile() }
        }

        fn $write(&self, offset: u32, value: $type) {
            // SAFETY: as above; only registers of virtio 1.2, 4.1 and 4.2.2, and of tables of messages, are written.
            unsafe { self.at::<$type>(offset).write_volatile(value) }
        }
    };
}

impl Window for MmioWindow {
    access!(read8, write8, u8);
    access!(read16, write16, u16);
    access!(read32, write32, u32);
}

/// A device's registers, wherever they are.
enum Registers {
    Window(Mmio<MmioWindow>),
    Pci(Pci<MmioWindow>),
}

/// A device's transport.
pub struct Bus {
    registers: Registers,
    /// The processor is one of QEMU's own making.
    is_emulated: bool,
}

impl Bus {
    /// Where its registers are, if they are a window.
    pub fn window(&self) -> Option<u64> {
        match &self.registers {
            Registers::Window(Mmio(window)) => Some(window.0),
            Registers::Pci(_) => None,
        }
    }
}

macro_rules! either {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        impl Transport for Bus {
            $(fn $name(&self, $($argument: $type),*) $(-> $result)? {
                match &self.registers {
                    Registers::Window(device) => device.$name($($argument),*),
                    Registers::Pci(device) => device.$name($($argument),*),
                }
            })*

            /// QEMU before 8.1 leaves fences out where it emulates one processor, and its devices are threads beside it: a load may
            /// then overtake a store, and both sides sleep. Its lock, which each look at a register takes, orders them.
            fn order(&self) {
                fence(Ordering::SeqCst);
                if self.is_emulated {
                    self.status();
                }
            }
        }
    };
}

either! {
    device_features() -> u64;
    accept_features(features: u64);
    status() -> u8;
    set_status(status: u8);
    queue_size_max(number: u16) -> u16;
    install(number: u16, place: QueuePlace);
    notify(number: u16);
    interrupt_cause() -> u32;
    configuration(offset: u32) -> u8;
}

enum Attachment {
    Line(Line),
    Pci(pci::Interrupts),
}

/// A device that nobody drives yet.
pub struct Device {
    /// One of [`virtio::id`].
    pub kind: u32,
    pub bus: Bus,
    attachment: Attachment,
}

impl Device {
    /// Its line, which chains to `procedure` from now on; the bus is the driver's.
    pub fn claim(self, procedure: Procedure) -> Result<(Bus, Claimed), LineError> {
        let line = match &self.attachment {
            Attachment::Line(line) => *line,
            Attachment::Pci(interrupts) => return Ok((self.bus, interrupts.claim(procedure)?)),
        };
        Ok((self.bus, lines::claim(line, ProcessorNumber::FIRST, procedure)?))
    }

    /// The same for who may have to look instead: then there is no line.
    pub fn open(self, polls: bool, procedure: Procedure) -> Result<(Bus, Option<Claimed>), LineError> {
        if polls {
            return Ok((self.bus, None));
        }
        self.claim(procedure).map(|(bus, claimed)| (bus, Some(claimed)))
    }
}

/// The devices in `windows`, then those on PCI. With `polls` none of them shall interrupt.
pub fn find(windows: impl Iterator<Item = (u64, Line)>, firmware: &Firmware, polls: bool) -> Vec<Device> {
    let mut found = Vec::new();
    let is_emulated = clock::is_emulated();
    for (base, line) in windows {
        let window = MmioWindow(base);
        if let Some(kind) = device_id(&window) {
            let bus = Bus { registers: Registers::Window(Mmio(window)), is_emulated };
            found.push(Device { kind, bus, attachment: Attachment::Line(line) });
        }
    }
    let Some(mut root) = firmware.pci_root() else { return found };
    sound::keep(&mut root);
    for function in root.virtio_functions() {
        if let Some((kind, device, interrupts)) = root.open(function, polls) {
            let bus = Bus { registers: Registers::Pci(device), is_emulated };
            found.push(Device { kind, bus, attachment: Attachment::Pci(interrupts) });
        }
    }
    found
}

/// Takes the first device of a kind out of those that are left.
pub fn take(devices: &mut Vec<Device>, kind: u32) -> Option<Device> {
    let at = devices.iter().position(|device| device.kind == kind)?;
    Some(devices.remove(at))
}
