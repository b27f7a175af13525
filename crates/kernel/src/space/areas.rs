//! The set of areas: find, split, merge, remove, and what they add up to.

use super::Space;
use super::area::Area;
use super::map::MapError;

impl Space {
    /// The area that contains `address`, with its start.
    pub(super) fn area_at(&self, address: u64) -> Option<(u64, &Area)> {
        let (&start, area) = self.areas.range(..=address).next_back()?;
        (area.end > address).then_some((start, area))
    }

    /// The area that contains `address`, or else the first one above it.
    pub(super) fn area_from(&self, address: u64) -> Option<(u64, &Area)> {
        self.area_at(address).or_else(|| self.areas.range(address..).next().map(|(&start, area)| (start, area)))
    }

    /// Some page of `start..end` is in an area.
    pub(super) fn is_used(&self, start: u64, end: u64) -> bool {
        self.areas.range(..end).next_back().is_some_and(|(_, area)| area.end > start)
    }

    /// Every page of `start..end` is in an area.
    pub(super) fn is_covered(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.area_at(at) {
                Some((_, area)) => at = area.end,
                None => return false,
            }
        }
        true
    }

    /// Bytes of `start..end` that areas cover.
    pub(super) fn covered_bytes(&self, start: u64, end: u64) -> u64 {
        let mut covered = 0;
        let mut at = start;
        while let Some((area_start, area)) = self.area_from(at) {
            if area_start >= end {
                break;
            }
            covered += area.end.min(end) - area_start.max(start);
            at = area.end;
        }
        covered
    }

    #[expect(clippy::disallowed_methods, reason = "few areas in one call, and a fork asks for all before")]
    pub(super) fn insert(&mut self, start: u64, area: Area) {
        self.count_in(start, &area);
        self.areas.insert(start, area);
    }

    /// Removes the areas and pages of `start..end`; the parts outside stay.
    pub(super) fn remove_range(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let mut is_changed = false;
        while let Some((&at, _)) = self.areas.range(start..end).next() {
            if let Some(area) = self.areas.remove(&at) {
                self.count_out(at, &area);
                self.pages.release(at, area.end);
                is_changed = true;
            }
        }
        if is_changed {
            self.note_free(end);
        }
    }

    /// Gives back the first pages that are there in `from..to`, at most `bytes` from the first to the last; the areas stay. Where to
    /// go on; `None`: there are none.
    pub fn release_some(&mut self, from: u64, to: u64, bytes: u64) -> Option<u64> {
        let (first, _) = self.pages.next_present(from, to)?;
        let end = to.min(first.saturating_add(bytes));
        self.pages.release(first, end);
        Some(end)
    }

    pub(super) fn remove_all(&mut self) {
        for (start, area) in core::mem::take(&mut self.areas) {
            self.count_out(start, &area);
            self.pages.release(start, area.end);
        }
    }

    /// Makes `at` a border between areas if it lies inside one.
    #[expect(clippy::disallowed_methods, reason = "two in one call")]
    pub(super) fn split(&mut self, at: u64) {
        let Some((&start, area)) = self.areas.range_mut(..at).next_back() else { return };
        if area.end > at {
            let tail = area.split_off(start, at);
            self.areas.insert(at, tail);
        }
    }

    /// Refuses when `more` areas would be too many.
    pub(super) fn check_area_count(&self, more: usize) -> Result<(), MapError> {
        let most = self.pages.pool.rules.areas_max.get();
        if (self.areas.len() + more) as u64 > most { Err(MapError::NoMemory) } else { Ok(()) }
    }

    /// Joins the area that starts at `start` to the one before it if they are alike.
    pub(super) fn merge_before(&mut self, start: u64) {
        let mut downwards = self.areas.range(..=start);
        let Some((&at, area)) = downwards.next_back() else { return };
        let Some((&before_start, before)) = downwards.next_back() else { return };
        if at != start || before.end != start || !before.can_absorb(before_start, area) {
            return;
        }
        let Some(area) = self.areas.remove(&start) else { return };
        if let Some(before) = self.areas.get_mut(&before_start) {
            before.end = area.end;
            before.has_copies |= area.has_copies;
        }
    }

    /// Joins the area that starts at `start` to its neighbours on both sides if they are alike.
    pub(super) fn merge_around(&mut self, start: u64) {
        let Some(end) = self.areas.get(&start).map(|area| area.end) else { return };
        self.merge_before(end);
        self.merge_before(start);
    }

    pub(super) fn count_in(&mut self, start: u64, area: &Area) {
        let bytes = area.end - start;
        self.total_bytes += bytes;
        self.total_bytes_peak = self.total_bytes_peak.max(self.total_bytes);
        if area.is_data() {
            self.data_bytes += bytes;
        }
        if area.kind.is_stack() {
            self.stack_bytes += bytes;
        }
    }

    pub(super) fn count_out(&mut self, start: u64, area: &Area) {
        let bytes = area.end - start;
        self.total_bytes -= bytes;
        if area.is_data() {
            self.data_bytes -= bytes;
        }
        if area.kind.is_stack() {
            self.stack_bytes -= bytes;
        }
    }
}
