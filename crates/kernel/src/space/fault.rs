//! Supplying pages when the program touches them (S-106): demand zero, copy on write, file pages,
//! stack growth. The work is that of the pages touched; nothing here allocates but frames.

use core::ops::Range;

use machine::{Mapping, NoFrames, Protection};

use super::area::{Area, Kind, View, without_write};
use super::backing::BackingError;
use super::limits::{
    AROUND_PAGES, PAGE, POPULATED_PAGES, SEGMENT_PAGES_AHEAD, USER_LIMIT, WINDOWS_WHERE_DEAR, page_of,
};
use super::pages::Pages;
use super::run::Run;
use super::{Coming, Page, Space, Supply};

/// What the program tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    Execute,
}

/// What made the access possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// The page allowed the access already, or again after a change of rights only.
    Present,
    /// A page was mapped.
    Mapped,
    /// A private copy was made of a page that others show.
    Copied,
}

/// Why the access is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// No area there (SIGSEGV, SEGV_MAPERR).
    Unmapped,
    /// The area forbids it (SIGSEGV, SEGV_ACCERR).
    Denied,
    /// Behind the end of the file (SIGBUS, BUS_ADRERR).
    PastEndOfFile,
    /// No frame is left: the program must go, or another one.
    OutOfMemory,
    /// The file's page is on its way ([`Space::take_coming`]): the thread sleeps and tries again.
    Coming,
    /// The file's page could not be had (SIGBUS, BUS_ADRERR).
    Failed,
}

impl From<BackingError> for FaultKind {
    fn from(error: BackingError) -> FaultKind {
        match error {
            BackingError::PastEnd => FaultKind::PastEndOfFile,
            BackingError::OutOfMemory => FaultKind::OutOfMemory,
            BackingError::Failed => FaultKind::Failed,
        }
    }
}

impl From<NoFrames> for FaultKind {
    fn from(_: NoFrames) -> FaultKind {
        FaultKind::OutOfMemory
    }
}

impl Space {
    /// Makes the page at `address` present with the right that `access` needs.
    pub fn fault(&mut self, address: u64, access: Access) -> Result<Resolved, FaultKind> {
        let page = page_of(address);
        self.fault_if(page, access, |area| area.permits(access))
    }

    /// Makes a private copy (or the shared page) present whatever the area's rights say, for a
    /// debugger that sets a breakpoint. A shared area without write stays forbidden, as on Linux.
    pub(super) fn fault_forced(&mut self, address: u64, access: Access) -> Result<Resolved, FaultKind> {
        let page = page_of(address);
        self.fault_if(page, access, |area| area.permits(access) || !area.kind.is_shared())
    }

    fn fault_if(
        &mut self,
        page: u64,
        access: Access,
        permitted: impl Fn(&Area) -> bool,
    ) -> Result<Resolved, FaultKind> {
        if page >= USER_LIMIT {
            return Err(FaultKind::Unmapped);
        }
        let found = self.areas.last_to_mut(&page).filter(|(_, area)| area.end > page);
        let (&start, area) = match found {
            Some(found) => found,
            None => {
                self.grow_stack(page)?;
                self.areas.last_to_mut(&page).ok_or(FaultKind::Unmapped)?
            }
        };
        if !permitted(area) {
            return Err(FaultKind::Denied);
        }
        self.pages.supply(start, area, page, access)
    }

    /// Supplies what a program that is being loaded will touch of a segment, where faults are dear: a small writable one whole, of
    /// another one the pages around its first. What cannot be had now comes by a fault, or fails there.
    pub fn supply_segment(&mut self, start: u64, bytes: u64) {
        let Some((_, area)) = self.area_at(start).filter(|_| self.pages.translation.ahead_pages() > 1) else { return };
        let is_written = area.protection.write;
        let is_small = bytes <= SEGMENT_PAGES_AHEAD * PAGE;
        if is_written && is_small && self.pages.pool.has_plenty() {
            self.populate(start, start + bytes);
        } else if !is_written {
            let _ = self.fault(start, Access::Read);
        }
        self.pages.awaited = None;
    }

    /// What the last fault that ended with [`FaultKind::Coming`] waits for.
    pub fn take_coming(&mut self) -> Option<Coming> {
        self.pages.awaited.take()
    }

    /// Supplies the first pages of a range ahead of use; where to go on, `None`: all are there. `access` is what for: without it, for
    /// writing where writes are private, for reading elsewhere. The first failure ends it.
    pub fn populate_some(&mut self, range: Range<u64>, access: Option<Access>) -> Result<Option<u64>, FaultKind> {
        let part_end = range.end.min(range.start.saturating_add(POPULATED_PAGES * PAGE));
        let mut at = range.start;
        while at < part_end {
            let Some((_, area)) = self.area_at(at) else { return Err(FaultKind::Unmapped) };
            let area_end = area.end.min(part_end);
            let private_write = area.protection.write && !area.kind.is_shared();
            let access = access.unwrap_or(if private_write { Access::Write } else { Access::Read });
            while at < area_end {
                self.fault(at, access)?;
                at += PAGE;
            }
        }
        Ok((at < range.end).then_some(at))
    }

    /// The first of them, and nobody asks what became of it: whoever wants more than so many goes on with [`Space::populate_some`].
    pub(super) fn populate(&mut self, start: u64, end: u64) {
        let _ = self.populate_some(start..end, None);
    }

    /// Where populating `start..end` stops: pages of zeros need no frame, so a range may be larger
    /// than memory and the loop over it too long for a kernel call.
    pub fn populated_at_most(&self, start: u64, end: u64) -> u64 {
        end.min(start.saturating_add(self.pages.pool.total_frames() as u64 * PAGE))
    }
}

impl Area {
    /// Rights as x86 gives them: any right implies reading.
    pub(super) fn permits(&self, access: Access) -> bool {
        match access {
            Access::Read => self.is_accessible(),
            Access::Write => self.protection.write,
            Access::Execute => self.protection.execute,
        }
    }
}

/// A present page with these rights lets the program do it.
fn allows(protection: Protection, access: Access) -> bool {
    match access {
        Access::Read => protection.read,
        Access::Write => protection.write,
        Access::Execute => protection.execute,
    }
}

impl Pages {
    fn supply(&mut self, start: u64, area: &mut Area, page: u64, access: Access) -> Result<Resolved, FaultKind> {
        let present = self.query(page);
        match present {
            Some(mapping) if allows(mapping.protection, access) => Ok(Resolved::Present),
            _ if area.kind.is_shared() => self.supply_shared(start, area, page, access, present),
            _ if access == Access::Write => self.supply_private_write(start, area, page, present),
            Some(_) => {
                self.protect(page, without_write(area.granted()));
                Ok(Resolved::Present)
            }
            None => self.supply_private_read(start, area, page),
        }
    }

    /// A hole of a file is filled even for a private reader, as for a shared one: as long as it has not written to the page, it sees
    /// what others write there.
    fn supply_private_read(&mut self, start: u64, area: &Area, page: u64) -> Result<Resolved, FaultKind> {
        let rights = without_write(area.granted());
        let Some(view) = area.kind.view() else {
            let zero = self.pool.zero_page().ok_or(FaultKind::OutOfMemory)?;
            self.fill(page, zero, rights)?;
            return Ok(Resolved::Mapped);
        };
        let contents = self.shown_page(view, Area::index(start, view, page))?;
        self.fill(page, contents, rights)?;
        self.fill_around(start, area.end, view, page, rights);
        Ok(Resolved::Mapped)
    }

    /// Maps the neighbours of a file page that was just mapped, without write: a program that runs
    /// through its text would fault for each of them, and a fault costs more than an entry. Where faults are dear there are more of them.
    fn fill_around(&mut self, start: u64, end: u64, view: &View, page: u64, rights: Protection) {
        const WINDOW_BYTES: u64 = AROUND_PAGES * PAGE;
        let windows = if self.translation.ahead_pages() > 1 { WINDOWS_WHERE_DEAR } else { 1 };
        let first = page - page % (windows * WINDOW_BYTES);
        for window in (0..windows).map(|index| first + index * WINDOW_BYTES) {
            self.fill_window(start, start.max(window), end.min(window + WINDOW_BYTES), view, rights);
        }
    }

    /// Maps the pages that the file has between two addresses of an area and that are absent so far.
    fn fill_window(&mut self, start: u64, from: u64, to: u64, view: &View, rights: Protection) {
        let mut run = Run::new();
        let mut at = from;
        while at < to {
            let next_present = self.next_present(at, to).map_or(to, |(present, _)| present);
            let first = Area::index(start, view, at);
            // Where the file's first page would be.
            let base = at.wrapping_sub(first * PAGE);
            view.backing.present(first..first + (next_present - at) / PAGE, &mut |index, page| {
                run.push(base.wrapping_add(index * PAGE), page.frame(), rights);
            });
            at = next_present + PAGE;
        }
        self.pool.share_all(run.pages());
        // No frame for a table is no failure: nobody asked for these pages.
        let _ = self.fill_all(run.pages());
    }

    fn supply_private_write(
        &mut self,
        start: u64,
        area: &mut Area,
        page: u64,
        present: Option<Mapping>,
    ) -> Result<Resolved, FaultKind> {
        let rights = area.granted();
        let Some(mapping) = present else {
            let contents = self.fresh_copy(start, area, page)?;
            area.has_copies = true;
            self.fill(page, contents, rights)?;
            self.fill_ahead(start, area, page, rights);
            return Ok(Resolved::Mapped);
        };
        if !self.pool.is_shared(mapping.frame) {
            // The others have gone or copied: the page is this quaspace's own.
            area.has_copies = true;
            self.protect(page, rights);
            return Ok(Resolved::Present);
        }
        let copy = self.copy_of(mapping)?;
        area.has_copies = true;
        self.replace(page, mapping, copy, rights)?;
        if self.pool.is_zero_frame(mapping.frame) {
            // It was read first, as by an addition in place.
            self.fill_ahead(start, area, page, rights);
        }
        Ok(Resolved::Copied)
    }

    /// Supplies the pages behind one that was just supplied, if the program goes through its fresh memory page by page
    /// and the machine's faults are dear.
    fn fill_ahead(&mut self, start: u64, area: &Area, page: u64, rights: Protection) {
        let ahead = self.translation.ahead_pages();
        let goes_up =
            ahead > 1 && page > start && self.query(page - PAGE).is_some_and(|before| before.protection.write);
        if !goes_up || area.kind.view().is_some() || !self.pool.has_plenty() {
            return;
        }
        let end = area.end.min(page + ahead * PAGE);
        let end = self.next_present(page + PAGE, end).map_or(end, |(present, _)| present);
        let mut at = page + PAGE;
        while at < end {
            let Some(contents) = self.pool.allocate_zeroed() else { return };
            if self.fill(at, contents, rights).is_err() {
                return;
            }
            at += PAGE;
        }
    }

    /// A page of its own for an absent private page that is about to be written.
    fn fresh_copy(&mut self, start: u64, area: &Area, page: u64) -> Result<Page, FaultKind> {
        let original = match area.kind.view() {
            Some(view) => view.backing.page(Area::index(start, view, page))?,
            None => Supply::Hole,
        };
        let copy = match original {
            Supply::Now(original) => original.duplicate(),
            Supply::Hole => self.pool.allocate_zeroed(),
            Supply::Wait(coming) => return Err(self.must_wait(coming)),
        };
        copy.ok_or(FaultKind::OutOfMemory)
    }

    /// The backing's own page for a reader.
    fn shown_page(&mut self, view: &View, index: u64) -> Result<Page, FaultKind> {
        match view.backing.page(index)? {
            Supply::Now(contents) => Ok(contents),
            Supply::Wait(coming) => Err(self.must_wait(coming)),
            Supply::Hole => self.written_page(view, index),
        }
    }

    /// The backing's own page for a writer.
    fn written_page(&mut self, view: &View, index: u64) -> Result<Page, FaultKind> {
        match view.backing.page_for_write(index)? {
            Supply::Now(contents) => Ok(contents),
            Supply::Wait(coming) => Err(self.must_wait(coming)),
            // A backing fills what is to be written.
            Supply::Hole => Err(FaultKind::OutOfMemory),
        }
    }

    #[cold]
    fn must_wait(&mut self, coming: Coming) -> FaultKind {
        self.awaited = Some(coming);
        FaultKind::Coming
    }

    fn copy_of(&self, mapping: Mapping) -> Result<Page, FaultKind> {
        let copy = if self.pool.is_zero_frame(mapping.frame) {
            self.pool.allocate_zeroed()
        } else {
            self.pool.share(mapping.frame).duplicate()
        };
        copy.ok_or(FaultKind::OutOfMemory)
    }

    /// A shared area shows the backing's own pages. A hole is filled even for a reader: it must
    /// see what another writes there later. File pages are writable only after a write fault, by
    /// which the file learns that it changes.
    fn supply_shared(
        &mut self,
        start: u64,
        area: &Area,
        page: u64,
        access: Access,
        present: Option<Mapping>,
    ) -> Result<Resolved, FaultKind> {
        let Some(view) = area.kind.view() else { return Err(FaultKind::Unmapped) };
        let index = Area::index(start, view, page);
        let write_at_once = access == Access::Write || matches!(area.kind, Kind::SharedAnonymous(_));
        let contents = if write_at_once { self.written_page(view, index)? } else { self.shown_page(view, index)? };
        let rights = if write_at_once { area.granted() } else { without_write(area.granted()) };
        match present {
            Some(mapping) if mapping.frame == contents.frame() => {
                self.protect(page, rights);
                Ok(Resolved::Present)
            }
            Some(mapping) => {
                self.replace(page, mapping, contents, rights)?;
                Ok(Resolved::Mapped)
            }
            None => {
                self.fill(page, contents, rights)?;
                if !write_at_once {
                    self.fill_around(start, area.end, view, page, rights);
                }
                Ok(Resolved::Mapped)
            }
        }
    }
}
