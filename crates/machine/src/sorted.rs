//! A map for few entries: a list in the order of keys, searched by bisection.
//!
//! Beside a B-tree it takes a tenth of the code, which counts once per type of entry. Adding and removing move what
//! lies behind: for maps of a few hundred entries, or ones that are walked in whole more often than they change.

use alloc::vec::Vec;

use crate::grow::{NoMemory, TryGrow};

/// Values by key. Invariant: keys rise, each is there once.
#[derive(Clone, Debug)]
pub struct Sorted<K, V> {
    entries: Vec<(K, V)>,
}

impl<K: Ord, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted::new()
    }
}

impl<K: Ord, V> Sorted<K, V> {
    /// An empty map.
    pub const fn new() -> Sorted<K, V> {
        Sorted { entries: Vec::new() }
    }

    /// All entries, in the order of keys.
    pub fn entries(&self) -> &[(K, V)] {
        &self.entries
    }

    /// Entries up to and with `key`, and those behind it.
    pub fn split_mut(&mut self, key: &K) -> [&mut [(K, V)]; 2] {
        let place = self.place(key).map_or_else(|place| place, |place| place + 1);
        self.entries.split_at_mut(place).into()
    }

    /// The value at a place among [`Sorted::entries`].
    pub fn at_mut(&mut self, place: usize) -> Option<&mut V> {
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.place(key).ok().map(|place| &self.entries[place].1)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.place(key).ok().map(|place| &mut self.entries[place].1)
    }

    /// Makes sure that so many more can be `put`.
    pub fn room_for(&mut self, more: usize) -> Result<(), NoMemory> {
        self.entries.room_for(more)
    }

    /// Sets the value of `key`, into room that was asked for. The one it had before.
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(core::mem::replace(&mut self.entries[place].1, value)),
            Err(place) => {
                self.entries.put_at(place, (key, value));
                None
            }
        }
    }

    /// The value of `key`; if there is none, a new one.
    pub fn get_or_insert(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&key).unwrap_or_else(|place| {
            self.entries.insert(place, (key, make()));
            place
        });
        &mut self.entries[place].1
    }

    /// Sets the value of `key`. The one it had before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(core::mem::replace(&mut self.entries[place].1, value)),
            Err(place) => {
                self.entries.insert(place, (key, value));
                None
            }
        }
    }

    /// The value of `key`; if there is none, a new one.
    pub fn try_get_or_insert(&mut self, key: K, make: impl FnOnce() -> V) -> Result<&mut V, NoMemory> {
        let place = match self.place(&key) {
            Ok(place) => place,
            Err(place) => {
                self.entries.room_for(1)?;
                self.entries.insert(place, (key, make()));
                place
            }
        };
        Ok(&mut self.entries[place].1)
    }

    /// Sets the value of `key`. The one it had before.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, NoMemory> {
        match self.place(&key) {
            Ok(place) => Ok(Some(core::mem::replace(&mut self.entries[place].1, value))),
            Err(place) => self.entries.try_insert(place, (key, value)).map(|()| None),
        }
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.place(key).ok().map(|place| self.entries.remove(place).1)
    }

    /// Keeps the entries whose value `stays`.
    pub fn retain(&mut self, mut stays: impl FnMut(&V) -> bool) {
        self.entries.retain(|(_, value)| stays(value));
    }

    /// Takes out the values that are `wanted`, of keys from `first` to before `end`; those that are not asked for stay.
    pub fn extract(&mut self, first: &K, end: &K, mut wanted: impl FnMut(&V) -> bool) -> impl Iterator<Item = V> {
        let [first, end] = [first, end].map(|key| self.place(key).unwrap_or_else(|place| place));
        self.entries.extract_if(first..end.max(first), move |(_, value)| wanted(value)).map(|(_, value)| value)
    }

    fn place(&self, key: &K) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.cmp(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn a_sorted_map_agrees_with_a_tree() {
        let (mut random, mut sorted, mut tree) = (7u64, Sorted::new(), BTreeMap::new());
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = random >> 40 & 0x3F;
            match random >> 33 & 7 {
                0 | 1 => assert_eq!(sorted.remove(&key), tree.remove(&key)),
                2 | 3 => assert_eq!(sorted.try_insert(key, step), Ok(tree.insert(key, step))),
                4 if step % 2 == 0 => {
                    let taken: Vec<_> = sorted.extract(&key, &(key + 9), |value| value % 2 == 0).take(2).collect();
                    let found = tree.range(key..key + 9).filter(|(_, value)| *value % 2 == 0).take(2);
                    let found: Vec<_> = found.map(|(key, value)| (*key, *value)).collect();
                    tree.retain(|key, _| found.iter().all(|(taken, _)| taken != key));
                    assert_eq!(taken, found.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
                }
                4 => assert_eq!(sorted.try_get_or_insert(key, || step), Ok(tree.entry(key).or_insert(step))),
                5 => assert_eq!(sorted.get_mut(&key), tree.get_mut(&key)),
                6 => {
                    let mut upto: Vec<_> = tree.range(..=key).map(|(key, value)| (*key, *value)).collect();
                    let mut behind: Vec<_> = tree.range(key + 1..).map(|(key, value)| (*key, *value)).collect();
                    assert_eq!(sorted.split_mut(&key), [&mut upto[..], &mut behind[..]]);
                }
                _ => {
                    sorted.retain(|value| value % 3 != 0);
                    tree.retain(|_, value| *value % 3 != 0);
                }
            }
            assert_eq!(sorted.get(&key), tree.get(&key));
            assert_eq!(sorted.entries().len(), tree.len());
            let place = (key as usize).min(tree.len());
            assert_eq!(sorted.at_mut(place).copied(), tree.values().nth(place).copied());
        }
    }
}
