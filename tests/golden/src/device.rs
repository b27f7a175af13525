//! The device behind the channels: it takes what is offered in the pc's ring (virtio 1.2, 2.7) and returns the buffers.

use std::cell::Cell;

use machine::{PAGE_BYTES, SendCode};
use machine_pc::{QUEUE_SIZE, QueueWords};
use synth::Target;

/// Buffers of the channel.
pub const BUFFERS: u16 = 8;
/// Number of the channel's queue.
const QUEUE: u32 = 9;
const AVAILABLE: usize = 0x400;
const USED: usize = 0x800;

pub struct Device {
    words: Box<QueueWords>,
    ring: Box<[Cell<u8>]>,
    buffers: Vec<Box<[Cell<u8>]>>,
    bell: Box<Cell<u64>>,
    /// Offers taken, buffers returned; free running.
    taken: Cell<u16>,
    returned: Cell<u16>,
    held: Cell<Vec<u16>>,
}

/// Memory that device and driver share.
pub(crate) fn zeros() -> Box<[Cell<u8>]> {
    vec![Cell::new(0); PAGE_BYTES].into_boxed_slice()
}

impl Device {
    pub fn new() -> Device {
        let ring = zeros();
        let words = Box::new(QueueWords::new(ring.as_ptr() as u64, BUFFERS));
        let buffers: Vec<_> = (0..BUFFERS).map(|_| zeros()).collect();
        let bell = Box::new(Cell::new(0));
        words.notify.set(bell.as_ptr() as u64);
        for (index, buffer) in buffers.iter().enumerate() {
            words.buffers[index].set(buffer.as_ptr() as u64);
            words.idle[index].set(index as u32);
        }
        words.idle_count.set(BUFFERS.into());
        let (taken, returned, held) = (Cell::new(0), Cell::new(0), Cell::new(Vec::new()));
        Device { words, ring, buffers, bell, taken, returned, held }
    }

    pub fn send_code(&self, none: Target) -> SendCode {
        machine_pc::send_code(&self.words, QUEUE, none)
    }

    fn word(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.ring[offset].get(), self.ring[offset + 1].get()])
    }

    fn set_word(&self, offset: usize, value: u16) {
        let [low, high] = value.to_le_bytes();
        self.ring[offset].set(low);
        self.ring[offset + 1].set(high);
    }

    /// The device wants no notifications.
    pub fn set_quiet(&self, quiet: bool) {
        self.set_word(USED, u16::from(quiet));
    }

    /// Whether a routine could send.
    pub fn has_room(&self) -> bool {
        self.words.idle_count.get() > 0 || self.words.used.get() as u16 != self.returned.get()
    }

    /// Takes what was offered since the last time. A device that wants to be told of it must have been.
    pub fn take(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let told = self.bell.replace(0) == QUEUE.into();
        let mut held = self.held.take();
        let offered = self.taken.get() != self.word(AVAILABLE + 2);
        assert_eq!(told, offered && self.word(USED) == 0, "told, of {}", self.word(AVAILABLE + 2));
        while self.taken.get() != self.word(AVAILABLE + 2) {
            let place = (self.taken.get() % QUEUE_SIZE) as usize;
            let buffer = self.word(AVAILABLE + 4 + 2 * place);
            assert!(buffer < BUFFERS && !held.contains(&buffer), "buffer {buffer} was offered twice");
            let length = self.word(buffer as usize * 16 + 8) as usize;
            bytes.extend(self.buffers[buffer as usize][..length].iter().map(Cell::get));
            held.push(buffer);
            self.taken.set(self.taken.get().wrapping_add(1));
        }
        self.held.set(held);
        bytes
    }

    /// Returns the buffer that it has held at this place of its list, if there is one.
    pub fn give_back(&self, place: usize) {
        let mut held = self.held.take();
        if place < held.len() {
            let entry = USED + 4 + 8 * (self.returned.get() % QUEUE_SIZE) as usize;
            self.set_word(entry, held.remove(place));
            self.returned.set(self.returned.get().wrapping_add(1));
            self.set_word(USED + 2, self.returned.get());
        }
        self.held.set(held);
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::new()
    }
}
