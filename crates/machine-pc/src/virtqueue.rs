//! A split virtqueue of page-sized buffers (virtio 1.2, 2.7).
//!
//! One frame holds the three parts: descriptors at 0, available ring at 0x400, used ring at 0x800.
//! Descriptor `i` always describes buffer `i`, so there is no free list of descriptors: a buffer is
//! the driver's or the device's. The bookkeeping of the driver's side lies in words at fixed addresses,
//! which synthesized code works with just as the code here does.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};

use machine::{FrameNumber, FrameSource, NoFrames, PAGE_BYTES};
use virtio::Transport;

use crate::devices::Bus;
use crate::frames::FRAMES;
use crate::layout::direct;

pub const SIZE: u16 = 32;
pub const AVAILABLE: u64 = 0x400;
pub const USED: u64 = 0x800;
const DEVICE_WRITES: u16 = 2;
/// In the available ring's flags: the device need not interrupt for buffers it has used (2.7.7).
const NO_INTERRUPT: u16 = 1;

/// The driver's bookkeeping of one queue.
///
/// Invariant: the first `idle_count` words of `idle` name the buffers that are the driver's and hold nothing.
#[repr(C)]
pub struct QueueWords {
    pub idle_count: Cell<u32>,
    /// The next available and used indices, our copies (free running, 16 bits).
    pub available: Cell<u32>,
    pub used: Cell<u32>,
    pub buffer_count: u32,
    /// Address of the ring's frame in the direct map.
    pub ring: u64,
    /// Address of the register that tells the device about new buffers; 0 until the queue is installed.
    pub notify: Cell<u64>,
    pub idle: [Cell<u32>; SIZE as usize],
    /// Addresses of the buffers in the direct map.
    pub buffers: [Cell<u64>; SIZE as usize],
}

impl QueueWords {
    /// For a ring at `ring`, all zeros, with `buffer_count` buffers, none of which is idle or has an address yet.
    pub fn new(ring: u64, buffer_count: u16) -> QueueWords {
        QueueWords {
            idle_count: Cell::new(0),
            available: Cell::new(0),
            used: Cell::new(0),
            buffer_count: buffer_count.into(),
            ring,
            notify: Cell::new(0),
            idle: [const { Cell::new(0) }; SIZE as usize],
            buffers: [const { Cell::new(0) }; SIZE as usize],
        }
    }
}

pub struct Virtqueue {
    ring: FrameNumber,
    buffers: Vec<FrameNumber>,
    /// Its address is known to synthesized code, so it must not move.
    pub words: Box<QueueWords>,
    to_device: bool,
}

impl Virtqueue {
    /// A queue with `buffers` page-sized buffers (at most [`SIZE`]). Those of a queue to the device are idle.
    pub fn new(buffers: u16, to_device: bool) -> Result<Virtqueue, NoFrames> {
        let ring = FRAMES.take()?;
        let buffers = (0..buffers.min(SIZE)).map(|_| FRAMES.take()).collect::<Result<Vec<_>, _>>()?;
        let words = Box::new(QueueWords::new(direct(ring.physical_address()), buffers.len() as u16));
        let queue = Virtqueue { ring, buffers, words, to_device };
        for (index, buffer) in queue.buffers.iter().enumerate() {
            queue.words.buffers[index].set(direct(buffer.physical_address()));
            queue.set(index as u64 * 16, buffer.physical_address());
            queue.set(index as u64 * 16 + 12, if to_device { 0u16 } else { DEVICE_WRITES });
            if to_device {
                queue.give_idle(index as u16);
            }
        }
        Ok(queue)
    }

    fn set<T>(&self, offset: u64, value: T) {
        // SAFETY: the offset lies inside the ring's frame, which only this queue and its device use.
        unsafe { ((self.words.ring + offset) as *mut T).write_volatile(value) }
    }

    fn get<T>(&self, offset: u64) -> T {
        // SAFETY: as in `set`.
        unsafe { ((self.words.ring + offset) as *const T).read_volatile() }
    }

    /// Physical addresses of the three parts.
    pub fn addresses(&self) -> [u64; 3] {
        let base = self.ring.physical_address();
        [base, base + AVAILABLE, base + USED]
    }

    pub fn buffer(&self, index: u16) -> *mut u8 {
        self.words.buffers[index as usize].get() as *mut u8
    }

    pub fn buffer_count(&self) -> u16 {
        self.buffers.len() as u16
    }

    /// Takes a buffer that nobody uses; `offer` gives it to the device.
    pub fn take_idle(&self) -> Option<u16> {
        let count = self.words.idle_count.get().checked_sub(1)?;
        self.words.idle_count.set(count);
        Some(self.words.idle[count as usize].get() as u16)
    }

    pub fn idle_count(&self) -> usize {
        self.words.idle_count.get() as usize
    }

    fn give_idle(&self, index: u16) {
        let count = self.words.idle_count.get();
        // A device that returns more than it got is not believed.
        if count < self.words.buffer_count {
            self.words.idle[count as usize].set(index.into());
            self.words.idle_count.set(count + 1);
        }
    }

    /// Makes the buffers idle that the device has finished with. While all are, no news are wanted from it.
    pub fn reclaim(&self) {
        while let Some((index, _)) = self.finished() {
            self.give_idle(index);
        }
        if self.is_drained() {
            self.set(AVAILABLE, NO_INTERRUPT);
        }
    }

    /// The device has finished with all buffers.
    pub fn is_drained(&self) -> bool {
        self.words.idle_count.get() == self.words.buffer_count
    }

    /// Somebody is going to wait for buffers: the device shall interrupt when it has finished with one. True if one came
    /// back meanwhile, so that there may be nothing to wait for (2.7.7.1).
    pub fn expect_news(&self, bus: &Bus) -> bool {
        self.set(AVAILABLE, 0u16);
        bus.order();
        self.get::<u16>(USED + 2) != self.words.used.get() as u16
    }

    /// Gives buffer `index` with `bytes` bytes (or room) to the device. The caller notifies.
    pub fn offer(&self, index: u16, bytes: usize) {
        debug_assert!(bytes <= PAGE_BYTES);
        let available = self.words.available.get() as u16;
        self.set(index as u64 * 16 + 8, bytes as u32);
        self.set(AVAILABLE + 4 + (available % SIZE) as u64 * 2, index);
        self.words.available.set(available.wrapping_add(1).into());
        // The device must see the entry before the index (2.7.13.3).
        fence(Ordering::SeqCst);
        self.set(AVAILABLE + 2, available.wrapping_add(1));
        fence(Ordering::SeqCst);
    }

    /// The next buffer that the device has finished with, and how many bytes it wrote.
    pub fn finished(&self) -> Option<(u16, usize)> {
        let found = self.look()?;
        self.words.used.set((self.words.used.get() as u16).wrapping_add(1).into());
        Some(found)
    }

    /// The same, and the buffer stays finished.
    pub fn look(&self) -> Option<(u16, usize)> {
        let used = self.words.used.get() as u16;
        if self.get::<u16>(USED + 2) == used {
            return None;
        }
        fence(Ordering::Acquire);
        let at = USED + 4 + (used % SIZE) as u64 * 8;
        let (index, bytes): (u32, u32) = (self.get(at), self.get(at + 4));
        // A device that names a wrong buffer or length is not believed.
        let index = (index as usize).min(self.buffers.len() - 1) as u16;
        Some((index, if self.to_device { 0 } else { (bytes as usize).min(PAGE_BYTES) }))
    }

    /// Does what a device does that has written `bytes` bytes into buffer 0. Only for a queue that no device knows.
    pub fn pretend_finished(&self, bytes: u32) {
        let used = self.words.used.get() as u16;
        let at = USED + 4 + (used % SIZE) as u64 * 8;
        self.set(at, 0u32);
        self.set(at + 4, bytes);
        self.set(USED + 2, used.wrapping_add(1));
    }

    /// The device wants to be told about new buffers (2.7.10).
    pub fn wants_notification(&self) -> bool {
        self.get::<u16>(USED) & 1 == 0
    }
}
