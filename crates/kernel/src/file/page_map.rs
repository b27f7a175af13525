//! Where a file's pages are, for machine code: the executable data structure (S-97) that a routine follows from a position in a
//! file to the bytes.
//!
//! ```text
//!   position ─► leaf (256 KiB each) ─► entry (page of the leaf) ─► address of the page's bytes
//! ```
//! A leaf is made when Rust has moved bytes there for a file that has routines, and says from then on about all of its pages
//! where they are: 0 for a hole. A file that is read once has none.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use machine::{FrameNumber, Machine, TryGrow, try_box};

/// Pages of a leaf.
pub const LEAF_PAGES: u64 = 64;
/// Most leaves of a file: 16 GiB of it. What lies behind is done in Rust.
const LEAVES_MAX: u64 = 1 << 16;

type Leaf = [u64; LEAF_PAGES as usize];

/// What stands in the directory for a leaf that is not there: nothing but holes.
static NO_LEAF: Leaf = [0; LEAF_PAGES as usize];

/// Invariants: a leaf that is there has the address of each page that is in the file, and 0 for each that is not. `directory` has
/// the address of each leaf, of `NO_LEAF` where there is none.
pub struct PageMap {
    machine: &'static dyn Machine,
    leaves: Vec<Option<Box<Leaf>>>,
    directory: Vec<u64>,
}

impl PageMap {
    pub fn new(machine: &'static dyn Machine) -> PageMap {
        PageMap { machine, leaves: Vec::new(), directory: Vec::new() }
    }

    /// Address of the leaves' addresses, and how many there are: both move when a leaf comes.
    pub fn directory(&self) -> (u64, u64) {
        (self.directory.as_ptr() as u64, self.directory.len() as u64)
    }

    /// The pages of the leaf of page `index`, if it has to be made.
    pub fn missing_leaf(&self, index: u64) -> Option<Range<u64>> {
        let leaf = index / LEAF_PAGES;
        let is_there = leaf >= LEAVES_MAX || self.leaves.get(leaf as usize).is_some_and(Option::is_some);
        (!is_there).then(|| leaf * LEAF_PAGES..(leaf + 1) * LEAF_PAGES)
    }

    /// Makes the leaf that starts at page `start`, all holes. False without memory for it.
    pub fn add_leaf(&mut self, start: u64) -> bool {
        let leaf = (start / LEAF_PAGES) as usize;
        let none = (&raw const NO_LEAF) as u64;
        let has_room = leaf < self.directory.len()
            || self.leaves.try_resize(leaf + 1, None).is_ok() && self.directory.try_resize(leaf + 1, none).is_ok();
        let made = has_room.then(|| try_box([0; LEAF_PAGES as usize]).ok()).flatten();
        let Some(made) = made else { return false };
        self.directory[leaf] = (&raw const *made) as u64;
        self.leaves[leaf] = Some(made);
        true
    }

    /// A page of the file is there now.
    pub fn set(&mut self, index: u64, frame: FrameNumber) {
        let address = self.machine.frame_address(frame);
        if let Some(Some(leaf)) = self.leaves.get_mut((index / LEAF_PAGES) as usize) {
            leaf[(index % LEAF_PAGES) as usize] = address;
        }
    }

    /// These pages have left the file.
    pub fn remove(&mut self, pages: Range<u64>) {
        let first = pages.start / LEAF_PAGES;
        let end = pages.end.div_ceil(LEAF_PAGES).min(self.directory.len() as u64);
        for number in first..end {
            let start = number * LEAF_PAGES;
            let gone = pages.start.saturating_sub(start)..(pages.end - start).min(LEAF_PAGES);
            let slot = &mut self.leaves[number as usize];
            match slot {
                Some(_) if gone == (0..LEAF_PAGES) => {
                    self.directory[number as usize] = (&raw const NO_LEAF) as u64;
                    *slot = None;
                }
                Some(leaf) => leaf[gone.start as usize..gone.end as usize].fill(0),
                None => {}
            }
        }
    }
}
