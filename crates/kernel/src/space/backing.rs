//! What gives an area its pages: a file, shared anonymous memory, or fixed frames of the kernel.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;

use machine::{KernelCell, try_arc};

use super::limits::PAGE;
use super::map::MapError;
use super::{FramePool, Page, PageTree, Supply};
use crate::charge::{Held, Kept};

/// Why a backing has no page for an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackingError {
    /// The page lies wholly behind the end: the program gets SIGBUS.
    PastEnd,
    /// A page had to be made and no frame was left.
    OutOfMemory,
    /// It could not be brought from where it is kept: the program gets SIGBUS.
    Failed,
}

/// What /proc/PID/maps says about a backing beside its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackingIdentity {
    pub device_major: u32,
    pub device_minor: u32,
    pub inode: u64,
}

/// Pages that areas show. A backing keeps its own reference to each page it hands out, so a page
/// that a private area maps is shared and a writer copies it first.
///
/// The quaspace is borrowed during these calls: an implementation must not touch program memory.
/// And it must not hold its own data borrowed while it copies to or from a program elsewhere: the
/// copy may fault on a map of the same file and come back here.
pub trait Backing: Send + Sync {
    /// The page `index` (file offset / 4096) as it is now. If it must come first, it is on its way afterwards.
    fn page(&self, index: u64) -> Result<Supply, BackingError>;

    /// Shows those of the pages `range` that are there already, in their order.
    fn present(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        for index in range {
            if let Ok(Supply::Now(page)) = self.page(index) {
                show(index, &page);
            }
        }
    }

    /// The page `index` for a program that writes to a shared area, or that must see later writes
    /// of others: a hole is filled first, so the answer is none.
    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError>;

    /// What would come back if no area showed it: of what it shares with others, its part. Asks for no memory itself.
    fn held(&self) -> Held;

    /// Makes safe what was written through shared areas (`MS_SYNC`), where that needs no waiting here.
    fn sync(&self) {}

    /// For the type's owner to find its own again.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// The last column of /proc/PID/maps.
    fn name(&self) -> &[u8];

    fn identity(&self) -> BackingIdentity {
        BackingIdentity::default()
    }
}

/// Memory that several quaspaces share without a file: it lives as long as an area shows it.
pub struct AnonymousMemory {
    pool: &'static FramePool,
    page_count: u64,
    /// It counts as a whole among what all programs may ask for.
    is_charged: bool,
    pages: KernelCell<PageTree>,
}

impl AnonymousMemory {
    /// Shared memory of `bytes` (rounded up to pages), all zero. Frames come at the first touch; without `no_reserve` it is charged now.
    /// `NoMemory`: that is more than all programs may have.
    pub fn new(pool: &'static FramePool, bytes: u64, no_reserve: bool) -> Result<Arc<AnonymousMemory>, MapError> {
        let page_count = bytes.div_ceil(PAGE);
        let is_charged = !no_reserve || pool.rules.is_strict();
        if is_charged && !pool.rules.admits(pool.total_frames(), page_count.saturating_mul(PAGE), 0) {
            return Err(MapError::NoMemory);
        }
        let memory = AnonymousMemory { pool, page_count, is_charged, pages: KernelCell::new(PageTree::new()) };
        let memory = try_arc(memory).map_err(|_| MapError::NoMemory)?;
        if is_charged {
            pool.rules.charge(memory.charged_bytes());
        }
        Ok(memory)
    }

    /// A map may be said to be larger than there are addresses, before it is refused.
    fn charged_bytes(&self) -> u64 {
        self.page_count.saturating_mul(PAGE).min(1 << 47)
    }
}

impl Drop for AnonymousMemory {
    fn drop(&mut self) {
        if self.is_charged {
            self.pool.rules.discharge(self.charged_bytes());
        }
    }
}

impl Backing for AnonymousMemory {
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        if index >= self.page_count {
            return Err(BackingError::PastEnd);
        }
        Ok(self.pages.borrow().get(index).cloned().into())
    }

    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError> {
        if let Supply::Now(page) = self.page(index)? {
            return Ok(Supply::Now(page));
        }
        let page = self.pool.allocate_zeroed().ok_or(BackingError::OutOfMemory)?;
        self.pages.borrow_mut().insert(index, page.clone()).map_err(|_| BackingError::OutOfMemory)?;
        Ok(Supply::Now(page))
    }

    fn held(&self) -> Held {
        Held { kept: Kept::SharedMemory, bytes: self.pages.borrow().pages() * PAGE }
    }

    /// What Linux calls a shared anonymous area.
    fn name(&self) -> &[u8] {
        b"/dev/zero (deleted)"
    }

    fn identity(&self) -> BackingIdentity {
        BackingIdentity { device_major: 0, device_minor: 1, inode: 0 }
    }
}

/// Frames that the kernel itself fills, such as the vDSO: every quaspace shows the same ones.
pub struct FixedPages {
    name: &'static str,
    pages: Vec<Page>,
}

impl FixedPages {
    /// `name` appears in /proc/PID/maps, for example `[vdso]`.
    pub fn new(name: &'static str, pages: Vec<Page>) -> Arc<FixedPages> {
        Arc::new(FixedPages { name, pages })
    }
}

impl Backing for FixedPages {
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        let index = usize::try_from(index).map_err(|_| BackingError::PastEnd)?;
        self.pages.get(index).cloned().map(Supply::Now).ok_or(BackingError::PastEnd)
    }

    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError> {
        self.page(index)
    }

    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}
