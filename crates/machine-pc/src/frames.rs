//! Frames for the machine itself: from a bump pointer until the kernel's pool exists, then from it.

use core::ops::Range;

use machine::{FrameNumber, FrameSource, Frames as FreeFrames, KERNEL_FRAMES_MIN, KernelCell, NoFrames, PAGE_BYTES};

use crate::layout::direct;

pub struct Frames {
    state: KernelCell<State>,
}

struct State {
    /// Physical bytes not yet given away.
    early: Range<u64>,
    /// Physical bytes given away before the pool existed: it does not know these frames.
    given_early: Range<u64>,
    pool: Option<&'static dyn FrameSource>,
}

pub static FRAMES: Frames = Frames { state: KernelCell::new(State { early: 0..0, given_early: 0..0, pool: None }) };

impl Frames {
    /// Starts with a range of RAM that nobody uses.
    pub fn start(&self, range: Range<u64>) {
        let mut state = self.state.borrow_mut();
        state.given_early = range.start..range.start;
        state.early = range;
    }

    /// The kernel's pool serves from now on; returns what is left of the early range.
    pub fn hand_over(&self, pool: &'static dyn FrameSource) -> FreeFrames {
        let mut state = self.state.borrow_mut();
        state.pool = Some(pool);
        state.given_early.end = state.early.start;
        let rest = core::mem::take(&mut state.early);
        // SAFETY: nobody was given these frames, and nobody is from now on.
        unsafe { FreeFrames::new(number(rest.start)..number(rest.end)) }
    }

    /// Where the early range ends; frames above are the pool's from the start.
    pub fn early_end(&self) -> u64 {
        self.state.borrow().early.end
    }

    fn take_early(&self) -> Result<FrameNumber, NoFrames> {
        let mut state = self.state.borrow_mut();
        let physical = state.early.start;
        if physical + PAGE_BYTES as u64 > state.early.end {
            return Err(NoFrames);
        }
        state.early.start += PAGE_BYTES as u64;
        // SAFETY: the range is RAM that nobody uses, and this frame has just left it.
        Ok(unsafe { FrameNumber::new(number(physical)) })
    }
}

/// The number of the frame at a physical address.
pub const fn number(physical: u64) -> u32 {
    (physical / PAGE_BYTES as u64) as u32
}

impl FrameSource for Frames {
    fn take(&self) -> Result<FrameNumber, NoFrames> {
        let pool = self.state.borrow().pool;
        match pool {
            Some(pool) => pool.take(),
            None => {
                let frame = self.take_early()?;
                // SAFETY: the frame is RAM inside the direct map, owned by nobody before it was taken.
                unsafe { (direct(frame.physical_address()) as *mut u8).write_bytes(0, PAGE_BYTES) };
                Ok(frame)
            }
        }
    }

    fn take_dirty(&self) -> Result<FrameNumber, NoFrames> {
        let pool = self.state.borrow().pool;
        pool.map_or_else(|| self.take_early(), FrameSource::take_dirty)
    }

    fn take_row(&self, count: usize) -> Result<FreeFrames, NoFrames> {
        let pool = self.state.borrow().pool;
        if let Some(pool) = pool {
            return pool.take_row(count);
        }
        let first = self.take()?.number();
        for next in 1..count as u32 {
            // The range gives one after the other.
            assert_eq!(self.take()?.number(), first + next);
        }
        // SAFETY: they were just taken, in a row.
        Ok(unsafe { FreeFrames::new(first..first + count as u32) })
    }

    fn give(&self, frame: FrameNumber) {
        if self.state.borrow().given_early.contains(&frame.physical_address()) {
            // Stays with the kernel: boot's few frames are not worth an account.
            return;
        }
        let pool = self.state.borrow().pool;
        if let Some(pool) = pool {
            pool.give(frame);
        }
    }

    fn give_zeroed(&self, frame: FrameNumber) {
        let state = self.state.borrow();
        if !state.given_early.contains(&frame.physical_address())
            && let Some(pool) = state.pool
        {
            pool.give_zeroed(frame);
        }
    }

    fn available(&self) -> usize {
        // The early range is measured for what boot takes from it: nothing is kept back.
        let pool = self.state.borrow().pool;
        pool.map_or(usize::MAX, FrameSource::available)
    }
}

/// Frames for the translation tables of programs: a program that touches one page here and one there
/// needs a table for each, and must not take the kernel's last frames that way.
pub struct TableFrames;

pub static TABLE_FRAMES: TableFrames = TableFrames;

impl FrameSource for TableFrames {
    fn take(&self) -> Result<FrameNumber, NoFrames> {
        if FRAMES.available() > KERNEL_FRAMES_MIN { FRAMES.take() } else { Err(NoFrames) }
    }

    fn take_row(&self, count: usize) -> Result<FreeFrames, NoFrames> {
        if FRAMES.available() > KERNEL_FRAMES_MIN + count { FRAMES.take_row(count) } else { Err(NoFrames) }
    }

    fn give(&self, frame: FrameNumber) {
        FRAMES.give(frame);
    }

    fn give_zeroed(&self, frame: FrameNumber) {
        FRAMES.give_zeroed(frame);
    }

    fn available(&self) -> usize {
        FRAMES.available().saturating_sub(KERNEL_FRAMES_MIN)
    }
}
