//! Locked memory (mlock and its kin). Nothing is ever paged out, so to lock is to make pages present; which areas are locked is
//! kept for the limit and for /proc.

use core::ops::Range;

use super::Space;
use super::advise::page_range;
use super::area::Kind;
use super::limits::page_of;
use super::map::MapError;

/// When the pages of a locked area become present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    Now,
    /// When they are touched (MLOCK_ONFAULT, MCL_ONFAULT).
    OnFault,
}

impl Space {
    /// mlock: all areas of the range are locked. Who wants their pages supplies them. `NoMemory` at the first gap; what lies before it
    /// is locked.
    pub fn lock(&mut self, start: u64, bytes: u64) -> Result<(), MapError> {
        let (start, end) = whole_pages(start, bytes)?;
        self.mark_locked(start, end, true)
    }

    /// munlock. Errors as those of `lock`.
    pub fn unlock(&mut self, start: u64, bytes: u64) -> Result<(), MapError> {
        let (start, end) = whole_pages(start, bytes)?;
        self.mark_locked(start, end, false)
    }

    /// mlockall of what there is.
    pub fn lock_all(&mut self) {
        self.mark_all(true);
    }

    /// The first area that ends behind an address.
    pub fn area_behind(&self, address: u64) -> Option<Range<u64>> {
        self.area_from(address).map(|(start, area)| start..area.end)
    }

    /// mlockall of what will be mapped; `None`: no more.
    pub fn lock_future(&mut self, presence: Option<Presence>) {
        self.locks_future = presence;
    }

    pub fn locks_future(&self) -> Option<Presence> {
        self.locks_future
    }

    /// munlockall.
    pub fn unlock_all(&mut self) {
        self.locks_future = None;
        self.mark_all(false);
    }

    /// Bytes of locked areas (VmLck).
    pub fn locked_bytes(&self) -> u64 {
        self.areas.iter().filter(|(_, area)| area.is_locked).map(|(start, area)| area.end - start).sum()
    }

    /// Bytes of locked areas in the range.
    pub fn locked_bytes_within(&self, start: u64, end: u64) -> u64 {
        let parts = self
            .areas
            .iter()
            .take_while(|(from, _)| **from < end)
            .filter(|(_, area)| area.is_locked && area.end > start);
        parts.map(|(&from, area)| area.end.min(end) - from.max(start)).sum()
    }

    fn mark_locked(&mut self, start: u64, end: u64, locked: bool) -> Result<(), MapError> {
        let mut at = start;
        while at < end {
            let Some((_, area)) = self.area_at(at) else { return Err(MapError::NoMemory) };
            let to = area.end.min(end);
            // The kernel's own pages in a program are not the program's to lock.
            if area.is_locked != locked && !matches!(area.kind, Kind::Special(_)) {
                self.check_area_count(2)?;
                self.split(at);
                self.split(to);
                if let Some(area) = self.areas.get_mut(&at) {
                    area.is_locked = locked;
                }
                self.merge_before(at);
            }
            at = to;
        }
        self.merge_before(end);
        Ok(())
    }

    fn mark_all(&mut self, locked: bool) {
        let own = |area: &&mut super::area::Area| !matches!(area.kind, Kind::Special(_));
        self.areas.values_mut().filter(own).for_each(|area| area.is_locked = locked);
    }
}

impl Space {
    /// Where the pages begin and end that a range touches; `None`: it wraps around.
    pub fn touched(start: u64, bytes: u64) -> Option<(u64, u64)> {
        whole_pages(start, bytes).ok()
    }
}

/// The pages that a range touches. Error: `Invalid` when they wrap around.
fn whole_pages(start: u64, bytes: u64) -> Result<(u64, u64), MapError> {
    let first = page_of(start);
    let bytes = bytes.checked_add(start - first).ok_or(MapError::Invalid)?;
    Ok((first, page_range(first, bytes, MapError::Invalid)?))
}
