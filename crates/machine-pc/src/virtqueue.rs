//! A split virtqueue of page-sized buffers (virtio 1.2, 2.7).
//!
//! One frame holds the three parts: descriptors at 0, available ring at 0x400, used ring at 0x800.
//! Descriptor `i` always describes buffer `i`, so there is no free list of descriptors: a buffer is
//! the driver's or the device's.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use machine::{FrameNumber, FrameSource, NoFrames, PAGE_BYTES};

use crate::frames::FRAMES;
use crate::layout::direct;

pub const SIZE: u16 = 32;
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x800;
const DEVICE_WRITES: u16 = 2;

pub struct Virtqueue {
    ring: FrameNumber,
    buffers: Vec<FrameNumber>,
    /// The next available and used indices, our copies (free running).
    available: u16,
    used: u16,
    to_device: bool,
}

impl Virtqueue {
    /// A queue with `buffers` page-sized buffers (at most [`SIZE`]).
    pub fn new(buffers: u16, to_device: bool) -> Result<Virtqueue, NoFrames> {
        let ring = FRAMES.take()?;
        let buffers = (0..buffers.min(SIZE)).map(|_| FRAMES.take()).collect::<Result<Vec<_>, _>>()?;
        let queue = Virtqueue { ring, buffers, available: 0, used: 0, to_device };
        for (index, buffer) in queue.buffers.iter().enumerate() {
            queue.set(index as u64 * 16, buffer.physical_address());
            queue.set(index as u64 * 16 + 12, if to_device { 0u16 } else { DEVICE_WRITES });
        }
        Ok(queue)
    }

    fn set<T>(&self, offset: u64, value: T) {
        // SAFETY: the offset lies inside the ring's frame, which only this queue and its device use.
        unsafe { (direct(self.ring.physical_address() + offset) as *mut T).write_volatile(value) }
    }

    fn get<T>(&self, offset: u64) -> T {
        // SAFETY: as in `set`.
        unsafe { (direct(self.ring.physical_address() + offset) as *const T).read_volatile() }
    }

    /// Physical addresses of the three parts.
    pub fn addresses(&self) -> [u64; 3] {
        let base = self.ring.physical_address();
        [base, base + AVAILABLE, base + USED]
    }

    pub fn buffer(&self, index: u16) -> *mut u8 {
        direct(self.buffers[index as usize].physical_address()) as *mut u8
    }

    pub fn buffer_count(&self) -> u16 {
        self.buffers.len() as u16
    }

    /// Gives buffer `index` with `bytes` bytes (or room) to the device. The caller notifies.
    pub fn offer(&mut self, index: u16, bytes: usize) {
        debug_assert!(bytes <= PAGE_BYTES);
        self.set(index as u64 * 16 + 8, bytes as u32);
        self.set(AVAILABLE + 4 + (self.available % SIZE) as u64 * 2, index);
        self.available = self.available.wrapping_add(1);
        // The device must see the entry before the index (2.7.13.3).
        fence(Ordering::SeqCst);
        self.set(AVAILABLE + 2, self.available);
        fence(Ordering::SeqCst);
    }

    /// The next buffer that the device has finished with, and how many bytes it wrote.
    pub fn finished(&mut self) -> Option<(u16, usize)> {
        if self.get::<u16>(USED + 2) == self.used {
            return None;
        }
        fence(Ordering::Acquire);
        let at = USED + 4 + (self.used % SIZE) as u64 * 8;
        let (index, bytes): (u32, u32) = (self.get(at), self.get(at + 4));
        self.used = self.used.wrapping_add(1);
        // A device that names a wrong buffer or length is not believed.
        let index = (index as usize).min(self.buffers.len() - 1) as u16;
        Some((index, if self.to_device { 0 } else { (bytes as usize).min(PAGE_BYTES) }))
    }

    /// The device wants to be told about new buffers (2.7.10).
    pub fn wants_notification(&self) -> bool {
        self.get::<u16>(USED) & 1 == 0
    }
}
