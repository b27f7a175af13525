//! Page frames, as values that cannot be made up.
#![allow(unsafe_code, reason = "naming a frame is a claim on memory that the compiler cannot check")]

use core::ops::Range;

use crate::PAGE_BYTES;

/// A physical page frame: physical address divided by [`PAGE_BYTES`]. Whoever has a number may have the frame's bytes read and
/// written, and shown to programs; so only a machine makes one, and a pool hands out those of [`Frames`] that it owns.
///
/// ```compile_fail,E0423
/// let frame = machine::FrameNumber(0x200);
/// ```
/// ```compile_fail,E0133
/// let frame = machine::FrameNumber::new(0x200);
/// ```
/// ```compile_fail
/// #![forbid(unsafe_code)]
/// // SAFETY: nobody touches it.
/// let frame = unsafe { machine::FrameNumber::new(0x200) };
/// ```
/// ```compile_fail,E0616
/// fn next(frame: &mut machine::FrameNumber) {
///     frame.0 += 1;
/// }
/// ```
/// ```
/// // SAFETY: nobody touches it.
/// let frame = unsafe { machine::FrameNumber::new(0x200) };
/// assert_eq!((frame.number(), frame.physical_address()), (0x200, 0x20_0000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct FrameNumber(u32);

impl FrameNumber {
    /// Of no frame: no machine has so much memory, and what touches it faults.
    pub const NOTHING: FrameNumber = FrameNumber(u32::MAX);

    /// # Safety
    /// The frame is the caller's, or it is in use by somebody who is told of what the caller does with it.
    pub const unsafe fn new(number: u32) -> FrameNumber {
        FrameNumber(number)
    }

    pub const fn number(self) -> u32 {
        self.0
    }

    pub const fn physical_address(self) -> u64 {
        (self.0 as u64) * PAGE_BYTES as u64
    }
}

/// Frames in a row that have one owner: whoever has this. A machine makes them of the memory that it does not use.
///
/// ```compile_fail,E0133
/// let frames = machine::Frames::new(0..16);
/// ```
/// ```compile_fail,E0451
/// let frames = machine::Frames { range: 0..16 };
/// ```
/// There are no two owners:
///
/// ```compile_fail,E0308
/// fn twice(frames: &machine::Frames) -> machine::Frames {
///     frames.clone()
/// }
/// ```
#[derive(PartialEq, Eq, Debug)]
pub struct Frames {
    range: Range<u32>,
}

impl Frames {
    /// # Safety
    /// Nobody else uses the frames of `range`, or gives them away, as long as this or what was taken of it is used.
    pub const unsafe fn new(range: Range<u32>) -> Frames {
        Frames { range }
    }

    pub const fn none() -> Frames {
        Frames { range: 0..0 }
    }

    /// Their numbers, to look at.
    pub fn range(&self) -> Range<u32> {
        self.range.clone()
    }

    pub fn count(&self) -> usize {
        self.range.len()
    }

    /// Gives the first of them away.
    #[inline(always)]
    pub fn take(&mut self) -> Option<FrameNumber> {
        self.range.next().map(FrameNumber)
    }

    /// Gives the first `count` of them away together; all, if there are no more.
    pub fn split(&mut self, count: u32) -> Frames {
        let end = self.range.start.saturating_add(count).min(self.range.end);
        let first = Frames { range: self.range.start..end };
        self.range.start = end;
        first
    }

    /// The frame `index` of them, which stay whose they are.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn number(&self, index: u32) -> FrameNumber {
        assert!((index as usize) < self.count(), "frame {index} of {}", self.count());
        FrameNumber(self.range.start + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(range: Range<u32>) -> Frames {
        // SAFETY: numbers only; there is no memory here.
        unsafe { Frames::new(range) }
    }

    #[test]
    fn each_frame_is_given_away_once() {
        let mut all = frames(4..9);
        let mut front = all.split(2);
        assert_eq!((front.range(), all.range()), (4..6, 6..9));
        assert_eq!(all.take().map(FrameNumber::number), Some(6));
        assert_eq!(front.take().map(FrameNumber::number), Some(4));
        assert_eq!(all.split(9).range(), 7..9, "no more than there are");
        assert_eq!((all.take(), all.count()), (None, 0));
    }

    #[test]
    #[should_panic(expected = "frame 2 of 2")]
    fn nothing_behind_the_last_has_a_number() {
        frames(4..6).number(2);
    }
}
