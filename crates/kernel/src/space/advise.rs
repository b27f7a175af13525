//! What programs say about ranges they have mapped (madvise, msync, mlock, mincore).

use alloc::sync::Arc;
use core::ops::Range;

use super::Space;
use super::area::{Area, AtFork, Kind};
use super::backing::{Backing, BackingIdentity};
use super::limits::{PAGE, is_page_aligned, round_up};
use super::map::MapError;

/// An advice with an effect here. Others (RANDOM, HUGEPAGE, ...) are `Nothing`: the range is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    Nothing,
    /// Drop the pages: anonymous ones read as zeros again, file pages as the file.
    DontNeed,
    /// The same, of locked areas too.
    DontNeedLocked,
    /// The same, for private anonymous areas only. Linux drops the pages when it wants to; here it
    /// is at once.
    Free,
    AtFork(AtFork),
    /// Whether the pages go into core files.
    AtDump {
        omit: bool,
    },
}

/// Which pages [`Space::forget_file`] drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forget {
    /// The file's own pages. Private areas keep what they copied.
    FilesOwn,
    /// Private copies as well: the file has no such page any more.
    AllCopies,
}

impl Space {
    /// Applies the advice to all areas in the range. With gaps it still does, then `NoMemory`.
    pub fn advise(&mut self, start: u64, bytes: u64, advice: Advice) -> Result<(), MapError> {
        let end = page_range(start, bytes, MapError::Invalid)?;
        let mut has_gap = false;
        let mut at = start;
        while at < end {
            let Some((area_start, area)) = self.area_from(at).filter(|&(area_start, _)| area_start < end) else {
                has_gap = true;
                break;
            };
            has_gap |= area_start > at;
            let (from, to) = (at.max(area_start), area.end.min(end));
            self.advise_part(from, to, advice)?;
            at = to;
        }
        if has_gap { Err(MapError::NoMemory) } else { Ok(()) }
    }

    /// Whether pages of the range may go ahead of an advice that gives them back: it would not be refused in the midst of them.
    pub fn permits_release(&self, start: u64, bytes: u64, advice: Advice) -> bool {
        let (mut at, end) = (start, start.saturating_add(bytes));
        let goes = |area: &Area| match advice {
            Advice::DontNeed => !area.is_locked,
            Advice::DontNeedLocked => true,
            Advice::Free => area.kind.view().is_none(),
            _ => false,
        };
        while let Some((_, area)) = self.area_from(at).filter(|(start, _)| *start < end) {
            if !goes(area) {
                return false;
            }
            at = area.end;
        }
        true
    }

    /// Every page of the range is in an area, or `NoMemory`: what msync, mlock and mincore check
    /// first. An unaligned start is `Invalid`.
    pub fn check_mapped(&self, start: u64, bytes: u64) -> Result<(), MapError> {
        let end = page_range(start, bytes, MapError::NoMemory)?;
        if self.is_covered(start, end) { Ok(()) } else { Err(MapError::NoMemory) }
    }

    /// mincore for one page: it is present, or the file has it in memory. `NoMemory` if unmapped.
    pub fn is_in_core(&self, address: u64) -> Result<bool, MapError> {
        let page = super::limits::page_of(address);
        let Some((start, area)) = self.area_at(page) else { return Err(MapError::NoMemory) };
        // Who only looks brings nothing in.
        let in_backing = |view: &super::View| view.present(Area::index(start, view, page)).is_some();
        Ok(self.pages.query(page).is_some() || area.kind.view().is_some_and(in_backing))
    }

    /// Makes safe what was written through shared areas of files in the range.
    pub fn sync(&self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        for (&from, area) in self.areas.iter() {
            if area.kind.is_shared()
                && from < end
                && start < area.end
                && let Some(view) = area.kind.view()
            {
                view.backing.sync();
            }
        }
    }

    /// The first shared area in `from..to`: what it shows, and its end.
    pub fn next_shared(&self, from: u64, to: u64) -> Option<(Arc<dyn Backing>, u64)> {
        let mut at = from;
        while let Some((start, area)) = self.area_from(at).filter(|(start, _)| *start < to) {
            if let Some(view) = area.kind.view().filter(|_| area.kind.is_shared()) {
                return Some((view.backing.clone(), area.end));
            }
            at = area.end.max(start);
        }
        None
    }

    /// Drops every present page that shows `backing` at or behind page `from_index`: the file was
    /// cut there. Private copies go too, as on Linux.
    pub fn forget_backing(&mut self, backing: &Arc<dyn Backing>, from_index: u64) {
        for (&start, area) in self.areas.iter() {
            let Some(view) = area.kind.view().filter(|view| Arc::ptr_eq(&view.backing, backing)) else { continue };
            let skipped = from_index.saturating_sub(view.first_page).saturating_mul(PAGE);
            self.pages.release(start.saturating_add(skipped), area.end);
        }
    }

    /// Drops the present pages of file `identity` that lie in `pages` (page numbers in the file): the
    /// file was cut there, or is about to have a hole there. Of a hole the file must still have its pages: what
    /// a private area shows beside them is its own.
    pub fn forget_file(&mut self, identity: BackingIdentity, pages: Range<u64>, what: Forget) {
        for (&start, area) in self.areas.iter() {
            let shows = match &area.kind {
                Kind::FileShared(view) | Kind::FilePrivate(view) => view,
                _ => continue,
            };
            if shows.backing.identity() != identity {
                continue;
            }
            let address = |page: u64| {
                let offset = page.saturating_sub(shows.first_page).saturating_mul(PAGE);
                start.saturating_add(offset).min(area.end)
            };
            let (from, to) = (address(pages.start), address(pages.end));
            if what == Forget::FilesOwn && area.has_copies && !area.kind.is_shared() {
                self.pages.release_shown(from, to, |page| shows.present(Area::index(start, shows, page)));
            } else {
                self.pages.release(from, to);
            }
        }
    }

    /// `from..to` lies in one area.
    fn advise_part(&mut self, from: u64, to: u64, advice: Advice) -> Result<(), MapError> {
        let Some((_, area)) = self.area_at(from) else { return Ok(()) };
        match advice {
            Advice::Nothing => Ok(()),
            Advice::Free if area.kind.view().is_some() => Err(MapError::Invalid),
            Advice::DontNeed if area.is_locked => Err(MapError::Invalid),
            Advice::DontNeed | Advice::DontNeedLocked | Advice::Free => {
                self.pages.release(from, to);
                Ok(())
            }
            Advice::AtFork(AtFork::Wipe) if !matches!(area.kind, Kind::Anonymous | Kind::Stack) => {
                Err(MapError::Invalid)
            }
            Advice::AtFork(at_fork) => self.mark(from, to, |area| area.at_fork = at_fork),
            Advice::AtDump { omit } => self.mark(from, to, |area| area.is_undumped = omit),
        }
    }

    /// Marks a part of an area.
    fn mark(&mut self, from: u64, to: u64, mark: impl FnOnce(&mut Area)) -> Result<(), MapError> {
        self.check_area_count(2)?;
        self.split(from);
        self.split(to);
        if let Some(area) = self.areas.get_mut(&from) {
            mark(area);
        }
        self.merge_before(to);
        self.merge_before(from);
        Ok(())
    }
}

/// The end of a range of whole pages; `too_long` if that leaves 64 bits.
pub(super) fn page_range(start: u64, bytes: u64, too_long: MapError) -> Result<u64, MapError> {
    if !is_page_aligned(start) {
        return Err(MapError::Invalid);
    }
    round_up(bytes).and_then(|bytes| start.checked_add(bytes)).ok_or(too_long)
}
