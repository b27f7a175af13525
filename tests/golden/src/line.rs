//! The device that the raw tty receives from: it fills the buffers that the pc's ring offers (virtio 1.2, 2.7).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use machine::ReceiveCode;
use machine_pc::{QUEUE_SIZE, QueueWords};
use synth::Target;

use crate::device::zeros;

/// Buffers of the queue.
const BUFFERS: u16 = 8;
/// Number of the queue, as the device hears it.
const QUEUE: u32 = 4;
const AVAILABLE: usize = 0x400;
const USED: usize = 0x800;
/// Registers behind the bell, in words: status and acknowledgement.
const REGISTERS: usize = 8;

pub struct Line {
    words: Box<QueueWords>,
    ring: Box<[Cell<u8>]>,
    buffers: Vec<Box<[Cell<u8>]>>,
    registers: Box<[Cell<u32>]>,
    /// Buffers that the device has, in the order of their offers.
    offered: RefCell<VecDeque<u16>>,
    taken: Cell<u16>,
    filled: Cell<u16>,
}

impl Line {
    #[allow(clippy::new_without_default, reason = "the bench makes one")]
    pub fn new() -> Line {
        let ring = zeros();
        let words = Box::new(QueueWords::new(ring.as_ptr() as u64, BUFFERS));
        let buffers: Vec<_> = (0..BUFFERS).map(|_| zeros()).collect();
        let registers = vec![Cell::new(0); REGISTERS].into_boxed_slice();
        words.notify.set(registers.as_ptr() as u64);
        words.available.set(BUFFERS.into());
        for (index, buffer) in buffers.iter().enumerate() {
            words.buffers[index].set(buffer.as_ptr() as u64);
        }
        let offered = RefCell::new((0..BUFFERS).collect());
        let line = Line { words, ring, buffers, registers, offered, taken: Cell::new(BUFFERS), filled: Cell::new(0) };
        line.set(AVAILABLE + 2, &BUFFERS.to_le_bytes());
        line
    }

    pub fn receive_code(&self, none: Target) -> ReceiveCode {
        machine_pc::receive_code(&self.words, QUEUE, none)
    }

    fn set(&self, offset: usize, bytes: &[u8]) {
        self.ring[offset..].iter().zip(bytes).for_each(|(to, byte)| to.set(*byte));
    }

    /// Fills the next buffer; false if the device has none.
    pub fn fill(&self, bytes: &[u8]) -> bool {
        let Some(buffer) = self.offered.borrow_mut().pop_front() else { return false };
        self.buffers[buffer as usize].iter().zip(bytes).for_each(|(to, byte)| to.set(*byte));
        self.say(buffer.into(), bytes.len() as u32);
        true
    }

    /// Says that it has filled `buffer`, be that true or not.
    pub fn say(&self, buffer: u32, bytes: u32) {
        let entry = USED + 4 + (self.filled.get() % QUEUE_SIZE) as usize * 8;
        self.set(entry, &buffer.to_le_bytes());
        self.set(entry + 4, &bytes.to_le_bytes());
        self.filled.set(self.filled.get().wrapping_add(1));
        self.set(USED + 2, &self.filled.get().to_le_bytes());
        self.registers[4].set(1);
    }

    /// Takes the last word back.
    pub fn unsay(&self) {
        self.filled.set(self.filled.get().wrapping_sub(1));
        self.set(USED + 2, &self.filled.get().to_le_bytes());
    }

    /// Takes the buffers that were given back; returns how many, and whether the interrupt was acknowledged and the bell rung.
    pub fn take_back(&self) -> (usize, bool, bool) {
        let word = |offset: usize| u16::from_le_bytes([self.ring[offset].get(), self.ring[offset + 1].get()]);
        let mut count = 0;
        while self.taken.get() != word(AVAILABLE + 2) {
            let buffer = word(AVAILABLE + 4 + (self.taken.get() % QUEUE_SIZE) as usize * 2);
            self.offered.borrow_mut().push_back(buffer);
            self.taken.set(self.taken.get().wrapping_add(1));
            count += 1;
        }
        let is_acknowledged = self.registers[5].replace(0) == self.registers[4].replace(0);
        (count, is_acknowledged, self.registers[0].replace(0) == QUEUE)
    }
}
