//! The set of areas: find, split, merge, remove, and what they add up to.

use super::Space;
use super::area::Area;
use super::map::MapError;

/// An area that is no longer has few pages, and few entries to look at.
const SHORT_BYTES: u64 = 2 << 20;
/// Pages and areas of a quaspace that go at once.
const DISMANTLED_PAGES: u64 = 256;
const DISMANTLED_AREAS: usize = 64;

impl Space {
    /// The area that contains `address`, with its start.
    #[inline]
    pub(super) fn area_at(&self, address: u64) -> Option<(u64, &Area)> {
        let (&start, area) = self.areas.last_to(&address)?;
        (area.end > address).then_some((start, area))
    }

    /// The area that contains `address`, or else the first one above it.
    #[inline]
    pub(super) fn area_from(&self, address: u64) -> Option<(u64, &Area)> {
        let [below, above] = self.areas.around(&address);
        let found = below.filter(|(_, area)| area.end > address).or(above)?;
        Some((*found.0, found.1))
    }

    /// The last area that starts below `address`.
    #[inline]
    pub(super) fn area_below(&self, address: u64) -> Option<(u64, &Area)> {
        self.areas.last_to(&address.checked_sub(1)?).map(|(&start, area)| (start, area))
    }

    /// Some page of `start..end` is in an area.
    pub(super) fn is_used(&self, start: u64, end: u64) -> bool {
        self.area_below(end).is_some_and(|(_, area)| area.end > start)
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

    pub(super) fn insert(&mut self, start: u64, area: Area) {
        self.count_in(start, &area);
        self.areas.put(start, area);
    }

    /// Removes the areas and pages of `start..end`; the parts outside stay.
    pub(super) fn remove_range(&mut self, start: u64, end: u64) {
        let (mut from, mut is_changed) = (start, false);
        while from < end {
            let Some((at, area)) = self.area_from(from).filter(|(at, _)| *at < end) else { break };
            if at < from || area.end > end {
                self.split(if at < from { from } else { end });
                continue;
            }
            if let Some(area) = self.areas.remove(&at) {
                self.count_out(at, &area);
                self.pages.release(at, area.end);
                (from, is_changed) = (area.end, true);
            }
        }
        if is_changed {
            self.note_free(end);
        }
    }

    /// Gives back the first pages that are there in `from..to`, at most `bytes` from the first to the last; the areas stay. Where to
    /// go on; `None`: there are none.
    pub fn release_some(&mut self, from: u64, to: u64, bytes: u64) -> Option<u64> {
        let mut at = from;
        // Between areas there are no pages, but very many addresses.
        while at < to
            && let Some((start, area)) = self.area_from(at).filter(|(start, _)| *start < to)
        {
            let (low, high) = (start.max(at), area.end.min(to));
            if let Some((first, _)) = self.pages.next_present(low, high) {
                let end = high.min(first.saturating_add(bytes));
                self.pages.release(first, end);
                return Some(end);
            }
            at = high;
        }
        None
    }

    /// Whether all that the quaspace has, or ever had, is more than goes at once.
    pub fn takes_long_to_dismantle(&self) -> bool {
        self.pages.resident_peak > DISMANTLED_PAGES || self.areas.len() > DISMANTLED_AREAS
    }

    /// Gives back some pages and the areas that they were in, the last first, of a quaspace that nobody uses any more. Whether there
    /// is more.
    pub fn dismantle_some(&mut self) -> bool {
        let enough = self.pages.resident.saturating_sub(DISMANTLED_PAGES);
        for _ in 0..DISMANTLED_AREAS {
            let Some((start, end)) = self.areas.last().map(|(start, area)| (*start, area.end)) else { return false };
            // What is long may hold more than that: it goes from its first page on, and the area begins behind what has gone, so that
            // nobody looks there again.
            let first = (end - start > SHORT_BYTES).then(|| self.pages.next_present(start, end)).flatten();
            let part = first.map(|(first, _)| (first, first.saturating_add(SHORT_BYTES)));
            match part.filter(|(_, stop)| *stop < end) {
                Some((first, stop)) => {
                    self.pages.release(first, stop);
                    self.begin_last_at(stop);
                }
                None => self.remove_last(),
            }
            if self.pages.resident <= enough {
                break;
            }
        }
        !self.areas.is_empty()
    }

    /// The last area begins further up; nobody shows what it does any more.
    fn begin_last_at(&mut self, to: u64) {
        if let Some((start, area)) = self.areas.pop_last() {
            self.count_out(start, &area);
            self.insert(to, area);
        }
    }

    fn remove_last(&mut self) {
        if let Some((start, area)) = self.areas.pop_last() {
            self.count_out(start, &area);
            self.pages.release(start, area.end);
        }
    }

    pub(super) fn remove_all(&mut self) {
        while !self.areas.is_empty() {
            self.remove_last();
        }
    }

    /// Makes `at` a border between areas if it lies inside one.
    pub(super) fn split(&mut self, at: u64) {
        let Some(inside) = at.checked_sub(1) else { return };
        let Some((&start, area)) = self.areas.last_to_mut(&inside) else { return };
        if area.end > at {
            let tail = area.split_off(start, at);
            self.areas.put(at, tail);
        }
    }

    /// Refuses when `more` areas would be too many.
    pub(super) fn check_area_count(&self, more: usize) -> Result<(), MapError> {
        let most = self.pages.pool.rules.areas_max.get();
        if (self.areas.len() + more) as u64 > most { Err(MapError::NoMemory) } else { Ok(()) }
    }

    /// Joins the area that starts at `start` to the one before it if they are alike.
    pub(super) fn merge_before(&mut self, start: u64) {
        let Some([(&before_start, before), (_, area)]) = self.areas.pair(&start) else { return };
        if before.end != start || !before.can_absorb(before_start, area) {
            return;
        }
        let Some(area) = self.areas.remove(&start) else { return };
        if let Some(before) = self.areas.get_mut(&before_start) {
            before.end = area.end;
            before.has_copies |= area.has_copies;
        }
    }

    /// Joins the area `start..end` to its neighbours on both sides if they are alike.
    pub(super) fn merge_around(&mut self, start: u64, end: u64) {
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
        if area.is_charged {
            self.charge_area(bytes);
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
        if area.is_charged {
            self.discharge_area(bytes);
        }
        if area.kind.is_stack() {
            self.stack_bytes -= bytes;
        }
    }
}
