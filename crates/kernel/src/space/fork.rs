//! Copy-on-write duplication (fork).

use alloc::sync::Arc;

use machine::{KernelValue, Translation};

use super::Space;
use super::area::{Area, AtFork};
use super::pages::Pages;
use super::place::Search;

/// No frame was left for the child's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

impl Space {
    /// A child with the same areas. Private pages are shared until one side writes; shared areas
    /// stay shared; areas without own pages (program text) are left to the child's faults, since
    /// most children execute another program soon. Both sides lose write access to the shared
    /// pages here, so the parent's cached translations must not be used after this.
    ///
    /// On failure the child's part is undone, and the parent gets its write access back by faults.
    pub fn fork(&mut self, translation: Arc<dyn Translation>) -> Result<Space, NoMemory> {
        let mut areas = self.areas.try_clone().map_err(|_| NoMemory)?;
        areas.values_mut().for_each(|area| area.is_locked = false);
        let mut child = Space {
            areas,
            pages: Pages::new(self.pages.pool, translation),
            limits: self.limits,
            mmap_base: self.mmap_base,
            // Areas that the child does not get leave room.
            search: KernelValue::new(Search::new()),
            brk: self.brk,
            stack_top: self.stack_top,
            total_bytes: self.total_bytes,
            total_bytes_peak: self.total_bytes,
            data_bytes: self.data_bytes,
            stack_bytes: self.stack_bytes,
            locks_future: None,
        };
        let mut has_omitted = false;
        for (&start, area) in self.areas.iter() {
            has_omitted |= area.at_fork == AtFork::Omit;
            if area.shares_pages_at_fork() {
                // A failure drops the child, which gives back what it has so far.
                self.pages.share_with(&mut child.pages, start, area.end).map_err(|_| NoMemory)?;
            }
        }
        if has_omitted {
            child.remove_omitted();
        }
        Ok(child)
    }

    fn remove_omitted(&mut self) {
        let omitted = |(_, area): &(&u64, &Area)| area.at_fork == AtFork::Omit;
        loop {
            let next = self.areas.iter().find(omitted).map(|(&start, _)| start);
            let Some(start) = next else { return };
            if let Some(area) = self.areas.remove(&start) {
                self.count_out(start, &area);
            }
        }
    }
}

impl Area {
    fn shares_pages_at_fork(&self) -> bool {
        self.at_fork == AtFork::Share && self.has_copies && !self.kind.is_shared()
    }
}
