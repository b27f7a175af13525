//! Copy-on-write duplication (fork).

use alloc::sync::Arc;
use core::ops::Bound;

use machine::{KernelValue, Translation};

use super::Space;
use super::area::{Area, AtFork};
use super::pages::Pages;
use super::place::Search;

/// No frame was left for the child's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

impl Space {
    /// A child with the same areas, and with the pages that [`Space::share_some`] gives it until there are no more.
    ///
    /// Private pages are shared until one side writes; shared areas stay shared; areas without own pages (program text) are
    /// left to the child's faults, since most children execute another program soon.
    pub fn fork(&mut self, translation: Arc<dyn Translation>) -> Result<Space, NoMemory> {
        if !self.may_be_copied() {
            return Err(NoMemory);
        }
        let mut areas = self.areas.try_clone().map_err(|_| NoMemory)?;
        self.pages.forks = self.pages.forks.wrapping_add(1);
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
            charged_bytes: self.charged_bytes,
            locks_future: None,
        };
        self.pages.pool.rules.charge(self.charged_bytes);
        if self.areas.iter().any(|(_, area)| area.at_fork == AtFork::Omit) {
            child.remove_omitted();
        }
        Ok(child)
    }

    /// Shares the private pages that are there from `from` on with `child`, at most `bytes` of addresses; where to go on, `None`: all
    /// are shared. Both sides lose write access to them, so the parent's cached translations must not be used after this.
    ///
    /// A failure has the caller drop the child, which gives back what it has; the parent gets its write access back by faults.
    pub fn share_some(&mut self, child: &mut Space, from: u64, bytes: u64) -> Result<Option<u64>, NoMemory> {
        let mut left = bytes;
        for (&start, area) in self.areas.downwards(&from).take(1).chain(self.areas.range(Bound::Excluded(&from))) {
            let start = start.max(from);
            if !area.shares_pages_at_fork() || start >= area.end {
                continue;
            }
            // What goes whole need not be looked through first.
            let is_whole = area.end - start <= left;
            let first =
                if is_whole { Some(start) } else { self.pages.next_present(start, area.end).map(|(page, _)| page) };
            let Some(first) = first else { continue };
            let end = area.end.min(first.saturating_add(left));
            self.pages.share_with(&mut child.pages, first, end).map_err(|_| NoMemory)?;
            left -= end - first;
            if left == 0 {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// All of it, in parts of three pages.
    #[cfg(test)]
    pub fn fork_whole(&mut self, translation: Arc<dyn Translation>) -> Result<Space, NoMemory> {
        let mut child = self.fork(translation)?;
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.share_some(&mut child, from, 3 * machine::PAGE_BYTES as u64)?;
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
