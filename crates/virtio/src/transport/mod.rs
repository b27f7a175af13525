//! How a driver reaches its device (virtio 1.2, 4).

use core::sync::atomic::{Ordering, fence};

pub mod mmio;
pub mod pci;

/// Registers in memory, from their first byte on. A machine makes one where a device is.
pub trait Window {
    fn read8(&self, offset: u32) -> u8;
    fn read16(&self, offset: u32) -> u16;
    fn read32(&self, offset: u32) -> u32;
    fn write8(&self, offset: u32, value: u8);
    fn write16(&self, offset: u32, value: u16);
    fn write32(&self, offset: u32, value: u32);
}

/// Where a queue lies, as the device is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePlace {
    pub size: u16,
    pub descriptors: u64,
    pub available: u64,
    pub used: u64,
}

/// A device's registers, however they are reached.
pub trait Transport {
    fn device_features(&self) -> u64;
    fn accept_features(&self, features: u64);
    /// The status byte (2.1); writing 0 resets the device.
    fn status(&self) -> u8;
    fn set_status(&self, status: u8);
    /// How many entries queue `number` may have; 0: there is none.
    fn queue_size_max(&self, number: u16) -> u16;
    fn install(&self, number: u16, place: QueuePlace);
    /// Tells the device that queue `number` has new buffers.
    fn notify(&self, number: u16);
    /// Why the device interrupts, which is acknowledged by asking. Bit 0: buffers were used; bit 1: the configuration changed.
    fn interrupt_cause(&self) -> u32;
    /// A byte of the device's configuration.
    fn configuration(&self, offset: u32) -> u8;
    /// The device sees what was stored before, before anything that is loaded after was loaded: so of two that look whether the other
    /// one sleeps, one at least sees that it does not (virtio 1.2, 2.7.7.1 and 2.7.13.4).
    fn order(&self) {
        fence(Ordering::SeqCst);
    }
}
