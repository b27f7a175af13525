//! A device in a window of memory (virtio 1.2, 4.2).

use super::{QueuePlace, Transport, Window};

const MAGIC: u32 = 0x7472_6976;
const VERSION: u32 = 2;

/// Registers (4.2.2).
mod register {
    pub const MAGIC: u32 = 0x00;
    pub const VERSION: u32 = 0x04;
    pub const DEVICE: u32 = 0x08;
    pub const DEVICE_FEATURES: u32 = 0x10;
    pub const DEVICE_FEATURES_SELECT: u32 = 0x14;
    pub const DRIVER_FEATURES: u32 = 0x20;
    pub const DRIVER_FEATURES_SELECT: u32 = 0x24;
    pub const QUEUE_SELECT: u32 = 0x30;
    pub const QUEUE_SIZE_MAX: u32 = 0x34;
    pub const QUEUE_SIZE: u32 = 0x38;
    pub const QUEUE_READY: u32 = 0x44;
    pub const QUEUE_NOTIFY: u32 = 0x50;
    pub const INTERRUPT_STATUS: u32 = 0x60;
    pub const INTERRUPT_ACKNOWLEDGE: u32 = 0x64;
    pub const STATUS: u32 = 0x70;
    pub const DESCRIPTORS: u32 = 0x80;
    pub const AVAILABLE: u32 = 0x90;
    pub const USED: u32 = 0xA0;
    pub const CONFIGURATION: u32 = 0x100;
}

/// What device answers at this window, if it is one of version 2.
pub fn device_id(window: &impl Window) -> Option<u32> {
    let is_there = window.read32(register::MAGIC) == MAGIC && window.read32(register::VERSION) == VERSION;
    is_there.then(|| window.read32(register::DEVICE)).filter(|id| *id != 0)
}

pub struct Mmio<W>(pub W);

impl<W: Window> Mmio<W> {
    fn set_address(&self, at: u32, address: u64) {
        self.0.write32(at, address as u32);
        self.0.write32(at + 4, (address >> 32) as u32);
    }
}

impl<W: Window> Transport for Mmio<W> {
    fn device_features(&self) -> u64 {
        let half = |select: u32| {
            self.0.write32(register::DEVICE_FEATURES_SELECT, select);
            u64::from(self.0.read32(register::DEVICE_FEATURES))
        };
        half(0) | half(1) << 32
    }

    fn accept_features(&self, features: u64) {
        for select in 0..2 {
            self.0.write32(register::DRIVER_FEATURES_SELECT, select);
            self.0.write32(register::DRIVER_FEATURES, (features >> (32 * select)) as u32);
        }
    }

    fn status(&self) -> u8 {
        self.0.read32(register::STATUS) as u8
    }

    fn set_status(&self, status: u8) {
        self.0.write32(register::STATUS, status.into());
    }

    fn queue_size_max(&self, number: u16) -> u16 {
        self.0.write32(register::QUEUE_SELECT, number.into());
        self.0.read32(register::QUEUE_SIZE_MAX).min(u16::MAX.into()) as u16
    }

    fn install(&self, number: u16, place: QueuePlace) {
        self.0.write32(register::QUEUE_SELECT, number.into());
        self.0.write32(register::QUEUE_SIZE, place.size.into());
        self.set_address(register::DESCRIPTORS, place.descriptors);
        self.set_address(register::AVAILABLE, place.available);
        self.set_address(register::USED, place.used);
        self.0.write32(register::QUEUE_READY, 1);
    }

    fn notify(&self, number: u16) {
        self.0.write32(register::QUEUE_NOTIFY, number.into());
    }

    fn interrupt_cause(&self) -> u32 {
        let cause = self.0.read32(register::INTERRUPT_STATUS);
        if cause != 0 {
            self.0.write32(register::INTERRUPT_ACKNOWLEDGE, cause);
        }
        cause
    }

    fn configuration(&self, offset: u32) -> u8 {
        self.0.read8(register::CONFIGURATION + offset)
    }
}
