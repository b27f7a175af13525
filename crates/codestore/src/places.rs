//! Where routines lie: a bump pointer and free lists by size, in units of one cache line, so that
//! no two routines share a line and a retired one cannot be fetched with its neighbour.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

pub const UNIT: usize = 64;

pub struct Places {
    next: usize,
    free: BTreeMap<usize, Vec<usize>>,
}

impl Places {
    pub const fn new() -> Places {
        Places { next: 0, free: BTreeMap::new() }
    }

    /// An offset for `units` units, below `capacity` units.
    pub fn take(&mut self, units: usize, capacity: usize) -> Option<usize> {
        if let Some(offset) = self.free.get_mut(&units).and_then(Vec::pop) {
            return Some(offset);
        }
        let offset = self.next;
        if offset + units > capacity {
            return self.split(units);
        }
        self.next += units;
        Some(offset)
    }

    /// Cuts a larger free place.
    fn split(&mut self, units: usize) -> Option<usize> {
        let (&size, list) = self.free.range_mut(units + 1..).find(|(_, list)| !list.is_empty())?;
        let offset = list.pop()?;
        self.give(offset + units, size - units);
        Some(offset)
    }

    pub fn give(&mut self, offset: usize, units: usize) {
        self.free.entry(units).or_default().push(offset);
    }
}
