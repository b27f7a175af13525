//! The pool of page frames, and `Page`: one counted reference to a frame.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use machine::{FrameNumber, FrameSource, KernelCell, NoFrames, PAGE_BYTES, PhysicalMemory};

/// All frames the kernel may give away. A frame is free, or it has a count of references: `Page`
/// values and mappings in page tables. Invariant: count 0 ⇔ the frame is on the free list.
pub struct FramePool {
    memory: &'static dyn PhysicalMemory,
    /// Frames that only `allocate_reserved` may take: what the kernel needs to survive when
    /// programs have eaten the rest.
    reserve_frames: usize,
    /// A frame of zeros that is never written: what a page shows that was only read so far. The
    /// pool keeps one reference for itself, so the frame is always shared and never freed.
    zero: Option<FrameNumber>,
    state: KernelCell<State>,
}

/// Frames kept zeroed ahead at most (S-106): 1 MiB. More would only be zeroed later.
const ZEROED_FRAMES_MAX: usize = 256;

/// How many times the kernel's reserve is kept from files.
const RESERVES_KEPT_FROM_FILES: usize = 4;

/// What a free frame holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Zero,
    Unknown,
}

struct State {
    /// First frame number that `counts` describes.
    base: u32,
    counts: Vec<u32>,
    free: Vec<u32>,
    /// Frames of the pool, free or not.
    total_frames: usize,
    /// Frames from this number on are lent, not the pool's.
    lent_from: u32,
    /// Free frames that are already zero, filled in idle time (S-106).
    zeroed: Vec<u32>,
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
        let mut counts = alloc::vec![0; (end - base) as usize];
        // Popped from the back: low frames go out first, which keeps runs repeatable.
        let mut free: Vec<u32> = usable.iter().flat_map(|range| range.clone()).rev().collect();
        // Adopted frames come here when they are freed; the list must never grow while the pool is borrowed,
        // because the heap takes its frames from this pool.
        free.reserve_exact(counts.len() - free.len());
        let total_frames = free.len();
        let zero = free.pop().map(FrameNumber);
        if let Some(frame) = zero {
            counts[(frame.0 - base) as usize] = 1;
            memory.fill(frame, 0, PAGE_BYTES, 0);
        }
        let zeroed = Vec::with_capacity(ZEROED_FRAMES_MAX);
        let state = KernelCell::new(State { base, counts, free, total_frames, lent_from: u32::MAX, zeroed });
        FramePool { memory, reserve_frames, zero, state }
    }

    /// A frame with unknown content, for a program. `None` when only the reserve is left.
    pub fn allocate(&'static self) -> Option<Page> {
        self.take(self.reserve_frames, Content::Unknown).map(|(page, _)| page)
    }

    /// A frame filled with zeros, for a program.
    pub fn allocate_zeroed(&'static self) -> Option<Page> {
        self.take_zeroed(self.reserve_frames)
    }

    /// A frame with unknown content, for a file. The last part of memory is for programs: files stay when
    /// nobody runs, so nobody could be ended to get their frames back.
    pub fn allocate_for_file(&'static self) -> Option<Page> {
        self.take(self.reserve_frames * RESERVES_KEPT_FROM_FILES, Content::Unknown).map(|(page, _)| page)
    }

    /// A zeroed frame for the kernel itself (translation tables, thread areas): may use the reserve.
    pub fn allocate_reserved(&'static self) -> Result<Page, NoFrames> {
        self.take_zeroed(0).ok_or(NoFrames)
    }

    /// The shared page of zeros. It must only ever be mapped without write.
    pub fn zero_page(&'static self) -> Option<Page> {
        self.zero.map(|frame| self.share(frame))
    }

    pub fn is_zero_frame(&self, frame: FrameNumber) -> bool {
        self.zero == Some(frame)
    }

    /// More than one reference to the frame exists.
    pub fn is_shared(&self, frame: FrameNumber) -> bool {
        self.count(frame) > 1
    }

    /// Zeros one free frame ahead of its use; called while nothing else wants the processor.
    /// `false` when enough are ready.
    pub fn zero_one_ahead(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.zeroed.len() >= ZEROED_FRAMES_MAX {
            return false;
        }
        let Some(number) = state.free.pop() else { return false };
        self.memory.fill(FrameNumber(number), 0, PAGE_BYTES, 0);
        state.zeroed.push(number);
        true
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
        state.total_frames += 1;
        drop(state);
        Page { pool: self, frame }
    }

    /// A frame that is not the pool's: somebody lends it, and keeps it when its references are gone. Count 1. Lent
    /// frames have higher numbers than all others.
    pub fn lend(&'static self, frame: FrameNumber) -> Page {
        let mut state = self.state.borrow_mut();
        let index = (frame.0 - state.base) as usize;
        if state.counts.len() <= index {
            state.counts.resize(index + 1, 0);
        }
        assert_eq!(state.counts[index], 0, "lent frame {frame:?} is in use");
        state.counts[index] = 1;
        state.lent_from = state.lent_from.min(frame.0);
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

    /// Takes back the only reference to a frame that holds zeros again: the next one who wants zeros gets it.
    fn free_zeroed(&self, frame: FrameNumber) {
        let mut state = self.state.borrow_mut();
        let index = (frame.0 - state.base) as usize;
        assert_eq!(state.counts[index], 1, "frame {frame:?} is in use or free");
        state.counts[index] = 0;
        let list = if state.zeroed.len() < ZEROED_FRAMES_MAX { &mut state.zeroed } else { &mut state.free };
        list.push(frame.0);
    }

    /// More than half of the frames are free, so that some may be given out before they are needed.
    pub fn has_plenty(&self) -> bool {
        self.free_frames() > self.total_frames() / 2
    }

    /// Gives up a reference that [`Page::into_raw`] gave back: as `from_raw` and `drop`.
    pub fn give_up(&self, frame: FrameNumber) {
        let mut state = self.state.borrow_mut();
        let index = (frame.0 - state.base) as usize;
        assert!(state.counts[index] > 0, "frame {frame:?} is free");
        state.counts[index] -= 1;
        if state.counts[index] == 0 && frame.0 < state.lent_from {
            if cfg!(debug_assertions) {
                self.memory.fill(frame, 0, PAGE_BYTES, 0xCC);
            }
            state.free.push(frame.0);
        }
    }

    pub fn free_frames(&self) -> usize {
        let state = self.state.borrow();
        state.free.len() + state.zeroed.len()
    }

    /// Frames the pool was made with or has adopted, free or not.
    pub fn total_frames(&self) -> usize {
        self.state.borrow().total_frames
    }

    pub fn memory(&self) -> &'static dyn PhysicalMemory {
        self.memory
    }

    fn take_zeroed(&'static self, keep: usize) -> Option<Page> {
        let (page, content) = self.take(keep, Content::Zero)?;
        if content == Content::Unknown {
            page.fill(0, PAGE_BYTES, 0);
        }
        Some(page)
    }

    /// A free frame, if more than `keep` are left, and what it holds; one that holds `wanted` when
    /// there is such a frame.
    fn take(&'static self, keep: usize, wanted: Content) -> Option<(Page, Content)> {
        let mut state = self.state.borrow_mut();
        if state.free.len() + state.zeroed.len() <= keep {
            return None;
        }
        let zero_first = wanted == Content::Zero && !state.zeroed.is_empty();
        let (number, content) = if zero_first || state.free.is_empty() {
            (state.zeroed.pop()?, Content::Zero)
        } else {
            (state.free.pop()?, Content::Unknown)
        };
        let index = (number - state.base) as usize;
        state.counts[index] = 1;
        Some((Page { pool: self, frame: FrameNumber(number) }, content))
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

/// The machine takes its own frames (tables, thread areas, heap) from the pool too.
pub struct PoolSource(pub &'static FramePool);

impl FrameSource for PoolSource {
    fn take(&self) -> Result<FrameNumber, NoFrames> {
        self.0.allocate_reserved().map(Page::into_raw)
    }

    fn give(&self, frame: FrameNumber) {
        self.0.give_up(frame);
    }

    fn give_zeroed(&self, frame: FrameNumber) {
        self.0.free_zeroed(frame);
    }

    fn available(&self) -> usize {
        self.0.free_frames()
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
        self.pool.give_up(self.frame);
    }
}
