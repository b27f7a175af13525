//! Where routines lie: a bump pointer and free lists by size, in units of one cache line, so that
//! no two routines share a line and a retired one cannot be fetched with its neighbour.

use alloc::vec::Vec;

use machine::Sorted;

pub const UNIT: usize = 64;
/// Sizes in units below this have a list each: nearly every routine.
const SMALL: usize = 16;

pub struct Places {
    next: usize,
    small: [Vec<usize>; SMALL],
    large: Sorted<usize, Vec<usize>>,
}

impl Places {
    pub const fn new() -> Places {
        Places { next: 0, small: [const { Vec::new() }; SMALL], large: Sorted::new() }
    }

    /// An offset for `units` units, below `capacity` units.
    pub fn take(&mut self, units: usize, capacity: usize) -> Option<usize> {
        let free = if units < SMALL { self.small[units].pop() } else { self.large.get_mut(&units).and_then(Vec::pop) };
        if free.is_some() {
            return free;
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
        let small = (units + 1..SMALL).find_map(|size| self.small[size].pop().map(|offset| (size, offset)));
        let (size, offset) = small.or_else(|| {
            let (size, list) = self.large.split_mut(&units)[1].iter_mut().find(|(_, list)| !list.is_empty())?;
            list.pop().map(|offset| (*size, offset))
        })?;
        self.give(offset + units, size - units);
        Some(offset)
    }

    pub fn give(&mut self, offset: usize, units: usize) {
        if units < SMALL {
            self.small[units].push(offset);
        } else {
            self.large.get_or_insert(units, Vec::new).push(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_cut() {
        let mut places = Places::new();
        assert_eq!(places.take(3, 40), Some(0));
        assert_eq!(places.take(20, 40), Some(3));
        assert_eq!(places.take(17, 40), Some(23));
        assert_eq!(places.take(1, 40), None);
        places.give(3, 20);
        assert_eq!(places.take(20, 40), Some(3));
        places.give(3, 20);
        assert_eq!(places.take(5, 40), Some(3));
        assert_eq!(places.take(14, 40), Some(8));
        assert_eq!(places.take(1, 40), Some(22));
        assert_eq!(places.take(1, 40), None);
        places.give(0, 3);
        assert_eq!(places.take(2, 40), Some(0));
        assert_eq!(places.take(1, 40), Some(2));
    }
}
