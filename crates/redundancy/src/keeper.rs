//! The copies of one node: what is kept, how it is used, and what should go first.

use alloc::vec;
use alloc::vec::Vec;

use crate::usage::{HalfLife, Usage};
use crate::valued::ObjectId;
use crate::{Index, mutant};

/// A copy that a node keeps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Kept {
    pub object: ObjectId,
    pub bytes: u32,
    /// How the node itself uses it.
    pub usage: Usage,
    /// Reads that only this node knows of yet.
    pub unreported: u8,
}

/// What should go first, of those that were looked at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Victim {
    pub object: ObjectId,
    pub bytes: u32,
    /// Its value in seconds per second and byte.
    pub density: f32,
}

/// The copies of one node. Values change with time and with what other nodes do, so no order is kept: who needs room looks at
/// some copies at random and takes the least valuable (as Redis and LHD do).
#[derive(Clone, Debug)]
pub struct Keeper {
    kept: Vec<Kept>,
    index: Index,
    random: u32,
}

impl Keeper {
    /// `seed`: of the choice of those that are looked at.
    pub fn new(seed: u32) -> Keeper {
        Keeper { kept: Vec::new(), index: Index::new(), random: seed.wrapping_mul(0x9E37_79B9) | 1 }
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.kept.iter()
    }

    pub fn get(&self, object: ObjectId) -> Option<&Kept> {
        self.kept.get(self.index.get(object)? as usize)
    }

    pub fn get_mut(&mut self, object: ObjectId) -> Option<&mut Kept> {
        self.kept.get_mut(self.index.get(object)? as usize)
    }

    pub fn insert(&mut self, kept: Kept) {
        debug_assert!(self.index.get(kept.object).is_none());
        self.index.set(kept.object, self.kept.len() as u32);
        self.kept.push(kept);
    }

    pub fn remove(&mut self, object: ObjectId) -> Option<Kept> {
        let place = self.index.remove(object)? as usize;
        let gone = self.kept.swap_remove(place);
        if let Some(moved) = self.kept.get(place) {
            self.index.set(moved.object, place as u32);
        }
        Some(gone)
    }

    pub fn clear(&mut self) {
        self.kept.clear();
        self.index.clear();
    }

    /// The next random number (xorshift, G. Marsaglia 2003), below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        ((u64::from(self.random) * limit as u64) >> 32) as usize
    }

    /// The least valuable of `samples` copies, or of all when there are not many more; of those whose `density` is given.
    pub fn victim(&mut self, samples: usize, mut density: impl FnMut(&Kept) -> Option<f32>) -> Option<Victim> {
        let mut least: Option<Victim> = None;
        let all = self.kept.len() <= samples * 2;
        for turn in 0..if all { self.kept.len() } else { samples } {
            let place = if all { turn } else { self.below(self.kept.len()) };
            let kept = &self.kept[place];
            let Some(density) = density(kept) else { continue };
            let is_less = least.is_none_or(|least| (density < least.density) != mutant::is("keeper.victim"));
            if is_less {
                least = Some(Victim { object: kept.object, bytes: kept.bytes, density });
            }
        }
        least
    }
}

/// What a node remembers of objects that it reads and does not keep: a table in which a newcomer displaces.
#[derive(Clone, Debug)]
pub struct Ghosts {
    cells: Vec<(ObjectId, Usage)>,
}

impl Ghosts {
    /// For at least so many objects.
    pub fn new(objects: usize) -> Ghosts {
        Ghosts { cells: vec![(ObjectId::MAX, Usage::default()); objects.next_power_of_two()] }
    }

    fn cell(&self, object: ObjectId) -> usize {
        ((u64::from(object.wrapping_mul(0x85EB_CA6B)) * self.cells.len() as u64) >> 32) as usize
    }

    /// How the node used an object, as far as it remembers.
    pub fn usage(&self, object: ObjectId) -> Usage {
        let (known, usage) = self.cells[self.cell(object)];
        if known == object { usage } else { Usage::default() }
    }

    /// Remembers. What is used more now displaces what is used less.
    pub fn remember(&mut self, object: ObjectId, usage: Usage, now: f32, half_life: HalfLife) {
        let cell = self.cell(object);
        let (known, there) = self.cells[cell];
        let rate = |usage: Usage| usage.at(now, half_life).reads_per_second(half_life);
        if known == object || known == ObjectId::MAX || rate(usage) >= rate(there) {
            self.cells[cell] = (object, usage);
        }
    }

    pub fn clear(&mut self) {
        self.cells.fill((ObjectId::MAX, Usage::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(object: ObjectId) -> Kept {
        Kept { object, bytes: 1, usage: Usage::default(), unreported: 0 }
    }

    #[test]
    fn the_least_valuable_goes() {
        let mut keeper = Keeper::new(1);
        (0..20).for_each(|object| keeper.insert(kept(object)));
        let victim = keeper.victim(10, |kept| Some((kept.object as f32 - 7.0).abs())).unwrap();
        assert_eq!(victim.object, 7);
        let other = keeper.victim(10, |kept| (kept.object != 7).then_some((kept.object as f32 - 7.2).abs())).unwrap();
        assert_eq!(other.object, 8);
    }

    #[test]
    fn few_looks_find_one_of_the_worst() {
        let mut keeper = Keeper::new(3);
        (0..1000).for_each(|object| keeper.insert(kept(object)));
        let mean =
            (0..1000).map(|_| keeper.victim(16, |kept| Some(kept.object as f32)).unwrap().object).sum::<u32>() / 1000;
        // The least of 16 of 1,000 is 1,000 / 17 in the mean.
        assert!((45..75).contains(&mean), "{mean}");
    }

    #[test]
    fn what_is_removed_is_not_found() {
        let mut keeper = Keeper::new(5);
        (0..100).for_each(|object| keeper.insert(kept(object)));
        (0..100).step_by(3).for_each(|object| assert_eq!(keeper.remove(object).unwrap().object, object));
        for object in 0..100 {
            assert_eq!(keeper.get(object).map(|kept| kept.object), (object % 3 != 0).then_some(object));
        }
    }
}
