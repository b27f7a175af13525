//! A map for many entries, made so that growing can fail: parts of a sorted list, each short enough to be moved.
//!
//! ```text
//!   parts ──► │ 3 7 9 │ ──► │ 12 20 │ ──► │ 31 40 44 │        keys rise from part to part
//! ```
//! The standard library's tree ends the kernel when there is no memory. Here a change moves one part, and now and then the
//! list of parts, which is a hundredth of the whole.

use alloc::vec::Vec;
use core::ops::Bound;

use crate::cell::KernelValue;
use crate::grow::{NoMemory, TryGrow, surely};

/// Entries of a part.
const PART_MOST: usize = 64;
/// Two neighbours of no more are put together.
const PART_LEAST: usize = PART_MOST / 4;

/// Values by key. Invariants: keys rise, each is there once; no part is empty.
#[derive(Clone, Debug)]
pub struct Ordered<K, V> {
    parts: Vec<Vec<(K, V)>>,
    count: usize,
    /// Where the last search for a neighbour ended: the next one often ends there too.
    near: KernelValue<(usize, usize)>,
}

impl<K: Ord, V> Default for Ordered<K, V> {
    fn default() -> Ordered<K, V> {
        Ordered::new()
    }
}

impl<K: Ord, V> Ordered<K, V> {
    /// An empty map.
    pub const fn new() -> Ordered<K, V> {
        Ordered { parts: Vec::new(), count: 0, near: KernelValue::new((0, 0)) }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The part where a key is or belongs, and its place there.
    fn place(&self, key: &K) -> (usize, Result<usize, usize>) {
        let part = match &self.parts[..] {
            [] => return (0, Err(0)),
            [_] => 0,
            parts => parts.partition_point(|part| part[0].0 <= *key).saturating_sub(1),
        };
        // Who came last goes first, mostly: numbers and times rise.
        let place = match &self.parts[part][..] {
            [.., (last, _)] if last < key => Err(self.parts[part].len()),
            [rest @ .., (last, _)] if last == key => Ok(rest.len()),
            entries => entries.binary_search_by(|(other, _)| other.cmp(key)),
        };
        (part, place)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        let (part, place) = self.place(key);
        place.ok().map(|place| &self.parts[part][place].1)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (part, place) = self.place(key);
        place.ok().map(|place| &mut self.parts[part][place].1)
    }

    /// Sets the value of `key`. The one it had before.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, NoMemory> {
        let (mut part, place) = self.place(&key);
        let mut place = match place {
            Ok(place) => return Ok(Some(core::mem::replace(&mut self.parts[part][place].1, value))),
            Err(place) => place,
        };
        match self.parts.get(part).map(Vec::len) {
            None => self.parts.try_push(Vec::new())?,
            // Keys that only rise fill the parts.
            Some(PART_MOST) if place == PART_MOST => {
                self.parts.try_insert(part + 1, Vec::new())?;
                (part, place) = (part + 1, 0);
            }
            Some(PART_MOST) => {
                self.split(part)?;
                if place > PART_MOST / 2 {
                    (part, place) = (part + 1, place - PART_MOST / 2);
                }
            }
            Some(_) => {}
        }
        let inserted = self.parts[part].try_insert(place, (key, value));
        if self.parts[part].is_empty() {
            self.parts.remove(part);
        }
        inserted?;
        self.count += 1;
        Ok(None)
    }

    /// The same where nobody can be told that there is no memory: it takes a part at most.
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        surely(|| self.try_insert(key, value)).expect("memory for a part")
    }

    /// The later half of a full part becomes a part of its own.
    fn split(&mut self, part: usize) -> Result<(), NoMemory> {
        let mut behind = Vec::new();
        behind.room_for(PART_MOST / 2 + 1)?;
        self.parts.room_for(1)?;
        behind.extend(self.parts[part].drain(PART_MOST / 2..));
        self.parts.insert(part + 1, behind);
        Ok(())
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (part, place) = self.place(key);
        let (_, value) = self.parts.get_mut(part)?.remove(place.ok()?);
        self.count -= 1;
        self.tidy(part);
        Some(value)
    }

    /// Removes the entries of `from..to`, and shows them as they go.
    pub fn remove_range(&mut self, from: &K, to: &K, mut gone: impl FnMut(&K, &V)) {
        let (mut part, place) = self.place(from);
        let mut place = place.unwrap_or_else(|place| place);
        while let Some(entries) = self.parts.get_mut(part) {
            let end = place + entries[place..].partition_point(|(key, _)| key < to);
            let is_last = end < entries.len();
            self.count -= end - place;
            entries.drain(place..end).for_each(|(key, value)| gone(&key, &value));
            if entries.is_empty() {
                self.parts.remove(part);
            } else {
                part += 1;
            }
            if is_last {
                break;
            }
            place = 0;
        }
        if let Some(before) = part.checked_sub(1).filter(|before| *before < self.parts.len()) {
            self.tidy(before);
        }
    }

    /// Keeps the entries whose value `stays`.
    pub fn retain(&mut self, mut stays: impl FnMut(&V) -> bool) {
        self.parts.iter_mut().for_each(|part| part.retain(|(_, value)| stays(value)));
        self.parts.retain(|part| !part.is_empty());
        self.count = self.parts.iter().map(Vec::len).sum();
    }

    /// After a removal.
    fn tidy(&mut self, part: usize) {
        if self.parts[part].is_empty() {
            self.parts.remove(part);
            return;
        }
        let Some([one, next]) = self.parts.get_mut(part..part + 2) else { return };
        if one.len() <= PART_LEAST && next.len() <= PART_LEAST && one.try_reserve(next.len()).is_ok() {
            one.append(next);
            self.parts.remove(part + 1);
        }
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        self.parts.first().and_then(|part| part.first()).map(|(key, value)| (key, value))
    }

    pub fn last(&self) -> Option<(&K, &V)> {
        self.parts.last()?.last().map(|(key, value)| (key, value))
    }

    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let part = self.parts.first_mut()?;
        let first = part.remove(0);
        self.count -= 1;
        self.tidy(0);
        Some(first)
    }

    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let part = self.parts.last_mut()?;
        let last = part.pop()?;
        self.count -= 1;
        if part.is_empty() {
            self.parts.pop();
        }
        Some(last)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flatten().map(|(key, value)| (key, value))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.parts.iter_mut().flatten().map(|(_, value)| value)
    }

    /// The part where the entries up to and with `key` end, and how many of them are in it: none only in the first.
    #[inline]
    fn upper(&self, key: &K) -> (usize, usize) {
        let (part, last) = self.near.get();
        if let Some([(one, _), (next, _)]) = self.parts.get(part).and_then(|part| part.get(last..last + 2))
            && one <= key
            && key < next
        {
            return (part, last + 1);
        }
        self.search_upper(key)
    }

    #[inline(never)]
    fn search_upper(&self, key: &K) -> (usize, usize) {
        let part = match &self.parts[..] {
            [] => return (0, 0),
            [_] => 0,
            parts => parts.partition_point(|part| part[0].0 <= *key).saturating_sub(1),
        };
        let count = self.parts[part].partition_point(|(other, _)| *other <= *key);
        self.near.set((part, count.saturating_sub(1)));
        (part, count)
    }

    /// The last entry up to and with `key`.
    #[inline]
    pub fn last_to(&self, key: &K) -> Option<(&K, &V)> {
        let (part, count) = self.upper(key);
        let (key, value) = self.parts.get(part)?.get(count.checked_sub(1)?)?;
        Some((key, value))
    }

    /// The same, to be changed.
    #[inline]
    pub fn last_to_mut(&mut self, key: &K) -> Option<(&K, &mut V)> {
        let (part, count) = self.upper(key);
        let (key, value) = self.parts.get_mut(part)?.get_mut(count.checked_sub(1)?)?;
        Some((&*key, value))
    }

    /// The first entry behind `key`.
    #[inline]
    pub fn first_behind(&self, key: &K) -> Option<(&K, &V)> {
        let (part, count) = self.upper(key);
        let (key, value) = self.parts.get(part)?.get(count).or_else(|| self.parts.get(part + 1)?.first())?;
        Some((key, value))
    }

    /// The last entry up to and with `key`, and the first behind it.
    #[inline]
    pub fn around(&self, key: &K) -> [Option<(&K, &V)>; 2] {
        let (part, count) = self.upper(key);
        let Some(here) = self.parts.get(part) else { return [None, None] };
        let next = here.get(count).or_else(|| self.parts.get(part + 1)?.first());
        [count.checked_sub(1).map(|last| &here[last]), next].map(|entry| entry.map(|(key, value)| (key, value)))
    }

    /// The entry of `key`, if it is there, and the one before it.
    #[inline]
    pub fn pair(&self, key: &K) -> Option<[(&K, &V); 2]> {
        let (part, count) = self.upper(key);
        let last = self.parts.get(part)?.get(count.checked_sub(1)?).filter(|(other, _)| other == key)?;
        let before = match count.checked_sub(2) {
            Some(before) => &self.parts[part][before],
            None => self.parts[part.checked_sub(1)?].last()?,
        };
        Some([before, last].map(|(key, value)| (key, value)))
    }

    /// The entries up to and with `key`, the last first.
    pub fn downwards<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (part, count) = self.upper(key);
        let (below, here) = match self.parts.split_at_checked(part) {
            Some((below, [here, ..])) => (below, &here[..count]),
            _ => (&[][..], &[][..]),
        };
        here.iter().rev().chain(below.iter().rev().flat_map(|part| part.iter().rev())).map(|(key, value)| (key, value))
    }

    /// The same map once more.
    pub fn try_clone(&self) -> Result<Ordered<K, V>, NoMemory>
    where
        K: Clone,
        V: Clone,
    {
        let mut parts = Vec::new();
        parts.room_for_exact(self.parts.len())?;
        for part in &self.parts {
            let mut copy = Vec::new();
            copy.room_for_exact(part.len())?;
            part.iter().for_each(|entry| copy.put(entry.clone()));
            parts.put(copy);
        }
        Ok(Ordered { parts, count: self.count, near: self.near.clone() })
    }

    /// Where the entries from `first` on begin.
    fn from(&self, first: Bound<&K>) -> (usize, usize) {
        let key = match first {
            Bound::Unbounded => return (0, 0),
            Bound::Included(key) | Bound::Excluded(key) => key,
        };
        let (part, place) = self.place(key);
        let is_behind = matches!(first, Bound::Excluded(_));
        (part, place.map_or_else(|place| place, |place| place + usize::from(is_behind)))
    }

    /// The entries from `first` on.
    pub fn range<'a>(&'a self, first: Bound<&K>) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (part, place) = self.from(first);
        self.parts[part.min(self.parts.len())..].iter().flatten().skip(place).map(|(key, value)| (key, value))
    }

    /// The same, to be changed.
    pub fn range_mut<'a>(&'a mut self, first: Bound<&K>) -> impl Iterator<Item = (&'a K, &'a mut V)> + use<'a, K, V> {
        let (part, place) = self.from(first);
        let part = part.min(self.parts.len());
        self.parts[part..].iter_mut().flatten().skip(place).map(|(key, value)| (&*key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn an_ordered_map_agrees_with_a_tree() {
        let (mut random, mut ordered, mut tree) = (7u64, Ordered::new(), BTreeMap::new());
        let mut most = 0;
        for step in 0..60_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Grows at first and shrinks later.
            let (key, grows) = (random >> 40 & 0xFFF, step < 30_000);
            match random >> 33 & 7 {
                0..4 if grows => assert_eq!(ordered.try_insert(key, step), Ok(tree.insert(key, step))),
                0 => assert_eq!(ordered.try_insert(key, step), Ok(tree.insert(key, step))),
                1..5 => assert_eq!(ordered.remove(&key), tree.remove(&key)),
                5 => assert_eq!(ordered.get_mut(&key), tree.get_mut(&key)),
                6 if step % 500 == 1 => {
                    ordered.retain(|value| value % 3 != 0);
                    tree.retain(|_, value| *value % 3 != 0);
                }
                6 if step % 64 == 2 => {
                    let end = key + (random >> 20 & 0x1FF);
                    let mut gone = Vec::new();
                    ordered.remove_range(&key, &end, |key, value| gone.push((*key, *value)));
                    assert_eq!(gone, tree.extract_if(key..end, |_, _| true).collect::<Vec<_>>());
                }
                6 if step % 16 == 0 => assert_eq!(ordered.pop_first(), tree.pop_first()),
                6 if step % 16 == 8 => assert_eq!(ordered.pop_last(), tree.pop_last()),
                _ => {
                    let first = if step % 2 == 0 { Bound::Included(&key) } else { Bound::Excluded(&key) };
                    let found: Vec<_> = ordered.range(first).take(3).collect();
                    assert_eq!(found, tree.range::<u64, _>((first, Bound::Unbounded)).take(3).collect::<Vec<_>>());
                    let changed: Vec<_> = ordered.range_mut(first).take(70).collect();
                    let wanted: Vec<_> = tree.range_mut::<u64, _>((first, Bound::Unbounded)).take(70).collect();
                    assert_eq!(changed, wanted);
                    assert_eq!(ordered.last_to(&key), tree.range(..=key).next_back());
                    let last = ordered.last_to_mut(&key).map(|(key, value)| (*key, *value));
                    assert_eq!(last, tree.range(..=key).next_back().map(|(key, value)| (*key, *value)));
                    assert_eq!(ordered.first_behind(&key), tree.range(key + 1..).next());
                    assert_eq!(ordered.around(&key), [tree.range(..=key).next_back(), tree.range(key + 1..).next()]);
                    let before = tree.range(..key).next_back();
                    let pair = tree.get_key_value(&key).and_then(|last| Some([before?, last]));
                    assert_eq!(ordered.pair(&key), pair);
                    assert!(ordered.downwards(&key).take(70).eq(tree.range(..=key).rev().take(70)));
                }
            }
            assert_eq!(ordered.get(&key), tree.get(&key));
            assert_eq!((ordered.len(), ordered.first()), (tree.len(), tree.first_key_value()));
            assert!(ordered.parts.iter().all(|part| (1..=PART_MOST).contains(&part.len())));
            most = most.max(tree.len());
        }
        assert!(ordered.iter().eq(tree.iter()));
        assert!(ordered.try_clone().is_ok_and(|copy| copy.iter().eq(tree.iter()) && copy.len() == tree.len()));
        assert!(most > 1000, "{most}");
    }
}
