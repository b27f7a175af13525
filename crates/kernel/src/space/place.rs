//! Where a map goes when the program does not insist.

use core::ops::{Bound, Range};

use super::Space;
use super::limits::{
    BOTTOM_UP_BASE, LOW_BASE, LOW_END, LOWEST_ADDRESS, PAGE, STACK_GUARD_BYTES, STACK_ROOM_MAX_BYTES,
    STACK_ROOM_MIN_BYTES, STACK_TOP, USER_LIMIT, page_of,
};

/// The address below which maps are placed, for a stack limit in bytes. Linux without address
/// randomization computes the same.
pub(super) fn mmap_base(stack_bytes: u64) -> u64 {
    let room = stack_bytes.saturating_add(STACK_GUARD_BYTES).clamp(STACK_ROOM_MIN_BYTES, STACK_ROOM_MAX_BYTES);
    page_of(STACK_TOP - room)
}

/// What searches for free ranges have found out. Invariant: every free range below the mmap base that ends
/// above `from` is shorter than `too_small_bytes`. So a program that maps and maps costs no walk each time.
#[derive(Clone, Copy)]
pub(super) struct Search {
    from: u64,
    too_small_bytes: u64,
}

impl Search {
    pub(super) const fn new() -> Search {
        Search { from: u64::MAX, too_small_bytes: 0 }
    }
}

impl Space {
    /// The range that ends at `end` has become free: the next search looks there again.
    pub(super) fn note_free(&self, end: u64) {
        let above = self.area_from(end).map_or(u64::MAX, |(start, area)| area.guarded_start(start));
        let known = self.search.get();
        self.search.set(Search { from: known.from.max(above), ..known });
    }

    /// A free range of `bytes` (whole pages): at `hint` if that is free, else the highest below
    /// the mmap base, else the lowest above a third of the space. 0 is no hint.
    pub(super) fn find_free(&self, hint: u64, bytes: u64) -> Option<u64> {
        if bytes > USER_LIMIT {
            return None;
        }
        let hint = if hint == 0 { 0 } else { page_of(hint).max(LOWEST_ADDRESS) };
        if hint != 0 && self.is_free_with_gap(hint, bytes) {
            return Some(hint);
        }
        self.find_downwards(bytes).or_else(|| self.find_upwards(BOTTOM_UP_BASE, bytes))
    }

    /// The last part of `start..end` that the machine keeps for itself, if there is one.
    pub(super) fn reserved_in(&self, start: u64, end: u64) -> Option<Range<u64>> {
        let reserved = self.pages.translation.reserved();
        reserved.iter().rev().find(|range| range.start < end && start < range.end).cloned()
    }

    /// A free range in the second GiB: at `hint` if that is free and low enough, else the lowest.
    pub(super) fn find_free_low(&self, hint: u64, bytes: u64) -> Option<u64> {
        let hint = page_of(hint);
        let is_low = |start: u64| start.checked_add(bytes).is_some_and(|end| end <= LOW_END);
        if hint >= LOWEST_ADDRESS && is_low(hint) && self.is_free_with_gap(hint, bytes) {
            return Some(hint);
        }
        self.find_upwards(LOW_BASE, bytes).filter(|&start| is_low(start))
    }

    /// `start..start + bytes` is below the user limit, in no area and in no stack's guard gap.
    fn is_free_with_gap(&self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes).filter(|&end| end <= USER_LIMIT) else { return false };
        if self.reserved_in(start, end).is_some() {
            return false;
        }
        match self.area_from(start) {
            Some((area_start, area)) => end <= area.guarded_start(area_start),
            None => true,
        }
    }

    fn find_downwards(&self, bytes: u64) -> Option<u64> {
        let known = self.search.get();
        let mut top = if bytes >= known.too_small_bytes { known.from.min(self.mmap_base) } else { self.mmap_base };
        loop {
            let end = self.gap_end_below(top, bytes);
            self.search.set(Search { from: end, too_small_bytes: bytes });
            let start = end.checked_sub(bytes).filter(|&start| start >= LOWEST_ADDRESS)?;
            match self.reserved_in(start, end) {
                Some(range) => top = range.start,
                None => return Some(start).filter(|&start| self.is_free_with_gap(start, bytes)),
            }
        }
    }

    /// The end of the highest gap of `bytes` between areas below `top`.
    fn gap_end_below(&self, top: u64, bytes: u64) -> u64 {
        let mut end = top;
        // An area that reaches over the top pushes the end down to its own start.
        if let Some((start, area)) = self.area_from(top) {
            end = end.min(area.guarded_start(start));
        }
        for (&start, area) in self.areas.downwards(&top.saturating_sub(1)) {
            if end >= area.end && end - area.end >= bytes {
                break;
            }
            end = end.min(area.guarded_start(start));
        }
        end
    }

    fn find_upwards(&self, mut base: u64, bytes: u64) -> Option<u64> {
        loop {
            let start = self.find_above(base, bytes)?;
            match self.reserved_in(start, start + bytes) {
                Some(range) => base = range.end,
                None => return Some(start),
            }
        }
    }

    /// The lowest gap of `bytes` between areas from `base` up.
    fn find_above(&self, base: u64, bytes: u64) -> Option<u64> {
        let mut start = base;
        if let Some((_, area)) = self.area_at(start) {
            start = area.end;
        }
        for (&area_start, area) in self.areas.range(Bound::Included(&start)) {
            let gap_end = area.guarded_start(area_start);
            if gap_end >= start && gap_end - start >= bytes {
                break;
            }
            start = area.end;
        }
        (USER_LIMIT.checked_sub(bytes)? >= start).then_some(start)
    }
}

const _: () = assert!(BOTTOM_UP_BASE.is_multiple_of(PAGE) && USER_LIMIT.is_multiple_of(PAGE));
