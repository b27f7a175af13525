//! The births of all live routines, found by the unit in which a routine begins.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use machine::{NoFrames, PAGE_BYTES, TryGrow};

use crate::birth::Birth;
use crate::places::UNIT;
use crate::store::Live;

const PAGE_UNITS: usize = PAGE_BYTES / UNIT;

/// One word for each unit, a page of code at a time, so that growing never copies.
#[allow(clippy::vec_box, reason = "pages of births stay where they are when the list of pages grows")]
pub struct Births {
    pages: Vec<Box<[Weak<Live>; PAGE_UNITS]>>,
    count: usize,
    /// Units of the largest routine so far: how far its beginning can lie before an address inside it.
    largest: usize,
}

impl Births {
    pub const fn new() -> Births {
        Births { pages: Vec::new(), count: 0, largest: 0 }
    }

    /// Pages of code that have room for births.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Error: there is no memory for a longer list of pages.
    pub fn prepare_page(&mut self) -> Result<(), NoFrames> {
        self.pages.room_for(1).map_err(|_| NoFrames)
    }

    /// After `prepare_page`.
    pub fn add_page(&mut self) {
        self.pages.push(Box::new([const { Weak::new() }; PAGE_UNITS]));
    }

    /// Notes a routine of `units` units whose first is `unit`.
    pub fn insert(&mut self, unit: usize, units: usize, live: Weak<Live>) {
        self.pages[unit / PAGE_UNITS][unit % PAGE_UNITS] = live;
        self.count += 1;
        self.largest = self.largest.max(units);
    }

    pub fn remove(&mut self, unit: usize) {
        self.pages[unit / PAGE_UNITS][unit % PAGE_UNITS] = Weak::new();
        self.count -= 1;
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Shows the birth of the routine that contains `address`, which lies in unit `unit`.
    pub fn with<R>(&self, unit: usize, address: u64, see: impl FnOnce(&Arc<Live>) -> R) -> Option<R> {
        let first = (unit + 1).saturating_sub(self.largest);
        let live = (first..=unit).rev().find_map(|unit| self.at(unit)?.upgrade())?;
        live.birth.contains(address).then(|| see(&live))
    }

    fn at(&self, unit: usize) -> Option<&Weak<Live>> {
        self.pages.get(unit / PAGE_UNITS).map(|page| &page[unit % PAGE_UNITS])
    }

    /// Shows the births from unit `first` on, by address, until `see` says that it has seen enough.
    pub fn each_from(&self, first: usize, mut see: impl FnMut(&Birth) -> bool) {
        let pages = self.pages.iter().enumerate().skip(first / PAGE_UNITS);
        let all = pages
            .flat_map(|(page, units)| units[if page == first / PAGE_UNITS { first % PAGE_UNITS } else { 0 }..].iter());
        let _ = all.filter_map(Weak::upgrade).all(|live| see(&live.birth));
    }
}
