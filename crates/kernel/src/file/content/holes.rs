//! Where a file has data, and where holes.

use core::ops::Range;

use abi::Errno;

use super::{Content, PAGE};

impl Content {
    /// The first position from `position` on that holds data. Error: `ENXIO` if there is none.
    pub fn seek_data(&self, position: u64) -> Result<u64, Errno> {
        let size = self.size();
        if position >= size {
            return Err(Errno::ENXIO);
        }
        let here = self.state.borrow().pages.next_page(position / PAGE);
        let elsewhere = self.kept.as_ref().and_then(|kept| kept.next_page(position / PAGE));
        let index = here.into_iter().chain(elsewhere).min().ok_or(Errno::ENXIO)?;
        let found = position.max(index * PAGE);
        if found < size { Ok(found) } else { Err(Errno::ENXIO) }
    }

    /// The first position from `position` on that is in a hole; the end of the file counts as one.
    /// Error: `ENXIO` behind the end.
    pub fn seek_hole(&self, position: u64) -> Result<u64, Errno> {
        let size = self.size();
        if position >= size {
            return Err(Errno::ENXIO);
        }
        let state = self.state.borrow();
        let mut index = position / PAGE;
        while state.pages.get(index).is_some() || self.is_elsewhere(index) {
            index += 1;
        }
        Ok(position.max(index * PAGE).min(size))
    }

    pub(super) fn count_present(&self, range: Range<u64>) -> u64 {
        let state = self.state.borrow();
        let mut count = 0;
        let mut next = state.pages.next_page(range.start);
        while let Some(index) = next.filter(|index| *index < range.end) {
            count += 1;
            next = state.pages.next_page(index + 1);
        }
        count
    }
}
