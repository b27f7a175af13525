//! Where routines lie: a bump pointer and free lists by size, in units of one cache line, so that
//! no two routines share a line and a retired one cannot be fetched with its neighbour.

use alloc::vec::Vec;

use machine::{Sorted, TryGrow};

pub const UNIT: usize = 64;
/// Sizes in units below this have a list each: nearly every routine.
const SMALL: usize = 16;

/// Places of one size. Room is kept for all that there are: a routine that goes must not need memory.
struct Size {
    free: Vec<usize>,
    places: usize,
}

impl Size {
    const fn new() -> Size {
        Size { free: Vec::new(), places: 0 }
    }

    /// Room for one place more; `None`: there is no memory for it.
    fn prepare(&mut self) -> Option<()> {
        self.free.room_for(self.places + 1 - self.free.len()).ok()
    }
}

pub struct Places {
    next: usize,
    small: [Size; SMALL],
    large: Sorted<usize, Size>,
}

impl Places {
    pub const fn new() -> Places {
        Places { next: 0, small: [const { Size::new() }; SMALL], large: Sorted::new() }
    }

    fn size(&mut self, units: usize) -> &mut Size {
        if units < SMALL { &mut self.small[units] } else { self.large.get_or_insert(units, Size::new) }
    }

    /// An offset for `units` units, below `capacity` units. `None`: there is no room, or no memory to note the place.
    pub fn take(&mut self, units: usize, capacity: usize) -> Option<usize> {
        let size = self.size(units);
        if let Some(free) = size.free.pop() {
            return Some(free);
        }
        size.prepare()?;
        let offset = self.next;
        if offset + units > capacity {
            return self.split(units);
        }
        self.size(units).places += 1;
        self.next += units;
        Some(offset)
    }

    /// Cuts a larger free place.
    fn split(&mut self, units: usize) -> Option<usize> {
        let small = (units + 1..SMALL).find(|size| !self.small[*size].free.is_empty());
        let large = || {
            let [_, larger] = self.large.split_mut(&units);
            larger.iter().find(|(_, size)| !size.free.is_empty()).map(|(size, _)| *size)
        };
        let size = small.or_else(large)?;
        self.size(size - units).prepare()?;
        let whole = self.size(size);
        let offset = whole.free.pop()?;
        whole.places -= 1;
        self.size(units).places += 1;
        self.size(size - units).places += 1;
        self.give(offset + units, size - units);
        Some(offset)
    }

    /// Needs no memory.
    pub fn give(&mut self, offset: usize, units: usize) {
        self.size(units).free.push(offset);
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

    #[test]
    fn there_is_room_for_all_places_to_come_back() {
        let mut places = Places::new();
        let taken: Vec<_> =
            (0..100).map(|number| (places.take(1 + number % 20, 4096).unwrap(), 1 + number % 20)).collect();
        for (offset, units) in taken {
            let room = places.size(units).free.capacity();
            places.give(offset, units);
            assert_eq!(places.size(units).free.capacity(), room, "{units} units");
        }
    }
}
