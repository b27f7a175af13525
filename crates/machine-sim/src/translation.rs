//! Page tables as a map.

use std::collections::BTreeMap;

use machine::{FrameNumber, LocalCell, Mapping, NoFrames, PAGE_BYTES, Protection, Translation, VirtAddr};

pub struct SimTranslation {
    root: u64,
    pages: LocalCell<BTreeMap<u64, Mapping>>,
}

impl SimTranslation {
    pub fn new(root: u64) -> SimTranslation {
        SimTranslation { root, pages: LocalCell::new(BTreeMap::new()) }
    }

    /// What the processor does with an access to `page`: marks it written; `None` if the access faults.
    pub fn touch(&self, page: u64, write: bool) -> Option<Mapping> {
        let mut pages = self.pages.borrow_mut();
        let mapping = pages.get_mut(&page)?;
        let may = if write { mapping.protection.write } else { mapping.protection.read };
        mapping.dirty |= write && may;
        may.then_some(*mapping)
    }
}

fn checked(page: VirtAddr) -> u64 {
    assert!(page.0.is_multiple_of(PAGE_BYTES as u64) && page.0 < 1 << 47, "{page:?} is no page of a program");
    page.0
}

// SAFETY: no processor is led by it; what it maps is looked up in it.
unsafe impl Translation for SimTranslation {
    fn number(&self) -> u64 {
        self.root
    }

    fn map(&self, page: VirtAddr, frame: FrameNumber, protection: Protection) -> Result<(), NoFrames> {
        self.pages.borrow_mut().insert(checked(page), Mapping { frame, protection, dirty: false });
        Ok(())
    }

    fn unmap(&self, page: VirtAddr) -> Option<Mapping> {
        self.pages.borrow_mut().remove(&checked(page))
    }

    fn protect(&self, page: VirtAddr, protection: Protection) {
        if let Some(mapping) = self.pages.borrow_mut().get_mut(&checked(page)) {
            mapping.protection = protection;
        }
    }

    fn query(&self, page: VirtAddr) -> Option<Mapping> {
        self.pages.borrow().get(&checked(page)).copied()
    }

    fn next_present(&self, from: VirtAddr, to: VirtAddr) -> Option<(VirtAddr, Mapping)> {
        let pages = self.pages.borrow();
        pages.range(from.0..to.0.max(from.0)).next().map(|(page, mapping)| (VirtAddr(*page), *mapping))
    }
}
