//! Pages by number: those of a file, or of shared memory.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use machine::TryGrow;

use super::Page;

const FANOUT_BITS: u32 = 6;
const FANOUT: usize = 1 << FANOUT_BITS;

/// A radix tree of pages with a fan-out of 64. It is only as high as its highest page needs: a file
/// of one page is that page alone, 64 pages have one table, and a page at 2^51 - 1 costs nine
/// tables. Holes cost nothing. Page numbers are below 2^54.
///
/// Invariant: pages hang only at level 0, inner tables only above it.
pub(crate) struct PageTree {
    root: Slot,
    height: u32,
    pages: u64,
}

enum Slot {
    Empty,
    Page(Page),
    Inner(Box<[Slot; FANOUT]>),
}

/// The kernel's heap had no room for a table.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl PageTree {
    pub(crate) const fn new() -> PageTree {
        PageTree { root: Slot::Empty, height: 0, pages: 0 }
    }

    /// Pages present.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn get(&self, index: u64) -> Option<&Page> {
        if !self.reaches(index) {
            return None;
        }
        let mut slot = &self.root;
        for level in (0..self.height).rev() {
            let Slot::Inner(children) = slot else { return None };
            slot = &children[digit(index, level)];
        }
        if let Slot::Page(page) = slot { Some(page) } else { None }
    }

    /// Shows the pages of `range` in their order: one way down for each table.
    pub(crate) fn visit(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at | (FANOUT as u64 - 1)) + 1);
            match self.table_of(at) {
                Some(table) => {
                    let slots = &table[digit(at, 0)..];
                    for (index, slot) in (at..end).zip(slots) {
                        if let Slot::Page(page) = slot {
                            show(index, page);
                        }
                    }
                }
                None => self.get(at).into_iter().for_each(|page| show(at, page)),
            }
            at = end;
        }
    }

    /// The lowest table on the way to `index`, if there is one. Without any, page 0 is all there can be.
    fn table_of(&self, index: u64) -> Option<&[Slot; FANOUT]> {
        let mut slot = &self.root;
        for level in (1..self.height).rev() {
            let Slot::Inner(children) = slot else { return None };
            slot = &children[digit(index, level)];
        }
        match slot {
            Slot::Inner(table) if self.reaches(index) => Some(table),
            _ => None,
        }
    }

    /// Puts `page` at `index`, which must be a hole.
    pub(crate) fn insert(&mut self, index: u64, page: Page) -> Result<(), NoRoom> {
        while !self.reaches(index) {
            self.grow()?;
        }
        let mut slot = &mut self.root;
        for level in (0..self.height).rev() {
            if let Slot::Empty = slot {
                *slot = Slot::Inner(empty_table()?);
            }
            let Slot::Inner(children) = slot else { unreachable!("pages are only at level 0") };
            slot = &mut children[digit(index, level)];
        }
        debug_assert!(matches!(slot, Slot::Empty), "page {index} is present");
        *slot = Slot::Page(page);
        self.pages += 1;
        Ok(())
    }

    /// Drops all pages in `range`; returns how many there were.
    pub(crate) fn remove(&mut self, range: Range<u64>) -> u64 {
        let removed = remove_below(&mut self.root, self.height, 0, &range);
        self.pages -= removed;
        if let Slot::Empty = self.root {
            self.height = 0;
        }
        removed
    }

    /// The first page number from `from` on that has a page.
    pub(crate) fn next_page(&self, from: u64) -> Option<u64> {
        first_below(&self.root, self.height, 0, from)
    }

    fn reaches(&self, index: u64) -> bool {
        index >> (FANOUT_BITS * self.height) == 0
    }

    fn grow(&mut self) -> Result<(), NoRoom> {
        if !matches!(self.root, Slot::Empty) {
            let mut table = empty_table()?;
            table[0] = core::mem::replace(&mut self.root, Slot::Empty);
            self.root = Slot::Inner(table);
        }
        self.height += 1;
        Ok(())
    }
}

fn digit(index: u64, level: u32) -> usize {
    (index >> (FANOUT_BITS * level)) as usize % FANOUT
}

fn empty_table() -> Result<Box<[Slot; FANOUT]>, NoRoom> {
    let mut slots = Vec::new();
    slots.room_for_exact(FANOUT).map_err(|_| NoRoom)?;
    (0..FANOUT).for_each(|_| slots.put(Slot::Empty));
    slots.into_boxed_slice().try_into().map_err(|_| NoRoom)
}

/// Removes what `range` covers under `slot`, whose first page number is `base`. The recursion is as
/// deep as the tree is high, at most nine.
fn remove_below(slot: &mut Slot, level: u32, base: u64, range: &Range<u64>) -> u64 {
    let span = 1u64 << (FANOUT_BITS * level);
    if base >= range.end || base + span <= range.start {
        return 0;
    }
    match slot {
        Slot::Empty => 0,
        Slot::Page(_) => {
            *slot = Slot::Empty;
            1
        }
        Slot::Inner(children) => {
            let mut removed = 0;
            for (position, child) in children.iter_mut().enumerate() {
                let child_base = base + position as u64 * (span >> FANOUT_BITS);
                removed += remove_below(child, level - 1, child_base, range);
            }
            if children.iter().all(|child| matches!(child, Slot::Empty)) {
                *slot = Slot::Empty;
            }
            removed
        }
    }
}

fn first_below(slot: &Slot, level: u32, base: u64, from: u64) -> Option<u64> {
    let span = 1u64 << (FANOUT_BITS * level);
    if base + span <= from {
        return None;
    }
    match slot {
        Slot::Empty => None,
        Slot::Page(_) => Some(base),
        Slot::Inner(children) => children.iter().enumerate().find_map(|(position, child)| {
            first_below(child, level - 1, base + position as u64 * (span >> FANOUT_BITS), from)
        }),
    }
}
