//! Stacks: the first one, and growth by faults.

use machine::Protection;

use super::Space;
use super::fault::FaultKind;
use super::limits::{LOWEST_ADDRESS, STACK_GUARD_BYTES, STACK_TOP};
use super::map::{MapError, MapRequest};
use super::{Kind, Placement};

impl Space {
    /// Makes the first stack, `bytes` long now, and returns its top. It grows by faults to the
    /// stack limit.
    pub fn map_stack(&mut self, bytes: u64, protection: Protection) -> Result<u64, MapError> {
        let bytes = super::limits::round_up(bytes).filter(|&bytes| bytes < STACK_TOP).ok_or(MapError::NoMemory)?;
        let mut request = MapRequest::anonymous(bytes, protection).at(STACK_TOP - bytes).of(Kind::Stack);
        request.placement = Placement::FixedIfFree;
        self.map(request)?;
        self.stack_top = STACK_TOP;
        Ok(STACK_TOP)
    }

    /// Extends the stack above `page` down to it, if there is one and it may.
    pub(super) fn grow_stack(&mut self, page: u64) -> Result<(), FaultKind> {
        let Some((start, area)) = self.area_from(page) else { return Err(FaultKind::Unmapped) };
        let more = start - page;
        let fits = area.kind.is_stack()
            && page >= LOWEST_ADDRESS
            && self.reserved_in(page, start).is_none()
            && area.end - page <= self.limits.stack_bytes
            && self.may_expand(more, 0)
            && self.check_commit(more, area, area.protection).is_ok()
            && self.keeps_gap_above(page);
        if !fits {
            return Err(FaultKind::Unmapped);
        }
        let Some(area) = self.areas.remove(&start) else { return Err(FaultKind::Unmapped) };
        self.count_out(start, &area);
        self.insert(page, area);
        Ok(())
    }

    /// The area below `page` is far enough away. A guard area or another stack may be nearer.
    fn keeps_gap_above(&self, page: u64) -> bool {
        match self.area_below(page) {
            Some((_, below)) if !below.kind.is_stack() && below.is_accessible() => {
                page - below.end >= STACK_GUARD_BYTES
            }
            _ => true,
        }
    }
}
