//! Where a map goes when the program does not insist.

use super::Space;
use super::limits::{
    BOTTOM_UP_BASE, LOWEST_ADDRESS, PAGE, STACK_GUARD_BYTES, STACK_ROOM_MAX_BYTES, STACK_ROOM_MIN_BYTES, STACK_TOP,
    USER_LIMIT, page_of,
};

/// The address below which maps are placed, for a stack limit in bytes. Linux without address
/// randomization computes the same.
pub(super) fn mmap_base(stack_bytes: u64) -> u64 {
    let room = stack_bytes.saturating_add(STACK_GUARD_BYTES).clamp(STACK_ROOM_MIN_BYTES, STACK_ROOM_MAX_BYTES);
    page_of(STACK_TOP - room)
}

impl Space {
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
        self.find_downwards(bytes).or_else(|| self.find_upwards(bytes))
    }

    /// `start..start + bytes` is below the user limit, in no area and in no stack's guard gap.
    fn is_free_with_gap(&self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes).filter(|&end| end <= USER_LIMIT) else { return false };
        match self.area_from(start) {
            Some((area_start, area)) => end <= area.guarded_start(area_start),
            None => true,
        }
    }

    fn find_downwards(&self, bytes: u64) -> Option<u64> {
        let mut end = self.mmap_base;
        // An area that reaches over the base pushes the end down to its own start.
        if let Some((start, area)) = self.area_from(self.mmap_base) {
            end = end.min(area.guarded_start(start));
        }
        for (&start, area) in self.areas.range(..self.mmap_base).rev() {
            if end >= area.end && end - area.end >= bytes {
                break;
            }
            end = end.min(area.guarded_start(start));
        }
        end.checked_sub(bytes).filter(|&start| start >= LOWEST_ADDRESS && self.is_free_with_gap(start, bytes))
    }

    fn find_upwards(&self, bytes: u64) -> Option<u64> {
        let mut start = BOTTOM_UP_BASE;
        if let Some((_, area)) = self.area_at(start) {
            start = area.end;
        }
        for (&area_start, area) in self.areas.range(start..) {
            let gap_end = area.guarded_start(area_start);
            if gap_end >= start && gap_end - start >= bytes {
                break;
            }
            start = area.end;
        }
        (start <= USER_LIMIT - bytes).then_some(start)
    }
}

const _: () = assert!(BOTTOM_UP_BASE.is_multiple_of(PAGE) && USER_LIMIT.is_multiple_of(PAGE));
