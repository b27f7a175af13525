//! Quaspaces: what a program may see of the one address space (S-2).
//!
//! A quaspace is a set of *areas*, what the program asked for, and of present *pages*, what the
//! translation holds so far. Areas change by calls (`map`, `protect`, `remap`, ...); pages come by
//! faults (S-106) and go with their areas.
//!
//! ```text
//!   0x7fff_ffff_f000  STACK_TOP = USER_LIMIT
//!                     first stack, grows down to its limit
//!                     guard gap, 1 MiB
//!   mmap base         128 MiB or the stack limit below the top; maps are placed downwards from here
//!                     ...
//!   break             grows up from the end of the program
//!   0x1_0000          LOWEST_ADDRESS
//! ```

mod advise;
mod area;
mod areas;
mod backing;
mod brk;
mod coming;
mod commit;
mod fault;
mod fork;
mod frames;
mod limits;
mod locked;
mod map;
mod page_tree;
mod pages;
mod place;
mod protect;
mod reach;
mod remap;
mod run;
mod stack;
#[cfg(test)]
mod tests;
mod usage;

use alloc::sync::Arc;

use machine::{KernelValue, Ordered, Translation};

pub use advise::{Advice, Forget};
pub use area::{AtFork, Kind, View};
pub use backing::{AnonymousMemory, Backing, BackingError, BackingIdentity, FixedPages};
pub use coming::{Arrival, Coming, Supply};
pub use commit::{MemoryRules, Overcommit};
pub use fault::{Access, FaultKind, Resolved};
pub use fork::NoMemory;
pub use frames::{FramePool, Page, PoolSource};
pub use limits::{LOWEST_ADDRESS, STACK_GUARD_BYTES, STACK_TOP, SpaceLimits, USER_LIMIT};
pub use locked::Presence;
pub use map::{MapError, MapRequest, Placement};
pub use remap::{Remap, RemapTarget};
pub use usage::{AreaLabel, AreaSizes, AreaView, Identity, Usage};

use area::Area;
pub(crate) use page_tree::PageTree;
use pages::Pages;

/// One quaspace. Dropping it gives back every frame it showed.
///
/// Invariants: areas do not overlap; a present page lies in an area; a present page grants no
/// right that its area does not; a private page is present writable only if no one else shows its
/// frame.
pub struct Space {
    /// By start address.
    areas: Ordered<u64, Area>,
    pages: Pages,
    limits: SpaceLimits,
    /// Maps without an address are placed below this.
    mmap_base: u64,
    search: KernelValue<place::Search>,
    brk: brk::Break,
    /// Top of the first stack, 0 before there is one.
    stack_top: u64,
    /// Bytes in all areas, and in those that count against RLIMIT_DATA or are stacks.
    total_bytes: u64,
    total_bytes_peak: u64,
    data_bytes: u64,
    stack_bytes: u64,
    /// Bytes of charged areas.
    charged_bytes: u64,
    /// What is mapped from now on is locked.
    locks_future: Option<Presence>,
}

impl Space {
    /// An empty quaspace with Linux's default limits.
    pub fn new(pool: &'static FramePool, translation: Arc<dyn Translation>) -> Space {
        Space::with_limits(pool, translation, SpaceLimits::default())
    }

    /// An empty quaspace; the stack limit decides where maps are placed, so it must be known now.
    pub fn with_limits(pool: &'static FramePool, translation: Arc<dyn Translation>, limits: SpaceLimits) -> Space {
        Space {
            areas: Ordered::new(),
            pages: Pages::new(pool, translation),
            limits,
            mmap_base: place::mmap_base(limits.stack_bytes),
            search: KernelValue::new(place::Search::new()),
            brk: brk::Break::default(),
            stack_top: 0,
            total_bytes: 0,
            total_bytes_peak: 0,
            data_bytes: 0,
            stack_bytes: 0,
            charged_bytes: 0,
            locks_future: None,
        }
    }

    pub fn limits(&self) -> SpaceLimits {
        self.limits
    }

    /// New limits bind later growth; what is mapped stays.
    pub fn set_limits(&mut self, limits: SpaceLimits) {
        self.limits = limits;
    }

    pub fn pool(&self) -> &'static FramePool {
        self.pages.pool
    }

    pub fn translation(&self) -> &Arc<dyn Translation> {
        &self.pages.translation
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.remove_all();
    }
}
