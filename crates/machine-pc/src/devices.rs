//! The virtio devices of the machine: in windows that the loader lists or ACPI declares, and on PCI.

use alloc::vec::Vec;

use machine::{Claimed, Line, LineError, Procedure, ProcessorNumber};
use virtio::{Mmio, Pci, QueuePlace, Transport, Window, device_id};

use crate::acpi::Firmware;
use crate::layout::direct;
use crate::{lines, pci};

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

/// A device's transport.
pub enum Bus {
    Window(Mmio<MmioWindow>),
    Pci(Pci<MmioWindow>),
}

macro_rules! either {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        impl Transport for Bus {
            $(fn $name(&self, $($argument: $type),*) $(-> $result)? {
                match self {
                    Bus::Window(device) => device.$name($($argument),*),
                    Bus::Pci(device) => device.$name($($argument),*),
                }
            })*
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
            Attachment::Pci(interrupts) => interrupts.line().ok_or(LineError::Absent)?,
        };
        let claimed = lines::claim(line, ProcessorNumber::FIRST, procedure)?;
        if let Attachment::Pci(interrupts) = &self.attachment {
            interrupts.let_in(claimed.message());
        }
        Ok((self.bus, claimed))
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
    for (base, line) in windows {
        let window = MmioWindow(base);
        if let Some(kind) = device_id(&window) {
            found.push(Device { kind, bus: Bus::Window(Mmio(window)), attachment: Attachment::Line(line) });
        }
    }
    let Some(mut root) = firmware.pci_root() else { return found };
    for function in root.virtio_functions() {
        if let Some((kind, device, interrupts)) = root.open(function, polls) {
            found.push(Device { kind, bus: Bus::Pci(device), attachment: Attachment::Pci(interrupts) });
        }
    }
    found
}

/// Takes the first device of a kind out of those that are left.
pub fn take(devices: &mut Vec<Device>, kind: u32) -> Option<Device> {
    let at = devices.iter().position(|device| device.kind == kind)?;
    Some(devices.remove(at))
}
