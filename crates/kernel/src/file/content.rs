//! The data of a regular file: its size and its pages, which are the page cache as well.

mod elsewhere;
mod holes;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use abi::Errno;
use machine::{KernelCell, KernelValue, Machine, PAGE_BYTES, UserMemory, VirtAddr, try_box};

use super::kept::Kept;
use super::limits::{FILE_BYTES_MAX, TRANSFER_BYTES_MAX};
use super::page_map::PageMap;
use super::seals::Seals;
use super::volume::Volume;
use crate::space::{Page, PageTree, Supply};

const PAGE: u64 = PAGE_BYTES as u64;

/// Words that machine code looks at before it uses a frame it remembers.
#[repr(C)]
pub struct ContentWords {
    /// Size of the file in bytes.
    pub size_bytes: KernelValue<u64>,
    /// Leaves of the file's [`PageMap`] that machine code may look at; 0 while what it would do must be seen by Rust.
    pub leaves: KernelValue<u64>,
    /// Address of their addresses.
    pub directory: KernelValue<u64>,
    /// Not 0: a read now need not note the access time, because one has since the last change.
    pub read_is_noted: KernelValue<u64>,
    /// Processor counter at the last write by machine code whose time has not been noted; 0: none.
    pub written_at: KernelValue<u64>,
    /// The same for the first read since the last change.
    pub read_at: KernelValue<u64>,
}

impl ContentWords {
    /// Of an empty file, and of none.
    pub(super) const fn new() -> ContentWords {
        ContentWords {
            size_bytes: KernelValue::new(0),
            leaves: KernelValue::new(0),
            directory: KernelValue::new(0),
            read_is_noted: KernelValue::new(0),
            written_at: KernelValue::new(0),
            read_at: KernelValue::new(0),
        }
    }

    pub(super) fn address(&self) -> u64 {
        &raw const *self as u64
    }
}

/// A file's bytes. A page that is absent below the size is a hole and reads as zeros.
///
/// Every page is the only copy: shared mappings map it, private mappings map it read-only and copy
/// at their first write, `write` changes it in place. No borrow of `state` is held while program
/// memory is copied, because the program's buffer may be a mapping of this very file, and its fault
/// asks here for a page.
///
/// A file that is kept elsewhere ([`super::PageStore`]) may have pages that must come first. Who is going to use some asks for them with
/// [`Content::bring`], sleeps with nothing in hand, and asks again, until all are here; then it does what it wants in one go. A
/// page that was not asked for is an error there (`EIO`), never a hole.
pub struct Content {
    words: ContentWords,
    volume: Arc<Volume>,
    state: KernelCell<State>,
    seals: KernelValue<Seals>,
    /// Shared maps that may be written to.
    writable_maps: KernelValue<u32>,
    /// Where the pages are that are not here; `None`: nowhere.
    kept: Option<Box<Kept>>,
}

struct State {
    pages: PageTree,
    /// Where they are, if machine code has been made for the file.
    map: Option<Box<PageMap>>,
    /// A program may have stored behind the end of the last page through a shared mapping; those
    /// bytes must not appear when the file grows.
    mapped_for_writing: bool,
}

/// A run of bytes inside one page.
struct Run {
    index: u64,
    offset: usize,
    bytes: usize,
}

impl Run {
    /// The part of `bytes` bytes at `position` that lies in the first page.
    fn first(position: u64, bytes: u64) -> Run {
        let offset = (position % PAGE) as usize;
        let bytes = bytes.min(PAGE - offset as u64) as usize;
        Run { index: position / PAGE, offset, bytes }
    }
}

impl Content {
    /// The data of a new file.
    pub(super) fn new(volume: &Arc<Volume>) -> Content {
        Content {
            kept: volume.page_store().map(|store| Box::new(Kept::new(store, volume.take_number()))),
            words: ContentWords::new(),
            volume: volume.clone(),
            state: KernelCell::new(State { pages: PageTree::new(), map: None, mapped_for_writing: false }),
            seals: KernelValue::new(Seals::SEAL),
            writable_maps: KernelValue::new(0),
        }
    }

    pub fn size(&self) -> u64 {
        self.words.size_bytes.get()
    }

    pub fn words(&self) -> &ContentWords {
        &self.words
    }

    /// Pages that hold data, holes not counted.
    pub fn pages_present(&self) -> u64 {
        self.state.borrow().pages.pages()
    }

    pub fn seals(&self) -> Seals {
        self.seals.get()
    }

    /// The seals that a new file starts with; until then it has the one that keeps all others off.
    pub fn set_first_seals(&self, seals: Seals) {
        self.seals.set(seals);
    }

    /// Errors: `EPERM` if no more may be added, `EBUSY` for [`Seals::WRITE`] while a shared map may be written to.
    pub(super) fn add_seals(&self, more: Seals, mode: u32) -> Result<(), Errno> {
        let seals = self.seals.get();
        if seals.has(Seals::SEAL) {
            return Err(Errno::EPERM);
        }
        if more.has(Seals::WRITE) && !seals.has(Seals::WRITE) && self.writable_maps.get() > 0 {
            return Err(Errno::EBUSY);
        }
        self.seals.set(seals.with(more, mode));
        // A routine does not know how far a sealed file may grow.
        self.hide_pages();
        Ok(())
    }

    /// A shared map of the file is made that may be written to.
    pub fn map_gained(&self) {
        self.writable_maps.set(self.writable_maps.get() + 1);
    }

    /// Such a map is gone.
    pub fn map_lost(&self) {
        self.writable_maps.set(self.writable_maps.get() - 1);
    }

    /// From now on each read and write is done in Rust, until [`Content::show_page`].
    pub(super) fn hide_pages(&self) {
        self.words.leaves.set(0);
    }

    /// The same, and the map of pages goes: machine code knows none of them.
    fn forget_map(&self) {
        self.hide_pages();
        self.state.borrow_mut().map = None;
    }

    /// The pages around `position` may be used by machine code: Rust has moved bytes there, and nobody has to see it. A file that is
    /// sealed is not shown: routines do not know what its seals forbid.
    pub(super) fn show_page(&self, machine: &'static dyn Machine, position: u64) {
        if self.seals.get().forbid_some() {
            return;
        }
        let mut state = self.state.borrow_mut();
        let State { pages, map, .. } = &mut *state;
        if map.is_none() {
            *map = try_box(PageMap::new(machine)).ok();
        }
        let Some(map) = map else { return };
        let index = position / PAGE;
        let is_new = map.missing_leaf(index).filter(|missing| map.add_leaf(missing.start));
        match (&self.kept, is_new) {
            (None, Some(missing)) => pages.visit(missing, &mut |index, page| map.set(index, page.frame())),
            (None, None) => {}
            // A routine writes without a word: each page that it knows is noted.
            (Some(kept), _) => {
                if let Some(page) = pages.get(index)
                    && kept.will_be_seen(index)
                {
                    map.set(index, page.frame());
                }
            }
        }
        let (directory, leaves) = map.directory();
        self.words.directory.set(directory);
        self.words.leaves.set(leaves);
    }

    /// Copies up to `into.len()` bytes from `position`; returns how many the file had there, and that have been brought.
    pub fn read_at(&self, position: u64, into: &mut [u8]) -> usize {
        let bytes = self.readable(position, into.len());
        let state = self.state.borrow();
        let mut done = 0;
        while done < bytes {
            let run = Run::first(position + done as u64, (bytes - done) as u64);
            let part = &mut into[done..done + run.bytes];
            match state.pages.get(run.index) {
                Some(page) => page.read(run.offset, part),
                None if self.is_elsewhere(run.index) => return done,
                None => part.fill(0),
            }
            done += run.bytes;
        }
        bytes
    }

    /// Copies up to `bytes` bytes from `position` to the program; returns how many. A fault after
    /// some bytes ends the copy early, as on Linux. Error: `EFAULT` if the first byte faulted.
    pub fn read_user(
        &self,
        memory: &dyn UserMemory,
        position: u64,
        to: VirtAddr,
        bytes: usize,
    ) -> Result<usize, Errno> {
        let mut done = 0;
        loop {
            let left = self.readable(position.saturating_add(done as u64), bytes - done);
            if left == 0 {
                return Ok(done);
            }
            let run = Run::first(position + done as u64, left as u64);
            let target = VirtAddr(to.0.wrapping_add(done as u64));
            let copied = match self.present(run.index) {
                Some(page) => memory.copy_out_frame(target, page.frame(), run.offset, run.bytes),
                None if self.is_elsewhere(run.index) => return if done > 0 { Ok(done) } else { Err(Errno::EIO) },
                None => memory.zero_out(target, run.bytes),
            };
            done += copied;
            if copied < run.bytes {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
        }
    }

    /// Writes `from` at `position`, growing the file; returns how many bytes fitted.
    ///
    /// Errors, only if nothing was written: `ENOSPC`, `EFBIG`.
    pub fn write_at(&self, position: u64, from: &[u8]) -> Result<usize, Errno> {
        self.write_runs(position, from.len(), |page, run, done| {
            page.write(run.offset, &from[done..done + run.bytes]);
            run.bytes
        })
    }

    /// Writes `bytes` bytes of program memory at `position`, growing the file; returns how many.
    /// A fault after some bytes ends the copy early, as on Linux.
    ///
    /// Errors, only if nothing was written: `EFAULT`, `ENOSPC`, `EFBIG`.
    pub fn write_user(
        &self,
        memory: &dyn UserMemory,
        position: u64,
        from: VirtAddr,
        bytes: usize,
    ) -> Result<usize, Errno> {
        self.write_runs(position, bytes, |page, run, done| {
            memory.copy_in_frame(VirtAddr(from.0.wrapping_add(done as u64)), page.frame(), run.offset, run.bytes)
        })
    }

    /// Writes page by page. `fill` puts bytes into a page and returns how many; it may fault and
    /// come back to this file, so no borrow is held around it.
    fn write_runs(
        &self,
        position: u64,
        bytes: usize,
        mut fill: impl FnMut(&Page, &Run, usize) -> usize,
    ) -> Result<usize, Errno> {
        if bytes == 0 {
            return Ok(0);
        }
        if position >= FILE_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        let bytes = (bytes.min(TRANSFER_BYTES_MAX) as u64).min(FILE_BYTES_MAX - position);
        self.check_write(&Run::first(position, bytes))?;
        if position + bytes > self.size() {
            self.clear_behind_end();
        }
        let mut done = 0;
        while done < bytes {
            let run = Run::first(position + done, bytes - done);
            let filled = self.check_write(&run).and_then(|()| self.write_run(&run, done as usize, &mut fill));
            let written = match filled {
                Ok(written) => written as u64,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            done += written;
            self.words.size_bytes.set(self.size().max(position + done));
            if written < run.bytes as u64 {
                break;
            }
        }
        Ok(done as usize)
    }

    /// Error: `EPERM`, by the file's seals.
    fn check_write(&self, run: &Run) -> Result<(), Errno> {
        self.seals.get().check_write(run.index * PAGE + (run.offset + run.bytes) as u64, self.size())
    }

    /// Fills one run; returns its bytes that were written, at least one.
    fn write_run(
        &self,
        run: &Run,
        done: usize,
        fill: &mut impl FnMut(&Page, &Run, usize) -> usize,
    ) -> Result<usize, Errno> {
        if let Some(page) = self.present(run.index) {
            self.will_change(run.index)?;
            return at_least_one(fill(&page, run, done));
        }
        if self.is_elsewhere(run.index) {
            return Err(Errno::EIO);
        }
        let page = self.volume.allocate_page()?;
        page.fill(0, run.offset, 0);
        let written = at_least_one(fill(&page, run, done))?;
        page.fill(run.offset + written, PAGE_BYTES - run.offset - written, 0);
        // A fault during the fill may have put a page of zeros where the hole was.
        match self.present(run.index) {
            None => {
                self.will_change(run.index)?;
                self.insert(run.index, page)?;
            }
            Some(winner) => copy_run(&page, &winner, run.offset, written),
        }
        Ok(written)
    }

    /// Sets the size: cuts data off or adds a hole. Errors: `EFBIG`, `EPERM` by a seal.
    pub fn resize(&self, size_bytes: u64) -> Result<(), Errno> {
        if size_bytes > FILE_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        self.seals.get().check_resize(self.size(), size_bytes)?;
        if size_bytes < self.size() {
            self.remove_pages(size_bytes.div_ceil(PAGE)..u64::MAX);
            self.words.size_bytes.set(size_bytes);
            self.clear_from(size_bytes);
        } else {
            self.clear_behind_end();
            self.words.size_bytes.set(size_bytes);
        }
        Ok(())
    }

    /// The file is as long as it was before something was added that nobody has seen.
    pub fn take_back(&self, size_bytes: u64) {
        if size_bytes < self.size() {
            self.remove_pages(size_bytes.div_ceil(PAGE)..u64::MAX);
            self.words.size_bytes.set(size_bytes);
            self.clear_from(size_bytes);
        }
    }

    /// Takes out the first pages from `position` on, at most `bytes` from the first to the last: ahead of a cut there, which
    /// would take long. Where to go on; `None`: nothing is left, or the file may not be cut.
    pub fn release_some(&self, position: u64, bytes: u64) -> Option<u64> {
        let seals = self.seals.get();
        if seals.forbid_writes() || seals.check_resize(self.size(), position).is_err() {
            return None;
        }
        let first = self.state.borrow().pages.next_page(position.div_ceil(PAGE))?;
        let end = first + bytes / PAGE;
        self.remove_pages(first..end);
        Some(end * PAGE)
    }

    /// Gives `range` (bytes) storage, filled with zeros where it was a hole. The size stays.
    /// Errors: `ENOSPC`, and then nothing has changed; `EPERM` by a seal, if the range ends behind the file.
    pub fn allocate(&self, range: Range<u64>) -> Result<(), Errno> {
        let missing = self.pages_missing(range.clone())?;
        if !self.has_room(missing) {
            return Err(Errno::ENOSPC);
        }
        for index in range.start / PAGE..range.end.div_ceil(PAGE) {
            if self.present(index).is_none() && !self.is_elsewhere(index) {
                self.insert_zeroed(index)?;
            }
        }
        Ok(())
    }

    /// How many pages [`Content::allocate`] would add. Error: `EPERM` by a seal, if the range ends behind the file.
    pub fn pages_missing(&self, range: Range<u64>) -> Result<u64, Errno> {
        self.seals.get().check_resize(self.size(), self.size().max(range.end))?;
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        Ok(pages.end.saturating_sub(pages.start).saturating_sub(self.count_present(pages)))
    }

    /// Whether the file's volume may have so many pages more.
    pub fn has_room(&self, pages: u64) -> bool {
        self.volume.has_room(pages)
    }

    /// Makes `range` (bytes) a hole; partly covered pages are filled with zeros there. The size stays.
    /// Error: `EPERM` by a seal.
    pub fn punch_hole(&self, range: Range<u64>) -> Result<(), Errno> {
        if self.seals.get().forbid_writes() {
            return Err(Errno::EPERM);
        }
        let whole = range.start.div_ceil(PAGE)..range.end / PAGE;
        if whole.start > whole.end {
            self.clear_within_page(range);
            return Ok(());
        }
        self.clear_within_page(range.start..whole.start * PAGE);
        self.clear_within_page(whole.end * PAGE..range.end);
        self.remove_pages(whole);
        Ok(())
    }

    /// The page that holds bytes `index * 4096…`, for reading and for private mappings.
    /// Errors: `ENXIO` if the whole page lies behind the end; `ENOSPC` without room for one that must come.
    pub fn page(&self, index: u64) -> Result<Supply, Errno> {
        if index >= self.size().div_ceil(PAGE) {
            return Err(Errno::ENXIO);
        }
        match (self.present(index), &self.kept) {
            (Some(page), _) => Ok(Supply::Now(page)),
            (None, None) => Ok(Supply::Hole),
            (None, Some(kept)) => self.fetch(kept, index),
        }
    }

    /// The page for a shared mapping that may be written: a hole gets a page of zeros.
    /// Errors: `ENXIO` behind the end, `ENOSPC`.
    pub fn page_for_write(&self, index: u64) -> Result<Supply, Errno> {
        let page = match self.page(index)? {
            Supply::Now(page) => page,
            Supply::Hole => self.insert_zeroed(index)?,
            Supply::Wait(coming) => return Ok(Supply::Wait(coming)),
        };
        self.state.borrow_mut().mapped_for_writing = true;
        self.will_change(index)?;
        Ok(Supply::Now(page))
    }

    /// Its volume has as much data as it may have, so no hole can be filled.
    pub fn volume_is_full(&self) -> bool {
        self.volume.is_full()
    }

    /// Appends a frame that already holds file data (boot archive). Pages come in order from 0;
    /// `bytes_in_page` of each but the last must be 4096. Errors: `ENOSPC`.
    pub fn adopt_page(&self, page: Page, bytes_in_page: usize) -> Result<(), Errno> {
        let size = self.size();
        page.fill(bytes_in_page, PAGE_BYTES - bytes_in_page, 0);
        self.insert(size / PAGE, page)?;
        self.words.size_bytes.set(size + bytes_in_page as u64);
        Ok(())
    }

    /// Shows those of the pages `range` that are there, in their order; none behind the end.
    pub fn visit(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        let end = range.end.min(self.size().div_ceil(PAGE_BYTES as u64));
        self.state.borrow().pages.visit(range.start..end, show);
    }

    fn present(&self, index: u64) -> Option<Page> {
        self.state.borrow().pages.get(index).cloned()
    }

    /// Bytes of `bytes` that can be read at `position`.
    fn readable(&self, position: u64, bytes: usize) -> usize {
        let left = self.size().saturating_sub(position);
        (bytes.min(TRANSFER_BYTES_MAX) as u64).min(left) as usize
    }

    fn insert(&self, index: u64, page: Page) -> Result<(), Errno> {
        let mut state = self.state.borrow_mut();
        let frame = page.frame();
        state.pages.insert(index, page).map_err(|_| Errno::ENOSPC)?;
        if let Some(map) = &mut state.map
            && self.kept.is_none()
        {
            map.set(index, frame);
        }
        self.volume.pages_gained(1);
        Ok(())
    }

    fn insert_zeroed(&self, index: u64) -> Result<Page, Errno> {
        let page = self.volume.allocate_page()?;
        page.fill(0, PAGE_BYTES, 0);
        self.will_change(index)?;
        self.insert(index, page.clone())?;
        Ok(page)
    }

    fn remove_pages(&self, range: Range<u64>) {
        let mut state = self.state.borrow_mut();
        if let Some(map) = &mut state.map {
            map.remove(range.clone());
        }
        let removed = state.pages.remove(range.clone());
        drop(state);
        self.volume.pages_lost(removed);
        if let Some(kept) = &self.kept {
            kept.cut(range);
        }
    }

    /// Zeros `range` (bytes, inside one page) if it has storage.
    fn clear_within_page(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let run = Run::first(range.start, range.end - range.start);
        if let Some(page) = self.present(run.index) {
            // Of a file that is kept, `bring_edges` has said so and found room for it.
            let _ = self.will_change(run.index);
            page.fill(run.offset, run.bytes, 0);
        }
    }

    fn clear_from(&self, position: u64) {
        self.clear_within_page(position..position.next_multiple_of(PAGE));
    }

    fn clear_behind_end(&self) {
        if self.state.borrow().mapped_for_writing {
            self.clear_from(self.size());
        }
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.volume.pages_lost(self.pages_present());
        if let Some(kept) = &self.kept {
            kept.cut(0..u64::MAX);
        }
    }
}

fn at_least_one(copied: usize) -> Result<usize, Errno> {
    if copied > 0 { Ok(copied) } else { Err(Errno::EFAULT) }
}

fn copy_run(from: &Page, to: &Page, offset: usize, bytes: usize) {
    let mut buffer = [0; 256];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(buffer.len());
        from.read(offset + done, &mut buffer[..part]);
        to.write(offset + done, &buffer[..part]);
        done += part;
    }
}
