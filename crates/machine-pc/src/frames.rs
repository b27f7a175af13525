//! Frames for the machine itself: from a bump pointer until the kernel's pool exists, then from it.

use core::ops::Range;

use machine::{FrameNumber, FrameSource, KernelCell, NoFrames, PAGE_BYTES};

use crate::layout::direct;

pub struct Frames {
    state: KernelCell<State>,
}

struct State {
    /// Physical bytes not yet given away.
    early: Range<u64>,
    pool: Option<&'static dyn FrameSource>,
}

pub static FRAMES: Frames = Frames { state: KernelCell::new(State { early: 0..0, pool: None }) };

impl Frames {
    /// Starts with a range of RAM that nobody uses.
    pub fn start(&self, range: Range<u64>) {
        self.state.borrow_mut().early = range;
    }

    /// Hands the rest of the early range to the kernel's pool, which serves from now on.
    pub fn hand_over(&self, pool: &'static dyn FrameSource) {
        self.state.borrow_mut().pool = Some(pool);
    }

    pub fn early_rest(&self) -> Range<u64> {
        self.state.borrow().early.clone()
    }

    fn take_early(&self) -> Result<FrameNumber, NoFrames> {
        let mut state = self.state.borrow_mut();
        let physical = state.early.start;
        if physical + PAGE_BYTES as u64 > state.early.end {
            return Err(NoFrames);
        }
        state.early.start += PAGE_BYTES as u64;
        // SAFETY: the frame is RAM inside the direct map, owned by nobody before this line.
        unsafe { (direct(physical) as *mut u8).write_bytes(0, PAGE_BYTES) };
        Ok(FrameNumber((physical / PAGE_BYTES as u64) as u32))
    }
}

impl FrameSource for Frames {
    fn take(&self) -> Result<FrameNumber, NoFrames> {
        let pool = self.state.borrow().pool;
        match pool {
            Some(pool) => pool.take(),
            None => self.take_early(),
        }
    }

    fn give(&self, frame: FrameNumber) {
        let pool = self.state.borrow().pool;
        if let Some(pool) = pool {
            pool.give(frame);
        }
    }
}
