//! The break: the heap that grows up from the end of the program.

use machine::Protection;

use super::Space;
use super::area::{Area, AtFork, Kind};
use super::limits::{PAGE, USER_LIMIT, round_up};
use super::locked::Presence;

/// The program break, in bytes, not rounded. `start == 0`: no program was loaded.
#[derive(Clone, Copy, Default)]
pub(super) struct Break {
    pub start: u64,
    pub end: u64,
    /// Bytes of the program's own data, which RLIMIT_DATA counts with the break.
    pub program_data_bytes: u64,
}

const READ_WRITE: Protection = Protection { read: true, write: true, execute: false };
const ALL: Protection = Protection { read: true, write: true, execute: true };

impl Space {
    /// Puts an empty break at `start`, the first page behind the program.
    pub fn set_break_start(&mut self, start: u64, program_data_bytes: u64) {
        self.brk = Break { start, end: start, program_data_bytes };
    }

    /// Moves the break to `wanted` if it can, and returns where it is then. Never fails otherwise:
    /// the caller compares.
    pub fn brk(&mut self, wanted: u64) -> u64 {
        if self.brk.start != 0 && wanted >= self.brk.start && self.move_break(wanted).is_some() {
            self.brk.end = wanted;
        }
        self.brk.end
    }

    fn move_break(&mut self, wanted: u64) -> Option<()> {
        let data = (wanted - self.brk.start).checked_add(self.brk.program_data_bytes)?;
        if data > self.limits.data_bytes {
            return None;
        }
        let new_end = round_up(wanted).filter(|&end| end <= USER_LIMIT)?;
        let old_end = round_up(self.brk.end)?;
        if new_end < old_end {
            self.remove_range(new_end, old_end);
        } else if new_end > old_end {
            self.extend_break(old_end, new_end)?;
        }
        Some(())
    }

    fn extend_break(&mut self, from: u64, to: u64) -> Option<()> {
        // One page stays free above the break; a stack above keeps its whole gap.
        if self.area_from(from).is_some_and(|(start, area)| to + PAGE > area.guarded_start(start)) {
            return None;
        }
        let area = Area {
            end: to,
            protection: READ_WRITE,
            limit: ALL,
            kind: Kind::Anonymous,
            no_reserve: false,
            at_fork: AtFork::Share,
            is_undumped: false,
            is_locked: self.locks_future.is_some(),
            has_copies: true,
            is_charged: true,
        };
        if self.reserved_in(from, to).is_some() || !self.may_expand(to - from, to - from) {
            return None;
        }
        self.check_area_count(1).ok()?;
        self.check_commit(to - from, &area, READ_WRITE).ok()?;
        self.insert(from, area);
        self.merge_before(from);
        if self.locks_future == Some(Presence::Now) {
            self.populate(from, to);
        }
        Some(())
    }
}
