//! Memory that a device reads and writes by itself.

use crate::{FrameNumber, Frames, PAGE_BYTES};

/// How wide an access is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Two,
    Four,
    Eight,
}

impl Width {
    pub const fn bytes(self) -> usize {
        match self {
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}

/// A machine whose devices reach memory.
pub trait DmaMemory: Send + Sync {
    /// The address at which devices find a frame.
    fn bus_address(&self, frame: FrameNumber) -> u64 {
        frame.physical_address()
    }
    /// Reads a word at an offset that is a multiple of its size, by one access.
    fn load(&self, frame: FrameNumber, offset: usize, width: Width) -> u64;
    /// The same, written: the lowest bytes of `value`.
    fn store(&self, frame: FrameNumber, offset: usize, width: Width, value: u64);
    /// Copies bytes that lie inside a frame.
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]);
    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]);
    /// The address at which synthesized code finds a frame's bytes.
    fn code_address(&self, frame: FrameNumber) -> u64;
    /// Takes frames back that were given for a device.
    fn give_back(&self, frames: Frames);
}

/// Frames in a row whose owner shares them with a device. The device must have been told to leave them alone before this is dropped.
///
/// `load` and `store` are single accesses of the processor, of which none is left out: the device looks on. Between those that must keep
/// their order stands a fence.
pub struct Dma {
    frames: Frames,
    memory: &'static dyn DmaMemory,
}

impl Dma {
    /// For a machine, of frames that it takes back by `give_back`.
    pub fn new(frames: Frames, memory: &'static dyn DmaMemory) -> Dma {
        Dma { frames, memory }
    }

    pub fn bytes(&self) -> usize {
        self.frames.count() * PAGE_BYTES
    }

    /// What the device is told of the byte at `offset`.
    pub fn bus_address(&self, offset: usize) -> u64 {
        self.memory.bus_address(self.frames.number((offset / PAGE_BYTES) as u32)) + (offset % PAGE_BYTES) as u64
    }

    /// Where synthesized code finds the byte at `offset`.
    pub fn code_address(&self, offset: usize) -> u64 {
        self.memory.code_address(self.frames.number((offset / PAGE_BYTES) as u32)) + (offset % PAGE_BYTES) as u64
    }

    /// # Panics
    /// If the range leaves the frames; as all of these do.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (frame, at, bytes) = self.piece(offset + done, into.len() - done);
            self.memory.read(frame, at, &mut into[done..done + bytes]);
            done += bytes;
        }
    }

    pub fn write(&self, offset: usize, from: &[u8]) {
        let mut done = 0;
        while done < from.len() {
            let (frame, at, bytes) = self.piece(offset + done, from.len() - done);
            self.memory.write(frame, at, &from[done..done + bytes]);
            done += bytes;
        }
    }

    pub fn load(&self, offset: usize, width: Width) -> u64 {
        let (frame, at) = self.word(offset, width);
        self.memory.load(frame, at, width)
    }

    pub fn store(&self, offset: usize, width: Width, value: u64) {
        let (frame, at) = self.word(offset, width);
        self.memory.store(frame, at, width, value);
    }

    fn word(&self, offset: usize, width: Width) -> (FrameNumber, usize) {
        assert!(offset.is_multiple_of(width.bytes()), "a word of {} bytes at {offset:#x}", width.bytes());
        (self.frames.number((offset / PAGE_BYTES) as u32), offset % PAGE_BYTES)
    }

    fn piece(&self, offset: usize, wanted: usize) -> (FrameNumber, usize, usize) {
        let at = offset % PAGE_BYTES;
        (self.frames.number((offset / PAGE_BYTES) as u32), at, wanted.min(PAGE_BYTES - at))
    }
}

impl Drop for Dma {
    fn drop(&mut self) {
        let frames = core::mem::replace(&mut self.frames, Frames::none());
        self.memory.give_back(frames);
    }
}
