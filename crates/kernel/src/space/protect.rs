//! Changing rights (mprotect).

use machine::Protection;

use super::Space;
use super::limits::{is_page_aligned, round_up};
use super::map::{MapError, exceeds};

impl Space {
    /// Gives all areas in the range `protection`. At the first gap or refusal the areas before it
    /// have changed, as on Linux.
    pub fn protect(&mut self, start: u64, bytes: u64, protection: Protection) -> Result<(), MapError> {
        if !is_page_aligned(start) {
            return Err(MapError::Invalid);
        }
        if bytes == 0 {
            return Ok(());
        }
        let end = round_up(bytes).and_then(|bytes| start.checked_add(bytes)).ok_or(MapError::NoMemory)?;
        let result = self.protect_until(start, end, protection);
        // The first area behind the range may now be like the last one in it.
        self.merge_before(end);
        result
    }

    /// mprotect with PROT_GROWSDOWN: the range begins at the start of the stack area that holds
    /// `start`. `Invalid` if that is no stack.
    pub fn protect_from_stack_start(&mut self, start: u64, bytes: u64, protection: Protection) -> Result<(), MapError> {
        if !is_page_aligned(start) {
            return Err(MapError::Invalid);
        }
        let Some((area_start, area)) = self.area_at(start) else { return Err(MapError::NoMemory) };
        if !area.kind.is_stack() {
            return Err(MapError::Invalid);
        }
        let bytes = bytes.checked_add(start - area_start).ok_or(MapError::NoMemory)?;
        self.protect(area_start, bytes, protection)
    }

    fn protect_until(&mut self, start: u64, end: u64, protection: Protection) -> Result<(), MapError> {
        let mut at = start;
        while at < end {
            let Some((_, area)) = self.area_at(at) else { return Err(MapError::NoMemory) };
            let part_end = area.end.min(end);
            self.protect_part(at, part_end, protection)?;
            self.merge_before(at);
            at = part_end;
        }
        Ok(())
    }

    /// Changes `from..to`, which lies in one area.
    fn protect_part(&mut self, from: u64, to: u64, protection: Protection) -> Result<(), MapError> {
        let Some((area_start, area)) = self.area_at(from) else { return Err(MapError::NoMemory) };
        if area.protection == protection {
            return Ok(());
        }
        if exceeds(protection, area.limit) {
            return Err(MapError::Access);
        }
        let becomes_data = area.is_data_with(protection) && !area.is_data();
        if becomes_data {
            if !self.may_expand(0, to - from) {
                return Err(MapError::NoMemory);
            }
            if !area.is_charged {
                self.check_commit(to - from, area, protection)?;
            }
        }
        let area_end = area.end;
        self.check_area_count(2)?;
        if area_start < from {
            self.split(from);
        }
        if to < area_end {
            self.split(to);
        }
        let Some(area) = self.areas.get_mut(&from) else { return Err(MapError::NoMemory) };
        let was_data = area.is_data();
        area.protection = protection;
        match (was_data, area.is_data()) {
            (false, true) => self.data_bytes += to - from,
            (true, false) => self.data_bytes -= to - from,
            _ => {}
        }
        let is_charged_now = !area.is_charged && area.is_charged_with(protection);
        area.is_charged |= is_charged_now;
        self.pages.reprotect(area, from, to);
        if is_charged_now {
            self.charge_area(to - from);
        }
        Ok(())
    }
}
