//! The memory of the program that calls: an area with pages that it may read and write, only read, or not touch.
//!
//! ```text
//!   0        48        49        81        82         130  limit
//!   │ RW     │ nothing │ R       │ nothing │ RW       │    │ nothing, as behind the last page of every program
//! ```
//! Numbers are pages; the program's addresses end at the limit.

use machine::{FrameNumber, PAGE_BYTES, UserFault, UserMemory, VirtAddr};

use crate::arena::low_memory;

const READ_WRITE: [std::ops::Range<usize>; 2] = [0..48, 82..130];
const READ_ONLY: std::ops::Range<usize> = 49..81;
const LIMIT_PAGE: usize = 130;
pub const AREA_BYTES: usize = LIMIT_PAGE * PAGE_BYTES;
/// Behind the limit, longer than the longest copy of a routine.
const BEHIND_PAGES: usize = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
}

pub struct Program {
    base: usize,
    frames: usize,
}

impl Program {
    /// `frames` is where frame 0 lies.
    pub fn new(frames: usize) -> Program {
        let base = low_memory((LIMIT_PAGE + BEHIND_PAGES) * PAGE_BYTES, libc::PROT_NONE);
        let open = |pages: std::ops::Range<usize>, protection| {
            let start = (base + pages.start * PAGE_BYTES) as *mut libc::c_void;
            // SAFETY: the pages are this mapping's.
            let result = unsafe { libc::mprotect(start, pages.len() * PAGE_BYTES, protection) };
            assert_eq!(result, 0);
        };
        for pages in READ_WRITE {
            open(pages, libc::PROT_READ | libc::PROT_WRITE);
        }
        open(READ_ONLY, libc::PROT_READ);
        Program { base, frames }
    }

    pub fn base(&self) -> u64 {
        self.base as u64
    }

    /// First address that the program may not use.
    pub fn limit(&self) -> u64 {
        (self.base + AREA_BYTES) as u64
    }

    /// How many of `bytes` bytes from `address` can be accessed before the first that faults.
    pub fn reachable(&self, address: u64, bytes: usize, access: Access) -> usize {
        let mut done = 0;
        while done < bytes {
            let Some(offset) = address.wrapping_add(done as u64).checked_sub(self.base()) else { break };
            if offset >= AREA_BYTES as u64 {
                break;
            }
            let page = offset as usize / PAGE_BYTES;
            let writable = READ_WRITE.iter().any(|pages| pages.contains(&page));
            if !writable && (access == Access::Write || !READ_ONLY.contains(&page)) {
                break;
            }
            done += PAGE_BYTES - offset as usize % PAGE_BYTES;
        }
        done.min(bytes)
    }

    /// An address for a buffer of `bytes` bytes: mostly a good one, often at the edge of one, sometimes a wild one.
    pub fn buffer(&self, random: &mut crate::Random, bytes: usize) -> u64 {
        let edges = [48, 81, 130].map(|page| (self.base + page * PAGE_BYTES) as u64);
        match random.below(40) {
            0 => random.pick(&[0, 1, u64::MAX, 1 << 63, 0xFFFF_8000_0000_0000, self.limit(), self.limit() - 1]),
            1 | 2 => random.pick(&edges) - random.below(bytes as u64 + 2),
            3 => random.pick(&edges) + random.below(64),
            4 => random.pick(&edges) - bytes as u64,
            _ => {
                let pages = random.pick(&READ_WRITE.map(|pages| (pages.start, pages.end)));
                let room = ((pages.1 - pages.0) * PAGE_BYTES).saturating_sub(bytes) as u64;
                self.base() + (pages.0 * PAGE_BYTES) as u64 + random.below(room + 1)
            }
        }
    }

    /// The address of a buffer whose first `bytes` bytes can be used.
    pub fn fault_after(&self, bytes: u64) -> u64 {
        self.base() + (READ_WRITE[0].end * PAGE_BYTES) as u64 - bytes
    }

    /// The bytes at `address`, as far as they can be read.
    pub fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut copy = vec![0; self.reachable(address, bytes, Access::Read)];
        // SAFETY: the range can be read.
        unsafe { copy.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, copy.len()) };
        copy
    }

    /// Stores random bytes, as far as that is possible.
    pub fn scramble(&self, random: &mut crate::Random, address: u64, bytes: usize) {
        let noise: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).collect();
        let reachable = self.reachable(address, bytes, Access::Write);
        // SAFETY: the range can be written.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(noise.as_ptr(), reachable) };
    }

    /// Stores `text`, which must fit.
    pub fn store(&self, address: u64, text: &[u8]) {
        assert_eq!(self.reachable(address, text.len(), Access::Write), text.len());
        // SAFETY: the range can be written.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    }

    fn frame(&self, frame: FrameNumber, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset + bytes <= PAGE_BYTES, "range leaves the frame");
        (self.frames + frame.number() as usize * PAGE_BYTES + offset) as *mut u8
    }
}

impl UserMemory for Program {
    fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), UserFault> {
        let bytes = self.reachable(from.0, into.len(), Access::Read);
        // SAFETY: the range can be read.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from.0 as *const u8, bytes) };
        if bytes == into.len() { Ok(()) } else { Err(UserFault) }
    }

    fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), UserFault> {
        let bytes = self.reachable(to.0, from.len(), Access::Write);
        // SAFETY: the range can be written.
        unsafe { (to.0 as *mut u8).copy_from_nonoverlapping(from.as_ptr(), bytes) };
        if bytes == from.len() { Ok(()) } else { Err(UserFault) }
    }

    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let reachable = self.reachable(from.0, bytes, Access::Read);
        // SAFETY: both ranges are mapped and do not overlap.
        unsafe { self.frame(frame, offset, bytes).copy_from_nonoverlapping(from.0 as *const u8, reachable) };
        reachable
    }

    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let reachable = self.reachable(to.0, bytes, Access::Write);
        // SAFETY: both ranges are mapped and do not overlap.
        unsafe { (to.0 as *mut u8).copy_from_nonoverlapping(self.frame(frame, offset, bytes), reachable) };
        reachable
    }

    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize {
        let reachable = self.reachable(to.0, bytes, Access::Write);
        // SAFETY: the range can be written.
        unsafe { (to.0 as *mut u8).write_bytes(0, reachable) };
        reachable
    }
}
