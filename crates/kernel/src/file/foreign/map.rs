//! Pages of a file outside of the machine, for maps: the other side's own pages, lent as frames. So a shared map is
//! shared with everybody there, a private one sees what others write until it copies, and nothing is written back.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::{Frames, KernelCell, KernelValue, PAGE_BYTES, TryGrow, WINDOW_PAGES};

use super::super::opened::{File, MappedFile};
use super::opening::Opening;
use super::{errno_of, foreign};
use crate::space::{BackingError, Page, Supply};

const PAGE: u64 = PAGE_BYTES as u64;

/// All maps of one file for reading, or all for writing.
pub(super) struct ForeignMap {
    opening: Arc<Opening>,
    is_writable: bool,
    /// The size when it was last asked for.
    size_bytes: KernelValue<u64>,
    /// Windows by number, in the order in which they were needed.
    windows: KernelCell<Vec<Window>>,
}

/// A part of a file as the other side lends it.
struct Window {
    number: u64,
    frames: Frames,
    /// A reference to each of the frames.
    pages: Vec<Page>,
}

impl Opening {
    /// The map of this file; `is_writable` needs an opening for reading and writing.
    pub(super) fn pages(self: &Arc<Opening>, is_writable: bool) -> Arc<ForeignMap> {
        let known = foreign(self.node()).ok().and_then(|node| node.maps.borrow()[is_writable as usize].upgrade());
        if let Some(map) = known {
            return map;
        }
        let map = Arc::new(ForeignMap {
            opening: self.clone(),
            is_writable,
            size_bytes: KernelValue::new(0),
            windows: KernelCell::new(Vec::new()),
        });
        if let Ok(node) = foreign(self.node()) {
            node.maps.borrow_mut()[is_writable as usize] = Arc::downgrade(&map);
        }
        map
    }
}

impl ForeignMap {
    fn lent(&self, index: u64) -> Result<Page, BackingError> {
        if index >= self.size_bytes.get().div_ceil(PAGE) {
            self.size_bytes.set(self.opening.size());
        }
        if index >= self.size_bytes.get().div_ceil(PAGE) {
            return Err(BackingError::PastEnd);
        }
        let (window, within) = (index / WINDOW_PAGES, (index % WINDOW_PAGES) as usize);
        if let Some(open) = self.windows.borrow().iter().find(|open| open.number == window) {
            return Ok(open.pages[within].clone());
        }
        self.windows.borrow_mut().room_for(1).map_err(|_| BackingError::OutOfMemory)?;
        let open = self.open_window(window).map_err(|_| BackingError::OutOfMemory)?;
        let page = open.pages[within].clone();
        self.windows.borrow_mut().put(open);
        Ok(page)
    }

    fn open_window(&self, number: u64) -> Result<Window, Errno> {
        let mut pages = Vec::new();
        pages.room_for_exact(WINDOW_PAGES as usize).map_err(|_| Errno::ENOMEM)?;
        let (far, handle) = self.opening.far();
        let frames = far.map(handle, number * WINDOW_PAGES, self.is_writable).map_err(errno_of)?;
        let pool = self.opening.node().volume().pool();
        if pool.prepare_to_lend(&frames).is_err() {
            far.unmap(frames);
            return Err(Errno::ENOMEM);
        }
        (0..WINDOW_PAGES as u32).for_each(|offset| pages.put(pool.lend(&frames, offset)));
        Ok(Window { number, frames, pages })
    }
}

impl MappedFile for ForeignMap {
    /// Error also if no window is left for it.
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        self.lent(index).map(Supply::Now)
    }

    /// Up to the end of the file or the last window that can be had.
    fn visit(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        for index in range {
            let Ok(page) = self.lent(index) else { return };
            show(index, &page);
        }
    }

    fn sync(&self) -> Result<(), Errno> {
        self.opening.sync_data()
    }
}

impl Drop for ForeignMap {
    fn drop(&mut self) {
        for Window { frames, pages, .. } in core::mem::take(&mut *self.windows.borrow_mut()) {
            if pages.iter().any(Page::is_shared) {
                // Somebody still shows a page: the window stays, and the opening with it.
                core::mem::forget(self.opening.clone());
                continue;
            }
            drop(pages);
            self.opening.far().0.unmap(frames);
        }
    }
}
