//! The present pages of a quaspace: every change of its translation goes through here, so each
//! mapped frame always holds exactly one reference, and the resident count is right.

use alloc::sync::Arc;

use machine::{Change, FrameNumber, Mapping, NoFrames, Protection, Shown, Translation, VirtAddr};

use super::area::{Area, Kind};
use super::limits::{FORK_COPIES_MAX, FORKS_UNTIL_SHARED, PAGE};
use super::{Coming, FramePool, Page};

pub(super) struct Pages {
    pub pool: &'static FramePool,
    pub translation: Arc<dyn Translation>,
    /// Present pages, without those that show the zero page.
    pub resident: u64,
    pub resident_peak: u64,
    /// What the last fault waits for.
    pub awaited: Option<Coming>,
    /// Copies that were made of it.
    pub forks: u32,
}

impl Pages {
    pub fn new(pool: &'static FramePool, translation: Arc<dyn Translation>) -> Pages {
        Pages { pool, translation, resident: 0, resident_peak: 0, awaited: None, forks: 0 }
    }

    pub fn query(&self, page: u64) -> Option<Mapping> {
        self.translation.query(VirtAddr(page))
    }

    /// The first present page in `from..to`.
    pub fn next_present(&self, from: u64, to: u64) -> Option<(u64, Mapping)> {
        if from >= to {
            return None;
        }
        self.translation.next_present(VirtAddr(from), VirtAddr(to)).map(|(page, mapping)| (page.0, mapping))
    }

    /// Maps an absent page.
    pub fn fill(&mut self, page: u64, contents: Page, protection: Protection) -> Result<(), NoFrames> {
        self.translation.map(VirtAddr(page), contents.frame(), protection)?;
        self.count_in(u64::from(!self.pool.is_zero_frame(contents.into_raw())));
        Ok(())
    }

    /// As `fill` for pages that bring a reference each. On failure those that did not come in are given up.
    pub fn fill_all(&mut self, pages: &[Shown]) -> Result<(), NoFrames> {
        let (mapped, left) = pages.split_at(self.translation.map_all(pages));
        let zeros = self.pool.zero_frame();
        self.count_in(mapped.iter().filter(|shown| Some(shown.frame) != zeros).count() as u64);
        left.iter().for_each(|shown| self.pool.give_up(shown.frame));
        if left.is_empty() { Ok(()) } else { Err(NoFrames) }
    }

    /// Maps another frame where `old` is present, and gives up the reference to `old`.
    pub fn replace(&mut self, page: u64, old: Mapping, contents: Page, rights: Protection) -> Result<(), NoFrames> {
        self.fill(page, contents, rights)?;
        self.give_up(old.frame);
        Ok(())
    }

    pub fn protect(&self, page: u64, protection: Protection) {
        self.translation.protect(VirtAddr(page), protection);
    }

    /// Unmaps all pages in `from..to`. Absent tables cost nothing.
    pub fn release(&mut self, from: u64, to: u64) {
        let (pool, resident) = (self.pool, &mut self.resident);
        self.translation.unmap_all(VirtAddr(from), VirtAddr(to), &mut |frames| *resident -= pool.give_up_all(frames));
    }

    /// Unmaps those pages in `from..to` that are the frames which `source` names for them.
    pub fn release_shown(&mut self, from: u64, to: u64, source: impl Fn(u64) -> Option<FrameNumber>) {
        let mut at = from;
        while let Some((page, mapping)) = self.next_present(at, to) {
            at = page + PAGE;
            if source(page) == Some(mapping.frame) {
                self.release(page, at);
            }
        }
    }

    /// Gives the present pages in `from..to` the rights of `area`, which has just changed.
    pub fn reprotect(&self, area: &Area, from: u64, to: u64) {
        let granted = area.granted();
        self.translation.visit(VirtAddr(from), VirtAddr(to), &mut |_, mapping| {
            let write = granted.write && self.may_write_at_once(area, mapping);
            let protection = Protection { write, ..granted };
            if protection == mapping.protection { Change::Keep } else { Change::Protect(protection) }
        });
    }

    /// A page of an area that is becoming writable needs no fault before the first write.
    fn may_write_at_once(&self, area: &Area, mapping: Mapping) -> bool {
        match area.kind {
            Kind::SharedAnonymous(_) => true,
            // The backing is told of the first write by a fault.
            Kind::FileShared(_) => mapping.protection.write,
            _ => area.has_copies && !self.pool.is_shared(mapping.frame),
        }
    }

    /// Moves the present pages of `from..from + bytes` to `to`, without copying a byte. Both the
    /// frames and their rights move. On failure nothing has moved.
    pub fn relocate(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), NoFrames> {
        // All new entries first: only they can fail, and taking them back cannot.
        let mut at = from;
        while let Some((page, mapping)) = self.next_present(at, from + bytes) {
            let target = page - from + to;
            if self.translation.map(VirtAddr(target), mapping.frame, mapping.protection).is_err() {
                self.forget(to, target);
                return Err(NoFrames);
            }
            at = page + PAGE;
        }
        self.forget(from, from + bytes);
        Ok(())
    }

    /// Unmaps pages whose references now belong to other entries.
    fn forget(&self, from: u64, to: u64) {
        self.translation.unmap_all(VirtAddr(from), VirtAddr(to), &mut |_| {});
    }

    /// Shows the pages of `from..to` in `child` too, read-only on both sides. On failure the
    /// pages shared so far stay shared; the caller drops the child.
    pub fn share_with(&mut self, child: &mut Pages, from: u64, to: u64) -> Result<(), NoFrames> {
        if self.is_copied_at_fork(from, to) {
            return self.copy_written(child, from, to);
        }
        let (pool, mut result) = (self.pool, Ok(()));
        self.translation.write_protect(VirtAddr(from), VirtAddr(to), &mut |shown| {
            pool.share_all(shown);
            result = child.fill_all(shown);
            result.is_ok()
        });
        result
    }

    /// Where faults are dear: the parent may write so few of these pages, those that it wrote since a fork before, that both will. Now and
    /// then all are shared, which shows again what it writes.
    fn is_copied_at_fork(&self, from: u64, to: u64) -> bool {
        if self.translation.ahead_pages() <= 1 || self.forks % FORKS_UNTIL_SHARED == 1 || !self.pool.has_plenty() {
            return false;
        }
        let mut written = 0;
        self.translation.visit(VirtAddr(from), VirtAddr(to), &mut |_, mapping| {
            written += u64::from(mapping.protection.write);
            Change::Keep
        });
        written <= FORK_COPIES_MAX
    }

    /// Gives `child` copies of the pages of `from..to` that may be written, and shares the others with it.
    fn copy_written(&mut self, child: &mut Pages, from: u64, to: u64) -> Result<(), NoFrames> {
        let (pool, mut result) = (self.pool, Ok(()));
        self.translation.visit(VirtAddr(from), VirtAddr(to), &mut |page, Mapping { frame, protection, .. }| {
            if result.is_ok() {
                let shown = pool.share(frame);
                let contents = if protection.write { shown.duplicate() } else { Some(shown) };
                result = contents.ok_or(NoFrames).and_then(|contents| child.fill(page.0, contents, protection));
            }
            Change::Keep
        });
        result
    }

    fn count_in(&mut self, pages: u64) {
        self.resident += pages;
        self.resident_peak = self.resident_peak.max(self.resident);
    }

    fn give_up(&mut self, frame: FrameNumber) {
        if !self.pool.is_zero_frame(frame) {
            self.resident -= 1;
        }
        self.pool.give_up(frame);
    }
}
