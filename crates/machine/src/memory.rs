//! Physical memory and the caller's memory, reached only by copying.
//!
//! Kernel code above layer 2 never holds a pointer into a frame or into a program: it names bytes
//! and has them copied. That is what lets those crates forbid `unsafe`.

use alloc::sync::Arc;
use core::ops::Range;

use crate::{Dma, FrameNumber, Frames, NoFrames, Translation, UserFault, VirtAddr};

/// Bytes in a page and in a frame (SDM vol. 3A, 4.5: 4-level paging, 4-KByte pages).
pub const PAGE_BYTES: usize = 4096;

/// The machine's frames. All ranges lie inside one frame; an offset or length that leaves it is a
/// kernel bug and panics.
pub trait PhysicalMemory: Send + Sync {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]);
    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]);
    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8);
    /// Copies a whole frame.
    fn copy(&self, from: FrameNumber, to: FrameNumber);
    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64;
    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64);
}

/// The memory of the program whose quaspace is active. Every function checks that the range lies
/// below the user limit and reports, never suffers, a fault (S-64, S-87).
///
/// A page that the quaspace can supply (demand zero, copy on write, file page) is supplied on the
/// way; only a range the program itself could not touch, or whose page must come first, is a [`UserFault`].
/// No copy sleeps, and nobody else runs meanwhile (ADR 46).
pub trait UserMemory {
    /// Copies from the program. On a fault an unknown prefix of `into` has been written.
    fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), UserFault>;
    /// Copies to the program. On a fault a prefix may have been written.
    fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), UserFault>;
    /// Copies program bytes straight into a frame; returns how many bytes were copied before the
    /// first byte that faulted (`bytes` when all were).
    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize;
    /// Copies frame bytes straight to the program; returns the count as `copy_in_frame` does.
    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize;
    /// Fills program memory with zeros; returns how many bytes were written before a fault.
    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize;
}

/// What of the kernel's heap is in use: whatever is left behind shows here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapLive {
    /// Blocks, and pages of those that are large.
    pub blocks: usize,
    /// Their sizes, as the heap rounds them.
    pub bytes: usize,
    /// Pages that these blocks lie in, and free ones between them.
    pub pages: usize,
}

/// Memory as a whole: translations, frames, the kernel's own.
pub trait Memory: PhysicalMemory + UserMemory {
    /// Frames in a row, all zeros, for a device.
    fn dma(&self, pages: usize) -> Result<Dma, NoFrames>;
    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames>;
    /// Activates a quaspace for the current thread (exec), or the kernel's own tables.
    fn activate(&self, quaspace: Option<&dyn Translation>);
    /// Gives back frames that the machine keeps for later use, because memory is out; returns how many.
    fn reclaim(&self) -> usize {
        0
    }
    /// Pages that the kernel's heap could take now.
    fn heap_pages(&self) -> usize {
        usize::MAX
    }
    /// What of the kernel's heap is in use.
    fn heap_live(&self) -> HeapLive {
        HeapLive::default()
    }
    /// The eight bytes at `address`, if the kernel's own data or code is there. Touches nothing else.
    fn peek(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }
    /// Where all of the kernel's own data and code lies, and no device: what people may look at. Some of it may be absent.
    fn kernel_range(&self) -> Range<u64> {
        0..0
    }
    /// The address at which synthesized code finds a frame's bytes.
    fn frame_address(&self, frame: FrameNumber) -> u64;
}

/// Where a machine takes frames for its own needs (translation tables, thread areas, heap) and
/// gives them back. The kernel's frame pool implements it.
pub trait FrameSource: Send + Sync {
    /// A zeroed frame.
    fn take(&self) -> Result<FrameNumber, NoFrames>;
    /// A frame that may hold anything.
    fn take_dirty(&self) -> Result<FrameNumber, NoFrames> {
        self.take()
    }
    /// Zeroed frames in a row.
    fn take_row(&self, count: usize) -> Result<Frames, NoFrames>;
    fn give(&self, frame: FrameNumber);
    /// Gives back a frame that holds only zeros, as `take` gave it.
    fn give_zeroed(&self, frame: FrameNumber) {
        self.give(frame);
    }
    /// Frames that `take` could give now.
    fn available(&self) -> usize;
}

/// Frames that programs cannot take from the kernel, neither as translation tables nor by calls that need
/// large kernel memory: what is left for small records and for ending programs when memory is out.
pub const KERNEL_FRAMES_MIN: usize = 128;

/// Most bytes that the kernel takes without asking from one safe point to the next: from a program's entry until it goes back or
/// leaves for another thread. What takes more asks, and is refused.
pub const ENTRY_BYTES_MAX: usize = 192 << 10;

/// Most bytes among them in one piece: what the optimizer notes about the longest routine.
pub const BLOCK_BYTES_MAX: usize = 16 << 10;

const _: () = assert!(2 * ENTRY_BYTES_MAX <= KERNEL_FRAMES_MIN * PAGE_BYTES);
