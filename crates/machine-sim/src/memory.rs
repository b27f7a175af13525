//! Frames, and the memory of the program whose quaspace is active.

use machine::{
    Access, Entered, FrameNumber, LocalCell, Mapping, PAGE_BYTES, PhysicalMemory, UserFault, UserMemory, VirtAddr,
};

use crate::SimMachine;

const PAGE_MASK: u64 = PAGE_BYTES as u64 - 1;

/// All frames, one behind the other.
pub struct Frames(LocalCell<Vec<u8>>);

impl Frames {
    pub fn new(count: usize) -> Frames {
        Frames(LocalCell::new(vec![0; count * PAGE_BYTES]))
    }

    fn at(frame: FrameNumber, offset: usize, bytes: usize) -> core::ops::Range<usize> {
        assert!(offset + bytes <= PAGE_BYTES, "range leaves the frame");
        let start = frame.number() as usize * PAGE_BYTES + offset;
        start..start + bytes
    }

    /// The bytes at a physical address, which may go across frames.
    pub fn bytes(&self, address: u64, bytes: usize, act: impl FnOnce(&mut [u8])) {
        act(&mut self.0.borrow_mut()[address as usize..][..bytes]);
    }

    /// Gives the memory back to the host, after the run.
    pub fn release(&self) {
        *self.0.borrow_mut() = Vec::new();
    }
}

impl SimMachine {
    /// All frames of the machine.
    ///
    /// # Panics
    /// The second time.
    pub fn take_frames(&self) -> machine::Frames {
        let count = self.unowned.take();
        assert!(count > 0, "the frames have an owner");
        // SAFETY: they have no other owner; all accesses are checked against the vector's length anyway.
        unsafe { machine::Frames::new(0..count) }
    }
}

impl PhysicalMemory for SimMachine {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.frames.0.borrow()[Frames::at(frame, offset, into.len())]);
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        self.frames.0.borrow_mut()[Frames::at(frame, offset, from.len())].copy_from_slice(from);
    }

    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        self.frames.0.borrow_mut()[Frames::at(frame, offset, bytes)].fill(value);
    }

    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        let to = to.number() as usize * PAGE_BYTES;
        self.frames.0.borrow_mut().copy_within(Frames::at(from, 0, PAGE_BYTES), to);
    }

    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(frame, offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        self.write(frame, offset, &value.to_le_bytes());
    }
}

impl SimMachine {
    /// The page at `at` of the active quaspace, supplied by the kernel if need be, as the processor would find it.
    fn page(&self, at: u64, write: bool) -> Result<Mapping, UserFault> {
        let address = VirtAddr(at);
        for _ in 0..3 {
            let translation = self.active_translation().ok_or(UserFault)?;
            if let Some(mapping) = translation.touch(at & !PAGE_MASK, write) {
                return Ok(mapping);
            }
            let access = Access { address, write, execute: false };
            let is_user = at < 0x7FFF_FFFF_F000;
            // SAFETY: the fault is served at once, whoever met it.
            let _entered = unsafe { Entered::by_fault() };
            if !is_user || !self.kernel().page_fault(self.current(), access) {
                return Err(UserFault);
            }
        }
        panic!("the kernel says that it has supplied page {at:#x}, and it is not there")
    }

    /// Calls `each` with frame, offset, place in the transfer and length of each piece; returns how many bytes came
    /// before a fault.
    fn pieces(
        &self,
        at: u64,
        bytes: usize,
        write: bool,
        mut each: impl FnMut(FrameNumber, usize, usize, usize),
    ) -> usize {
        let mut done = 0;
        while done < bytes {
            let address = at.wrapping_add(done as u64);
            let Ok(mapping) = self.page(address, write) else { break };
            let offset = (address & PAGE_MASK) as usize;
            let piece = (bytes - done).min(PAGE_BYTES - offset);
            each(mapping.frame, offset, done, piece);
            done += piece;
        }
        done
    }
}

impl SimMachine {
    /// Reads the running program's memory up to the first fault; returns how many bytes.
    pub(crate) fn read_program(&self, from: u64, into: &mut [u8]) -> usize {
        self.pieces(from, into.len(), false, |frame, offset, place, piece| {
            self.read(frame, offset, &mut into[place..place + piece]);
        })
    }

    /// Writes it.
    pub(crate) fn write_program(&self, to: u64, from: &[u8]) -> usize {
        self.pieces(to, from.len(), true, |frame, offset, place, piece| {
            self.write(frame, offset, &from[place..place + piece]);
        })
    }
}

impl UserMemory for SimMachine {
    fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), UserFault> {
        if self.read_program(from.0, into) == into.len() { Ok(()) } else { Err(UserFault) }
    }

    fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), UserFault> {
        if self.write_program(to.0, from) == from.len() { Ok(()) } else { Err(UserFault) }
    }

    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let mut buffer = [0; PAGE_BYTES];
        self.pieces(from.0, bytes, false, |source, at, place, piece| {
            self.read(source, at, &mut buffer[..piece]);
            self.write(frame, offset + place, &buffer[..piece]);
        })
    }

    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let mut buffer = [0; PAGE_BYTES];
        self.pieces(to.0, bytes, true, |target, at, place, piece| {
            self.read(frame, offset + place, &mut buffer[..piece]);
            self.write(target, at, &buffer[..piece]);
        })
    }

    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize {
        self.pieces(to.0, bytes, true, |frame, offset, _, piece| self.fill(frame, offset, piece, 0))
    }
}
