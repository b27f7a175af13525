//! Where an object is in a list: open addressing, a third of the places free, no tombstones.

use alloc::vec;
use alloc::vec::Vec;

/// A table from object to place. `u32::MAX` is no object.
#[derive(Clone, Debug)]
pub struct Index {
    /// Object and place; a power of two of them.
    cells: Vec<(u32, u32)>,
    len: usize,
}

const FREE: u32 = u32::MAX;

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

impl Index {
    pub fn new() -> Index {
        Index { cells: vec![(FREE, 0); 8], len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The cell where the search for an object begins.
    fn start(&self, object: u32) -> usize {
        (object.wrapping_mul(0x9E37_79B1) >> (32 - self.cells.len().trailing_zeros())) as usize
    }

    fn cell(&self, object: u32) -> usize {
        let mut at = self.start(object);
        while self.cells[at].0 != object && self.cells[at].0 != FREE {
            at = (at + 1) & (self.cells.len() - 1);
        }
        at
    }

    pub fn get(&self, object: u32) -> Option<u32> {
        let (found, place) = self.cells[self.cell(object)];
        (found == object).then_some(place)
    }

    /// Sets the place of an object, known or not.
    pub fn set(&mut self, object: u32, place: u32) {
        let at = self.cell(object);
        let is_new = self.cells[at].0 == FREE;
        self.cells[at] = (object, place);
        if is_new {
            self.len += 1;
            if self.len * 3 > self.cells.len() * 2 {
                self.grow();
            }
        }
    }

    fn grow(&mut self) {
        let twice = vec![(FREE, 0); self.cells.len() * 2];
        let old = core::mem::replace(&mut self.cells, twice);
        for (object, place) in old.into_iter().filter(|(object, _)| *object != FREE) {
            let at = self.cell(object);
            self.cells[at] = (object, place);
        }
    }

    /// Takes an object out; those behind it move up, so that no search ends too early.
    pub fn remove(&mut self, object: u32) -> Option<u32> {
        let mut hole = self.cell(object);
        let (found, place) = self.cells[hole];
        if found != object {
            return None;
        }
        let mask = self.cells.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.cells[at].0;
            if next == FREE {
                break;
            }
            // It may fill the hole only if its search passes there.
            if (at.wrapping_sub(self.start(next)) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
        }
        self.cells[hole] = (FREE, 0);
        self.len -= 1;
        Some(place)
    }

    pub fn clear(&mut self) {
        *self = Index::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use means::Random;

    #[test]
    fn it_agrees_with_a_map() {
        let mut random = Random::new(7);
        let (mut index, mut map) = (Index::new(), BTreeMap::new());
        for _ in 0..200_000 {
            let object = random.below(400) as u32 * 8191;
            match random.below(3) {
                0 => assert_eq!(index.remove(object), map.remove(&object)),
                1 => assert_eq!(index.get(object), map.get(&object).copied()),
                _ => {
                    let place = random.bits() as u32;
                    index.set(object, place);
                    map.insert(object, place);
                }
            }
            assert_eq!(index.len(), map.len());
        }
    }
}
