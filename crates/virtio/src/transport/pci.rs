//! A device on PCI (virtio 1.2, 4.1): its capabilities say in which windows its registers lie.

use super::{QueuePlace, Transport, Window};

/// A function's configuration space (PCI 3.0, 6.1), read in words of four bytes at multiples of four.
pub trait ConfigSpace {
    fn read(&self, offset: u8) -> u32;
}

/// Where the first capability of this kind begins; `None` also where the list does not end.
pub fn capability(space: &impl ConfigSpace, kind: u8) -> Option<u8> {
    let mut at = first_capability(space)?;
    for _ in 0..CAPABILITIES_MAX {
        let head = if at < 0x40 { return None } else { space.read(at) };
        if head as u8 == kind {
            return Some(at);
        }
        at = (head >> 8) as u8 & !3;
    }
    None
}

fn first_capability(space: &impl ConfigSpace) -> Option<u8> {
    (space.read(4) & STATUS_HAS_CAPABILITIES != 0).then(|| space.read(0x34) as u8 & !3)
}

/// Why a function is no virtio device that can be driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotVirtio {
    /// Another maker.
    Other,
    /// A structure that every device must have is missing, or lies outside of its window. Those of before version 1 alone have none.
    Missing,
    /// The list of capabilities does not end.
    Endless,
}

const VENDOR: u16 = 0x1AF4;
/// Devices of version 1 have 0x1040 and their kind (4.1.2.1).
const DEVICE_BASE: u16 = 0x1040;
/// Those that older drivers can drive, too, have a number from here to `DEVICE_BASE`, and their kind as the subsystem's (4.1.2.3).
const TRANSITIONAL_BASE: u16 = 0x1000;
const STATUS_HAS_CAPABILITIES: u32 = 1 << 20;
const VENDOR_CAPABILITY: u32 = 0x09;
/// Each capability takes at least four of 256 bytes.
const CAPABILITIES_MAX: usize = 64;

/// Kinds of structures (4.1.4).
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const INTERRUPT: u8 = 3;
const DEVICE: u8 = 4;

/// A part of a window, as a capability names it.
#[derive(Clone, Copy)]
struct Part {
    bar: u8,
    offset: u32,
    bytes: u32,
}

struct Found {
    parts: [Option<Part>; 5],
    notify_multiplier: u32,
}

/// Registers of the common structure (4.1.4.3).
mod common {
    pub const DEVICE_FEATURES_SELECT: u32 = 0;
    pub const DEVICE_FEATURES: u32 = 4;
    pub const DRIVER_FEATURES_SELECT: u32 = 8;
    pub const DRIVER_FEATURES: u32 = 12;
    pub const MESSAGES_OF_CONFIGURATION: u32 = 16;
    pub const STATUS: u32 = 20;
    pub const QUEUE_SELECT: u32 = 22;
    pub const QUEUE_SIZE: u32 = 24;
    pub const QUEUE_MESSAGE: u32 = 26;
    pub const QUEUE_ENABLE: u32 = 28;
    pub const QUEUE_NOTIFY: u32 = 30;
    pub const DESCRIPTORS: u32 = 32;
    pub const AVAILABLE: u32 = 40;
    pub const USED: u32 = 48;
    pub const BYTES: u32 = 56;
}

pub struct Pci<W> {
    common: W,
    notify: W,
    notify_bytes: u32,
    notify_multiplier: u32,
    interrupt: W,
    device: Option<W>,
    /// Which entry of the device's table of messages its queues use; `None`: they interrupt by the wire.
    message: Option<u16>,
}

/// What a device is, if its function is a virtio device.
pub fn kind(space: &impl ConfigSpace) -> Option<u32> {
    let word = space.read(0);
    if word as u16 != VENDOR {
        return None;
    }
    match (word >> 16) as u16 {
        device @ DEVICE_BASE..=0x107F => Some((device - DEVICE_BASE).into()),
        TRANSITIONAL_BASE..DEVICE_BASE => Some(space.read(0x2C) >> 16),
        _ => None,
    }
}

fn find(space: &impl ConfigSpace) -> Result<Found, NotVirtio> {
    let mut found = Found { parts: [None; 5], notify_multiplier: 0 };
    let mut at = first_capability(space).ok_or(NotVirtio::Missing)?;
    for _ in 0..CAPABILITIES_MAX {
        if at < 0x40 {
            return Ok(found);
        }
        let head = space.read(at);
        let kind = (head >> 24) as u8;
        // The words of a capability at the end of the space would be others.
        if head & 0xFF == VENDOR_CAPABILITY && at <= 0xF0 && (1..=4).contains(&kind) {
            let part = Part { bar: space.read(at + 4) as u8, offset: space.read(at + 8), bytes: space.read(at + 12) };
            // The first of a kind is the one to be used (4.1.4.1).
            let is_first = found.parts[usize::from(kind)].is_none();
            if is_first && part.bar < 6 {
                found.parts[usize::from(kind)] = Some(part);
                if kind == NOTIFY && at <= 0xEC {
                    found.notify_multiplier = space.read(at + 16);
                }
            }
        }
        at = (head >> 8) as u8 & !3;
    }
    Err(NotVirtio::Endless)
}

impl<W: Window> Pci<W> {
    /// The device behind a function; `window` gives `bytes` bytes from `offset` on of a base address register's window, if they lie in it.
    pub fn find(
        space: &impl ConfigSpace,
        window: impl Fn(u8, u32, u32) -> Option<W>,
        message: Option<u16>,
    ) -> Result<(u32, Pci<W>), NotVirtio> {
        let kind = kind(space).ok_or(NotVirtio::Other)?;
        let found = find(space)?;
        let open = |which: u8, least: u32| {
            let part = found.parts[usize::from(which)].filter(|part| part.bytes >= least)?;
            part.offset.checked_add(part.bytes)?;
            Some((window(part.bar, part.offset, part.bytes)?, part.bytes))
        };
        let (common, _) = open(COMMON, common::BYTES).ok_or(NotVirtio::Missing)?;
        let (notify, notify_bytes) = open(NOTIFY, 2).ok_or(NotVirtio::Missing)?;
        let (interrupt, _) = open(INTERRUPT, 1).ok_or(NotVirtio::Missing)?;
        let device = open(DEVICE, 1).map(|(window, _)| window);
        let notify_multiplier = found.notify_multiplier;
        Ok((kind, Pci { common, notify, notify_bytes, notify_multiplier, interrupt, device, message }))
    }

    fn set_address(&self, at: u32, address: u64) {
        self.common.write32(at, address as u32);
        self.common.write32(at + 4, (address >> 32) as u32);
    }
}

/// No entry of the table of messages (4.1.5.1.2).
const NO_MESSAGE: u16 = 0xFFFF;

impl<W: Window> Transport for Pci<W> {
    fn device_features(&self) -> u64 {
        let half = |select: u32| {
            self.common.write32(common::DEVICE_FEATURES_SELECT, select);
            u64::from(self.common.read32(common::DEVICE_FEATURES))
        };
        half(0) | half(1) << 32
    }

    fn accept_features(&self, features: u64) {
        for select in 0..2 {
            self.common.write32(common::DRIVER_FEATURES_SELECT, select);
            self.common.write32(common::DRIVER_FEATURES, (features >> (32 * select)) as u32);
        }
        self.common.write16(common::MESSAGES_OF_CONFIGURATION, NO_MESSAGE);
    }

    fn status(&self) -> u8 {
        self.common.read8(common::STATUS)
    }

    fn set_status(&self, status: u8) {
        self.common.write8(common::STATUS, status);
    }

    fn queue_size_max(&self, number: u16) -> u16 {
        self.common.write16(common::QUEUE_SELECT, number);
        self.common.read16(common::QUEUE_SIZE)
    }

    fn install(&self, number: u16, place: QueuePlace) {
        self.common.write16(common::QUEUE_SELECT, number);
        self.common.write16(common::QUEUE_SIZE, place.size);
        self.common.write16(common::QUEUE_MESSAGE, self.message.unwrap_or(NO_MESSAGE));
        self.set_address(common::DESCRIPTORS, place.descriptors);
        self.set_address(common::AVAILABLE, place.available);
        self.set_address(common::USED, place.used);
        self.common.write16(common::QUEUE_ENABLE, 1);
    }

    fn notify(&self, number: u16) {
        self.common.write16(common::QUEUE_SELECT, number);
        let place = u32::from(self.common.read16(common::QUEUE_NOTIFY)).checked_mul(self.notify_multiplier);
        // A device that names a place outside of its own window is not told.
        if let Some(place) = place.filter(|place| *place <= self.notify_bytes - 2) {
            self.notify.write16(place, number);
        }
    }

    fn interrupt_cause(&self) -> u32 {
        // Reading acknowledges (4.1.4.5).
        self.interrupt.read8(0).into()
    }

    fn configuration(&self, offset: u32) -> u8 {
        self.device.as_ref().map_or(0, |device| device.read8(offset))
    }
}
