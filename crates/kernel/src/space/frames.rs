//! The pool of page frames, and `Page`: one counted reference to a frame.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use machine::{FrameNumber, KernelCell, NoFrames, PAGE_BYTES, PhysicalMemory};

/// All frames the kernel may give away. A frame is free, or it has a count of references: `Page`
/// values and mappings in page tables. Invariant: count 0 ⇔ the frame is on the free list.
pub struct FramePool {
    memory: &'static dyn PhysicalMemory,
    state: KernelCell<State>,
}

struct State {
    /// First frame number that `counts` describes.
    base: u32,
    counts: Vec<u32>,
    free: Vec<u32>,
    /// Frames that only `allocate_reserved` may take: what the kernel needs to survive when
    /// programs have eaten the rest.
    reserve_frames: usize,
}

impl FramePool {
    /// A pool over the frames of `usable` (ranges of frame numbers, disjoint).
    pub fn new(
        memory: &'static dyn PhysicalMemory,
        usable: &[core::ops::Range<u32>],
        reserve_frames: usize,
    ) -> FramePool {
        let base = usable.iter().map(|range| range.start).min().unwrap_or(0);
        let end = usable.iter().map(|range| range.end).max().unwrap_or(0);
        let counts = alloc::vec![0; (end - base) as usize];
        // Popped from the back: low frames go out first, which keeps runs repeatable.
        let free: Vec<u32> = usable.iter().flat_map(|range| range.clone()).rev().collect();
        FramePool { memory, state: KernelCell::new(State { base, counts, free, reserve_frames }) }
    }

    /// A frame with unknown content, for a program. `None` when only the reserve is left.
    pub fn allocate(&'static self) -> Option<Page> {
        let reserve = self.state.borrow().reserve_frames;
        self.take(reserve)
    }

    /// A frame filled with zeros, for a program.
    pub fn allocate_zeroed(&'static self) -> Option<Page> {
        let page = self.allocate()?;
        page.fill(0, PAGE_BYTES, 0);
        Some(page)
    }

    /// A zeroed frame for the kernel itself (translation tables, thread areas): may use the reserve.
    pub fn allocate_reserved(&'static self) -> Result<Page, NoFrames> {
        let page = self.take(0).ok_or(NoFrames)?;
        page.fill(0, PAGE_BYTES, 0);
        Ok(page)
    }

    /// Takes over a frame that was in use before the pool existed (boot image, archive), count 1.
    /// The frame must not be in the pool's usable ranges.
    pub fn adopt(&'static self, frame: FrameNumber) -> Page {
        let mut state = self.state.borrow_mut();
        let needed = (frame.0 - state.base) as usize + 1;
        if state.counts.len() < needed {
            state.counts.resize(needed, 0);
        }
        let index = (frame.0 - state.base) as usize;
        assert_eq!(state.counts[index], 0, "adopted frame {frame:?} is in use");
        state.counts[index] = 1;
        drop(state);
        Page { pool: self, frame }
    }

    /// Another reference to a frame that is known to be in use (its number came from a mapping).
    pub fn share(&'static self, frame: FrameNumber) -> Page {
        self.change_count(frame, |count| count + 1);
        Page { pool: self, frame }
    }

    /// Turns a number that [`Page::into_raw`] gave back into the reference it stood for.
    pub fn from_raw(&'static self, frame: FrameNumber) -> Page {
        assert!(self.count(frame) > 0, "frame {frame:?} is free");
        Page { pool: self, frame }
    }

    pub fn free_frames(&self) -> usize {
        self.state.borrow().free.len()
    }

    pub fn memory(&self) -> &'static dyn PhysicalMemory {
        self.memory
    }

    fn take(&'static self, keep: usize) -> Option<Page> {
        let mut state = self.state.borrow_mut();
        if state.free.len() <= keep {
            return None;
        }
        let number = state.free.pop()?;
        let index = (number - state.base) as usize;
        state.counts[index] = 1;
        Some(Page { pool: self, frame: FrameNumber(number) })
    }

    fn count(&self, frame: FrameNumber) -> u32 {
        let state = self.state.borrow();
        state.counts[(frame.0 - state.base) as usize]
    }

    fn change_count(&self, frame: FrameNumber, change: impl FnOnce(u32) -> u32) -> u32 {
        let mut state = self.state.borrow_mut();
        let index = (frame.0 - state.base) as usize;
        let count = state.counts[index];
        assert!(count > 0, "frame {frame:?} is free");
        state.counts[index] = change(count);
        state.counts[index]
    }
}

/// One counted reference to a frame. The last one to go returns the frame to its pool.
pub struct Page {
    pool: &'static FramePool,
    frame: FrameNumber,
}

impl Page {
    pub fn frame(&self) -> FrameNumber {
        self.frame
    }

    /// More than one reference exists, so a writer must copy first.
    pub fn is_shared(&self) -> bool {
        self.pool.count(self.frame) > 1
    }

    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.pool.memory.read(self.frame, offset, into);
    }

    pub fn write(&self, offset: usize, from: &[u8]) {
        self.pool.memory.write(self.frame, offset, from);
    }

    pub fn fill(&self, offset: usize, bytes: usize, value: u8) {
        self.pool.memory.fill(self.frame, offset, bytes, value);
    }

    /// A new frame with the same content.
    pub fn duplicate(&self) -> Option<Page> {
        let copy = self.pool.allocate()?;
        self.pool.memory.copy(self.frame, copy.frame);
        Some(copy)
    }

    /// Gives the reference to a page-table entry; `FramePool::from_raw` takes it back.
    pub fn into_raw(self) -> FrameNumber {
        ManuallyDrop::new(self).frame
    }
}

impl Clone for Page {
    fn clone(&self) -> Page {
        self.pool.share(self.frame)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if self.pool.change_count(self.frame, |count| count - 1) == 0 {
            if cfg!(debug_assertions) {
                self.pool.memory.fill(self.frame, 0, PAGE_BYTES, 0xCC);
            }
            self.pool.state.borrow_mut().free.push(self.frame.0);
        }
    }
}
