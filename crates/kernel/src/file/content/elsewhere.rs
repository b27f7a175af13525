//! The side of a file that is kept elsewhere: pages that must come, and pages that must go.

use alloc::sync::Arc;
use core::ops::Range;

use abi::Errno;
use machine::{PAGE_BYTES, try_box};

use super::super::kept::{Fetched, Flush, Kept};
use super::super::page_store::{Fresh, PageStore};
use super::super::volume::Volume;
use super::{Content, PAGE, copy_run};
use crate::space::{Arrival, Coming, Page, Supply};

/// Pages that are asked for together at most: 256 KB.
const TOGETHER_PAGES: usize = 64;

impl Content {
    /// The bytes of a file that lies over another, which `file` brings.
    pub(in crate::file) fn below(
        volume: &Arc<Volume>,
        file: Arc<dyn PageStore>,
        size_bytes: u64,
    ) -> Result<Content, Errno> {
        let mut content = Content::new(volume);
        content.kept = Some(try_box(Kept::new(&file, 0))?);
        content.words.size_bytes.set(size_bytes);
        Ok(content)
    }

    /// Its pages can be asked for from now on; may wait. What is told has changed since it was seen.
    ///
    /// Errors: they cannot be had.
    #[inline]
    pub(in crate::file) fn prepare(&self) -> Result<Option<Fresh>, Errno> {
        self.kept.as_ref().map_or(Ok(None), |kept| self.prepare_kept(kept))
    }

    #[cold]
    fn prepare_kept(&self, kept: &Kept) -> Result<Option<Fresh>, Errno> {
        let fresh = kept.prepare()?.filter(|_| kept.is_untouched() && self.pages_present() == 0);
        if let Some(fresh) = fresh {
            self.words.size_bytes.set(fresh.bytes);
        }
        Ok(fresh)
    }

    /// Fills a page of a file that lies over this one.
    pub(in crate::file) fn hand(&self, index: u64, arrival: Arrival) {
        match (self.present(index), &self.kept) {
            (Some(page), _) => copy_run(&page, arrival.page(), 0, PAGE_BYTES),
            (None, Some(kept)) if kept.holds(index) => return kept.hand(index, arrival),
            _ => arrival.page().fill(0, PAGE_BYTES, 0),
        }
        arrival.tell(Ok(()));
    }

    /// Whether pages may have to come, and are to be put.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The page is not here, but kept.
    pub(super) fn is_elsewhere(&self, index: u64) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.holds(index))
    }

    pub(super) fn will_change(&self, index: u64) -> Result<(), Errno> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.will_change(index))
    }

    /// A page that is not here, which comes with some of those behind it if it must.
    #[cold]
    pub(super) fn fetch(&self, kept: &Kept, index: u64) -> Result<Supply, Errno> {
        let supply = self.ask_for(kept, index)?;
        if matches!(supply, Supply::Wait(_)) {
            let end = (index + 1 + kept.ahead()).min(self.size().div_ceil(PAGE));
            let absent = (index + 1..end).take_while(|next| self.present(*next).is_none());
            // Those are not needed yet: without room for them they do not come.
            let _ = absent.map(|next| self.ask_for(kept, next)).find(|asked| !matches!(asked, Ok(Supply::Wait(_))));
            kept.go();
        }
        Ok(supply)
    }

    fn ask_for(&self, kept: &Kept, index: u64) -> Result<Supply, Errno> {
        loop {
            match kept.look_for(index) {
                Fetched::Hole => return Ok(Supply::Hole),
                Fetched::Wait(coming) => return Ok(Supply::Wait(coming)),
                Fetched::Here(page) => {
                    self.insert(index, page.clone())?;
                    return Ok(Supply::Now(page));
                }
                // It may be here at once.
                Fetched::Ask => kept.fetch(index, self.volume.allocate_page()?).map_err(|_| Errno::ENOSPC)?,
            }
        }
    }

    /// Asks for the pages of `range` (bytes) that are kept and not here; they come together. The first that must be waited for;
    /// `None`: all are here, until somebody else runs.
    ///
    /// Error: `ENOSPC` without room for them.
    #[inline]
    pub fn bring(&self, range: Range<u64>) -> Result<Option<Coming>, Errno> {
        self.kept.as_ref().map_or(Ok(None), |kept| self.bring_kept(kept, range))
    }

    #[cold]
    fn bring_kept(&self, kept: &Kept, range: Range<u64>) -> Result<Option<Coming>, Errno> {
        let mut first = None;
        let end = range.end.min(self.size()).div_ceil(PAGE);
        let mut asked = 0;
        for index in (range.start / PAGE..end).filter(|index| self.present(*index).is_none()) {
            match self.ask_for(kept, index) {
                Ok(Supply::Wait(coming)) => {
                    first.get_or_insert(coming);
                    asked += 1;
                }
                Ok(_) => {}
                Err(error) => {
                    kept.go();
                    return Err(error);
                }
            }
            if asked == TOGETHER_PAGES {
                break;
            }
        }
        kept.go();
        Ok(first)
    }

    /// As `bring`, for the pages that a change of the size or a hole clears at the edges of `range`.
    pub fn bring_edges(&self, range: Range<u64>) -> Result<Option<Coming>, Errno> {
        let Some(kept) = &self.kept else { return Ok(None) };
        for edge in [range.start, range.end].into_iter().filter(|edge| edge % PAGE != 0) {
            let index = edge / PAGE;
            if let Some(coming) = self.bring_kept(kept, index * PAGE..index * PAGE + 1)? {
                return Ok(Some(coming));
            }
            if self.present(index).is_some() {
                kept.will_change(index)?;
            }
        }
        Ok(None)
    }

    /// Sends the next dirty page from page `from` on to where the file is kept. Where to go on, and what to wait for; `None`:
    /// nothing is left before page `end`.
    ///
    /// Error: `ENOMEM`.
    pub fn flush_next(&self, from: u64, end: u64) -> Result<Option<(u64, Coming)>, Errno> {
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.is_written()) else { return Ok(None) };
        // A window's routine writes without a word; from now on it asks.
        self.forget_map();
        kept.settle_seen(self.words.written_at.get() != 0);
        loop {
            match kept.next_flush(from..end) {
                Flush::Done => return Ok(None),
                Flush::Wait(index, coming, again) => return Ok(Some((if again { index } else { index + 1 }, coming))),
                Flush::Put(index) => match self.present(index) {
                    Some(page) => return self.put(kept, index, page).map(|coming| Some((index + 1, coming))),
                    // There was no memory to put it into the file.
                    None => kept.forget(index),
                },
            }
        }
    }

    /// What lies behind the end, a program may have stored there; it is not kept.
    fn put(&self, kept: &Kept, index: u64, page: Page) -> Result<Coming, Errno> {
        let in_file = self.size().saturating_sub(index * PAGE).min(PAGE) as usize;
        page.fill(in_file, PAGE_BYTES - in_file, 0);
        kept.put(index, page, self.writable_maps.get() > 0).map_err(|_| Errno::ENOMEM)
    }

    /// Gives back the pages of `range` (bytes) that are as they are kept, and that nobody shows.
    pub fn release_clean(&self, range: Range<u64>) {
        let Some(kept) = &self.kept else { return };
        self.forget_map();
        kept.settle_seen(self.words.written_at.get() != 0);
        kept.settle_put();
        let end = range.end.div_ceil(PAGE);
        let mut next = range.start.div_ceil(PAGE);
        loop {
            let mut state = self.state.borrow_mut();
            let Some(index) = state.pages.next_page(next).filter(|index| *index < end) else { return };
            let is_shown = state.pages.get(index).is_none_or(Page::is_shared);
            if !is_shown && kept.is_clean(index) {
                let released = state.pages.remove(index..index + 1);
                self.volume.pages_lost(released);
            }
            next = index + 1;
        }
    }

    /// A routine's time of writing is taken away.
    pub(in crate::file) fn note_written(&self) {
        if let Some(kept) = &self.kept {
            kept.note_written();
        }
    }

    /// Pages that have storage: those here and those elsewhere.
    pub fn pages_stored(&self) -> u64 {
        self.pages_present().max(self.kept.as_ref().map_or(0, |kept| kept.pages()))
    }
}
