//! The pool of page frames, and `Page`: one counted reference to a frame.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use machine::{
    FrameNumber, FrameSource, Frames, KernelCell, NoFrames, NoMemory, PAGE_BYTES, PhysicalMemory, Shown, TryGrow,
};

use super::commit::MemoryRules;

/// All frames the kernel may give away. A frame is free, or it has a count of references: `Page`
/// values and mappings in page tables. Invariant: count 0 ⇔ the frame is on a free list or was never given out.
pub struct FramePool {
    memory: &'static dyn PhysicalMemory,
    /// Frames that only `allocate_reserved` may take: what the kernel needs to survive when
    /// programs have eaten the rest.
    reserve_frames: usize,
    /// A frame of zeros that is never written: what a page shows that was only read so far. The
    /// pool keeps one reference for itself, so the frame is always shared and never freed.
    zero: Option<FrameNumber>,
    state: KernelCell<State>,
    pub rules: MemoryRules,
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
    /// Up to the highest frame that was ever in use: most of memory is never touched, and neither are its counts.
    counts: Vec<u32>,
    /// Free frames that were in use before.
    free: Vec<FrameNumber>,
    /// Frames that were never given out, the next range last.
    fresh: Vec<Frames>,
    /// Frames in `fresh`.
    fresh_frames: usize,
    /// Frames of the pool, free or not.
    total_frames: usize,
    /// Frames from this number on are lent, not the pool's.
    lent_from: u32,
    /// Counts of lent frames, from `lent_from` on.
    lent: Vec<u32>,
    /// Free frames that are already zero, filled in idle time (S-106).
    zeroed: Vec<FrameNumber>,
}

impl State {
    /// A free frame: what was used before first (it is present), then low frames, which keeps runs repeatable.
    fn pop_free(&mut self) -> Option<FrameNumber> {
        if let Some(frame) = self.free.pop() {
            return Some(frame);
        }
        loop {
            let frames = self.fresh.last_mut()?;
            if let Some(frame) = frames.take() {
                self.fresh_frames -= 1;
                return Some(frame);
            }
            self.fresh.pop();
        }
    }

    fn free_frames(&self) -> usize {
        self.free.len() + self.zeroed.len() + self.fresh_frames
    }

    fn count(&self, frame: FrameNumber) -> u32 {
        let (counts, first) =
            if frame.number() >= self.lent_from { (&self.lent, self.lent_from) } else { (&self.counts, 0) };
        counts.get((frame.number() - first) as usize).copied().unwrap_or(0)
    }

    /// The count of a frame, which is described from now on.
    #[inline(always)]
    fn count_mut(&mut self, frame: FrameNumber) -> &mut u32 {
        // Lent frames have higher numbers than all that `counts` describes.
        let index = frame.number() as usize;
        if index < self.counts.len() { &mut self.counts[index] } else { self.describe(frame) }
    }

    /// As `count_mut`, of a frame that has references.
    #[inline(always)]
    fn count_in_use(&mut self, frame: FrameNumber) -> &mut u32 {
        let count = self.count_mut(frame);
        assert!(*count > 0, "frame {frame:?} is free");
        count
    }

    /// The count of a lent frame, or of one that was not in use so far. Only a frame that the pool was not made with needs memory.
    #[cold]
    #[expect(clippy::disallowed_methods, reason = "at boot; who lends frames prepares it")]
    fn describe(&mut self, frame: FrameNumber) -> &mut u32 {
        let (counts, first) =
            if frame.number() >= self.lent_from { (&mut self.lent, self.lent_from) } else { (&mut self.counts, 0) };
        let index = (frame.number() - first) as usize;
        // Many at a time: the boot archive may lie at the other end of memory.
        let zeros = [0; 512];
        while let missing @ 1.. = (index + 1).saturating_sub(counts.len()) {
            counts.extend_from_slice(&zeros[..missing.min(zeros.len())]);
        }
        &mut counts[index]
    }
}

impl FramePool {
    /// A pool over the frames of `usable`, the last ones first.
    #[expect(clippy::disallowed_methods, reason = "at boot")]
    pub fn new(memory: &'static dyn PhysicalMemory, mut usable: Vec<Frames>, reserve_frames: usize) -> FramePool {
        let end = usable.iter().map(|frames| frames.range().end).max().unwrap_or(0);
        let total_frames = usable.iter().map(Frames::count).sum();
        usable.reverse();
        // Both have their room now: adopted frames come to the list when they are freed, and neither may grow while the
        // pool is borrowed, because the heap takes its frames from this pool.
        let described = end as usize;
        let mut state = State {
            counts: Vec::with_capacity(described),
            free: Vec::with_capacity(described),
            fresh: usable,
            fresh_frames: total_frames,
            total_frames,
            lent_from: u32::MAX,
            lent: Vec::new(),
            zeroed: Vec::with_capacity(ZEROED_FRAMES_MAX),
        };
        let zero = state.pop_free();
        if let Some(frame) = zero {
            *state.count_mut(frame) = 1;
            memory.fill(frame, 0, PAGE_BYTES, 0);
        }
        let state = KernelCell::new(state);
        let rules = MemoryRules::new();
        FramePool { memory, reserve_frames, zero, state, rules }
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

    /// References to a frame; 0: it is free.
    pub(crate) fn references(&self, frame: FrameNumber) -> u32 {
        self.count(frame)
    }

    pub(crate) fn zero_frame(&self) -> Option<FrameNumber> {
        self.zero
    }

    pub(crate) fn is_zero_frame(&self, frame: FrameNumber) -> bool {
        self.zero == Some(frame)
    }

    /// More than one reference to the frame exists.
    pub(crate) fn is_shared(&self, frame: FrameNumber) -> bool {
        self.count(frame) > 1
    }

    /// Zeros one free frame ahead of its use; called while nothing else wants the processor.
    /// `false` when enough are ready.
    pub fn zero_one_ahead(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.zeroed.len() >= ZEROED_FRAMES_MAX {
            return false;
        }
        let Some(frame) = state.pop_free() else { return false };
        self.memory.fill(frame, 0, PAGE_BYTES, 0);
        state.zeroed.put(frame);
        true
    }

    /// Takes over the first of `frames`, which were in use before the pool existed (boot image, archive), count 1. `None`: there
    /// is none.
    pub fn adopt(&'static self, frames: &mut Frames) -> Option<Page> {
        let frame = frames.take()?;
        let mut state = self.state.borrow_mut();
        let count = state.count_mut(frame);
        assert_eq!(*count, 0, "adopted frame {frame:?} is in use");
        *count = 1;
        state.total_frames += 1;
        drop(state);
        Some(Page { pool: self, frame })
    }

    /// Room to count the frames of a window, before they are lent. The list grows outside of the pool's cell: the heap takes its
    /// frames from this pool.
    pub fn prepare_to_lend(&self, window: &Frames) -> Result<(), NoMemory> {
        let (mut lent, first) = {
            let mut state = self.state.borrow_mut();
            if state.lent.is_empty() {
                state.lent_from = window.range().start;
            }
            (core::mem::take(&mut state.lent), state.lent_from)
        };
        let missing = ((window.range().end - first) as usize).saturating_sub(lent.len());
        let grown = lent.room_for(missing);
        self.state.borrow_mut().lent = lent;
        grown
    }

    /// The frame `index` of a window that is not the pool's: somebody lends it, and gets it back when its references are gone. Count
    /// 1; after `prepare_to_lend`. Lent frames have higher numbers than all others.
    pub fn lend(&'static self, window: &Frames, index: u32) -> Page {
        let frame = window.number(index);
        let mut state = self.state.borrow_mut();
        if state.lent.is_empty() {
            state.lent_from = frame.number();
        }
        let count = state.count_mut(frame);
        assert_eq!(*count, 0, "lent frame {frame:?} is in use");
        *count = 1;
        drop(state);
        Page { pool: self, frame }
    }

    /// Another reference to a frame that is known to be in use (its number came from a mapping).
    pub(crate) fn share(&'static self, frame: FrameNumber) -> Page {
        *self.state.borrow_mut().count_in_use(frame) += 1;
        Page { pool: self, frame }
    }

    /// As `share`, for all frames of `pages`.
    pub(crate) fn share_all(&self, pages: &[Shown]) {
        let mut state = self.state.borrow_mut();
        for shown in pages {
            *state.count_in_use(shown.frame) += 1;
        }
    }

    /// Takes back the only reference to a frame that holds zeros again: the next one who wants zeros gets it.
    fn free_zeroed(&self, frame: FrameNumber) {
        let mut state = self.state.borrow_mut();
        let count = state.count_mut(frame);
        assert_eq!(*count, 1, "frame {frame:?} is in use or free");
        *count = 0;
        let list = if state.zeroed.len() < ZEROED_FRAMES_MAX { &mut state.zeroed } else { &mut state.free };
        list.put(frame);
    }

    /// More than half of the frames are free, so that some may be given out before they are needed.
    pub fn has_plenty(&self) -> bool {
        self.free_frames() > self.total_frames() / 2
    }

    /// Gives up a reference that [`Page::into_raw`] gave back: as dropping the page.
    pub(crate) fn give_up(&self, frame: FrameNumber) {
        self.give_up_one(&mut self.state.borrow_mut(), frame);
    }

    #[inline(always)]
    fn give_up_one(&self, state: &mut State, frame: FrameNumber) {
        let count = state.count_in_use(frame);
        *count -= 1;
        if *count == 0 && frame.number() < state.lent_from {
            if cfg!(debug_assertions) {
                self.memory.fill(frame, 0, PAGE_BYTES, 0xCC);
            }
            state.free.put(frame);
        }
    }

    /// The same for several, and how many of them were not the page of zeros. The first is given out next: pages that were neighbours
    /// are so again in the next program, as far as their frames are.
    pub(crate) fn give_up_all(&self, frames: &[FrameNumber]) -> u64 {
        let (mut state, zeros, mut others) = (self.state.borrow_mut(), self.zero_frame(), frames.len() as u64);
        for &frame in frames.iter().rev() {
            others -= u64::from(Some(frame) == zeros);
            self.give_up_one(&mut state, frame);
        }
        others
    }

    pub fn free_frames(&self) -> usize {
        self.state.borrow().free_frames()
    }

    /// Frames the pool was made with or has adopted, free or not.
    pub fn total_frames(&self) -> usize {
        self.state.borrow().total_frames
    }

    pub(crate) fn memory(&self) -> &'static dyn PhysicalMemory {
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
        if state.free_frames() <= keep {
            return None;
        }
        let zero_first = wanted == Content::Zero && !state.zeroed.is_empty();
        let unknown = if zero_first { None } else { state.pop_free() };
        let (frame, content) = match unknown {
            Some(frame) => (frame, Content::Unknown),
            None => (state.zeroed.pop()?, Content::Zero),
        };
        *state.count_mut(frame) = 1;
        Some((Page { pool: self, frame }, content))
    }

    /// Zeroed frames in a row for the machine, of those that were never given out: others lie apart. Count 1 each.
    fn take_row(&self, count: usize) -> Option<Frames> {
        let mut state = self.state.borrow_mut();
        let row = state.fresh.iter_mut().find(|frames| frames.count() >= count)?.split(count as u32);
        state.fresh_frames -= row.count();
        for index in 0..row.count() as u32 {
            *state.count_mut(row.number(index)) = 1;
            self.memory.fill(row.number(index), 0, PAGE_BYTES, 0);
        }
        Some(row)
    }

    fn count(&self, frame: FrameNumber) -> u32 {
        self.state.borrow().count(frame)
    }
}

/// The machine takes its own frames (tables, thread areas, heap) from the pool too.
pub struct PoolSource(pub &'static FramePool);

impl FrameSource for PoolSource {
    fn take(&self) -> Result<FrameNumber, NoFrames> {
        self.0.allocate_reserved().map(Page::into_raw)
    }

    fn take_dirty(&self) -> Result<FrameNumber, NoFrames> {
        self.0.take(0, Content::Unknown).map(|(page, _)| page.into_raw()).ok_or(NoFrames)
    }

    fn take_row(&self, count: usize) -> Result<Frames, NoFrames> {
        self.0.take_row(count).ok_or(NoFrames)
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
    pub(crate) fn frame(&self) -> FrameNumber {
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

    /// Gives the reference to a page-table entry; `FramePool::give_up` takes it back.
    pub(crate) fn into_raw(self) -> FrameNumber {
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
