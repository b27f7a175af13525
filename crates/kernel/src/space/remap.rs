//! Growing, shrinking and moving areas (mremap).

use super::Space;
use super::area::{Area, Kind};
use super::limits::{BACKING_PAGES_MAX, LOWEST_ADDRESS, PAGE, USER_LIMIT, is_page_aligned, round_up};
use super::map::MapError;

/// Where a remapped range may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemapTarget {
    /// It stays where it is, or the call fails.
    InPlace,
    /// It may move if it cannot grow in place (MREMAP_MAYMOVE).
    Anywhere,
    /// It moves to exactly this address in place of what is there (MREMAP_FIXED).
    Fixed(u64),
}

/// What mremap asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remap {
    pub address: u64,
    /// 0 makes a second map of the pages of a shared area.
    pub old_bytes: u64,
    pub new_bytes: u64,
    pub target: RemapTarget,
    /// The old area stays, empty (MREMAP_DONTUNMAP).
    pub keep_old: bool,
}

impl Space {
    /// Resizes or moves `old_bytes` at `address` and returns the new address. Pages move by their
    /// entries; no byte is copied.
    pub fn remap(&mut self, remap: Remap) -> Result<u64, MapError> {
        let remap = self.checked(remap)?;
        if let RemapTarget::Fixed(to) = remap.target {
            return self.remap_to(remap, to);
        }
        if remap.old_bytes >= remap.new_bytes && !remap.keep_old {
            if remap.old_bytes > remap.new_bytes {
                self.unmap(remap.address + remap.new_bytes, remap.old_bytes - remap.new_bytes)?;
            }
            return Ok(remap.address);
        }
        self.check_resize(remap)?;
        if !remap.keep_old && self.grows_in_place(remap) {
            self.extend(remap);
            return Ok(remap.address);
        }
        if remap.target == RemapTarget::InPlace {
            return Err(MapError::NoMemory);
        }
        let to = self.find_free(0, remap.new_bytes).ok_or(MapError::NoMemory)?;
        self.move_area(remap, to)
    }

    /// Rounds the lengths and checks what does not depend on the target.
    fn checked(&self, remap: Remap) -> Result<Remap, MapError> {
        let old_bytes = round_up(remap.old_bytes).ok_or(MapError::Invalid)?;
        let new_bytes = round_up(remap.new_bytes).filter(|&bytes| bytes != 0).ok_or(MapError::Invalid)?;
        let keeps_wrongly =
            remap.keep_old && (remap.target == RemapTarget::InPlace || remap.old_bytes != remap.new_bytes);
        if !is_page_aligned(remap.address) || keeps_wrongly {
            return Err(MapError::Invalid);
        }
        let end = remap.address.checked_add(old_bytes).ok_or(MapError::Invalid)?;
        if end > USER_LIMIT || self.area_at(remap.address).is_none() {
            return Err(MapError::Fault);
        }
        Ok(Remap { old_bytes, new_bytes, ..remap })
    }

    /// Moves to a fixed address. What is there goes even if the move is then refused, as on Linux.
    fn remap_to(&mut self, mut remap: Remap, to: u64) -> Result<u64, MapError> {
        if !is_page_aligned(to) || remap.new_bytes > USER_LIMIT || to > USER_LIMIT - remap.new_bytes {
            return Err(MapError::Invalid);
        }
        if to < remap.address + remap.old_bytes && remap.address < to + remap.new_bytes {
            return Err(MapError::Invalid);
        }
        if to < LOWEST_ADDRESS {
            return Err(MapError::NotPermitted);
        }
        if self.reserved_in(to, to + remap.new_bytes).is_some() {
            return Err(MapError::NoMemory);
        }
        self.check_area_count(4)?;
        self.remove_range(to, to + remap.new_bytes);
        if remap.old_bytes > remap.new_bytes {
            self.remove_range(remap.address + remap.new_bytes, remap.address + remap.old_bytes);
            remap.old_bytes = remap.new_bytes;
        }
        self.check_resize(remap)?;
        self.move_area(remap, to)
    }

    /// The old range is within one area that may have the new length.
    fn check_resize(&self, remap: Remap) -> Result<(), MapError> {
        let Some((start, area)) = self.area_at(remap.address) else { return Err(MapError::Fault) };
        if remap.old_bytes == 0 && !area.kind.is_shared() {
            return Err(MapError::Invalid);
        }
        if remap.old_bytes > area.end - remap.address {
            return Err(MapError::Fault);
        }
        let growth = remap.new_bytes - remap.old_bytes;
        if growth == 0 {
            return if remap.keep_old { self.check_growth(remap.new_bytes, area) } else { Ok(()) };
        }
        if let Some(view) = area.kind.view() {
            let first = Area::index(start, view, remap.address);
            first
                .checked_add(remap.new_bytes / PAGE)
                .filter(|&end| end <= BACKING_PAGES_MAX)
                .ok_or(MapError::Invalid)?;
        }
        if matches!(area.kind, Kind::Special(_)) {
            return Err(MapError::Fault);
        }
        self.check_growth(growth, area)
    }

    fn check_growth(&self, bytes: u64, area: &Area) -> Result<(), MapError> {
        let data = if area.is_data() { bytes } else { 0 };
        if !self.may_expand(bytes, data) {
            return Err(MapError::NoMemory);
        }
        if area.kind.is_shared() { Ok(()) } else { self.check_commit(bytes, area, area.protection) }
    }

    /// The range is the end of its area and what follows is free.
    fn grows_in_place(&self, remap: Remap) -> bool {
        let Some((_, area)) = self.area_at(remap.address) else { return false };
        let old_end = remap.address + remap.old_bytes;
        match remap.address.checked_add(remap.new_bytes) {
            Some(new_end) => {
                area.end == old_end
                    && new_end <= USER_LIMIT
                    && !self.is_used(old_end, new_end)
                    && self.reserved_in(old_end, new_end).is_none()
            }
            None => false,
        }
    }

    fn extend(&mut self, remap: Remap) {
        let Some((&start, area)) = self.areas.last_to_mut(&remap.address) else { return };
        let before = area.clone();
        area.end = remap.address + remap.new_bytes;
        let after = area.clone();
        self.count_out(start, &before);
        self.count_in(start, &after);
        self.merge_before(after.end);
    }

    /// Makes the new area at `to` (free by now), moves the pages, removes the old area.
    fn move_area(&mut self, remap: Remap, to: u64) -> Result<u64, MapError> {
        self.check_area_count(3)?;
        let Some((start, area)) = self.area_at(remap.address) else { return Err(MapError::Fault) };
        let kind = area.kind.advanced(remap.address - start);
        let moved = Area { kind, end: to + remap.new_bytes, ..area.clone() };
        self.pages.relocate(remap.address, to, remap.old_bytes).map_err(|_| MapError::NoMemory)?;
        if !remap.keep_old && remap.old_bytes != 0 {
            self.remove_range(remap.address, remap.address + remap.old_bytes);
        }
        self.insert(to, moved);
        self.merge_around(to, to + remap.new_bytes);
        Ok(to)
    }
}
