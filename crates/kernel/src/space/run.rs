//! Pages that come into a quaspace together: one look at the pool and one at the translation for all of them.

use machine::{FrameNumber, Protection, Shown, VirtAddr};

use super::limits::AROUND_PAGES;

/// Up to [`AROUND_PAGES`] pages that are absent so far.
pub(super) struct Run {
    pages: [Shown; AROUND_PAGES as usize],
    used: usize,
}

impl Run {
    pub fn new() -> Run {
        Run { pages: [Shown::NOTHING; AROUND_PAGES as usize], used: 0 }
    }

    /// Adds a page; there must be room.
    pub fn push(&mut self, page: u64, frame: FrameNumber, protection: Protection) {
        self.pages[self.used] = Shown { page: VirtAddr(page), frame, protection };
        self.used += 1;
    }

    pub fn pages(&self) -> &[Shown] {
        &self.pages[..self.used]
    }
}
