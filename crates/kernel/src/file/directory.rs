//! The entries of one directory: found by name, listed by cookie.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{TryGrow, try_filled};

use super::name::hash_backwards;
use super::node::Node;

/// Cookies 0 and 1 stand for `.` and `..`.
pub(super) const FIRST_COOKIE: u64 = 2;

const NO_SLOT: u32 = u32::MAX;

/// A table of names. Entries stay in the order in which they came, each with a cookie that no other
/// entry of this directory ever had. A listing that stops at a cookie and goes on later therefore
/// sees every entry that stayed exactly once, whatever was added or removed meanwhile.
///
/// Invariants: cookies in `slots` rise; each slot, removed or not, is in `index` once; `index` has a
/// power-of-two length and always a free place.
#[derive(Default)]
pub(super) struct Entries {
    slots: Vec<Slot>,
    /// Open addressing with linear probing; removed slots stay until the next rebuild.
    index: Vec<u32>,
    live: usize,
    /// Cookies given out so far.
    cookies: u64,
}

struct Slot {
    cookie: u64,
    hash: u32,
    entry: Option<Entry>,
}

/// One name and what it names.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) name: Arc<[u8]>,
    pub(super) node: Arc<Node>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Arc<Node>> {
        let slot = self.slot_of(name)?;
        self.slots[slot].entry.as_ref().map(|entry| &entry.node)
    }

    /// Adds a name that must not be present. Error: `ENOSPC` if the heap is full.
    pub(super) fn insert(&mut self, name: Arc<[u8]>, node: Arc<Node>) -> Result<(), Errno> {
        self.make_room()?;
        let hash = hash_backwards(0, &name) as u32;
        let cookie = FIRST_COOKIE + self.cookies;
        self.cookies += 1;
        let place = free_place(&self.index, hash);
        self.index[place] = self.slots.len() as u32;
        self.slots.put(Slot { cookie, hash, entry: Some(Entry { name, node }) });
        self.live += 1;
        Ok(())
    }

    /// Makes sure that the next `insert` cannot fail, for changes that must happen wholly or not.
    pub(super) fn make_room(&mut self) -> Result<(), Errno> {
        if (self.slots.len() + 1) * 4 <= self.index.len() * 3 {
            return Ok(());
        }
        self.rebuild(self.live + 1)
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let slot = self.slot_of(name)?;
        let entry = self.slots[slot].entry.take();
        self.live -= 1;
        if self.live == 0 {
            self.slots.clear();
            self.index.fill(NO_SLOT);
        }
        entry
    }

    /// Lets a present name stand for another node; returns the old one. The cookie stays.
    pub(super) fn replace(&mut self, name: &[u8], node: Arc<Node>) -> Option<Arc<Node>> {
        let slot = self.slot_of(name)?;
        let entry = self.slots[slot].entry.as_mut()?;
        Some(core::mem::replace(&mut entry.node, node))
    }

    /// Entries whose cookie is at least `cookie`, in order.
    pub(super) fn at_or_after(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let first = self.slots.partition_point(|slot| slot.cookie < cookie);
        self.slots[first..].iter().filter_map(|slot| Some((slot.cookie, slot.entry.as_ref()?)))
    }

    /// Takes all nodes out, when the directory itself goes away.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Node>> {
        let slots = core::mem::take(&mut self.slots);
        *self = Entries { cookies: self.cookies, ..Entries::default() };
        slots.into_iter().filter_map(|slot| Some(slot.entry?.node))
    }

    fn slot_of(&self, name: &[u8]) -> Option<usize> {
        if self.live == 0 {
            return None;
        }
        let hash = hash_backwards(0, name) as u32;
        let mask = self.index.len() - 1;
        let mut place = hash as usize & mask;
        while self.index[place] != NO_SLOT {
            let slot = &self.slots[self.index[place] as usize];
            if slot.hash == hash && slot.entry.as_ref().is_some_and(|entry| *entry.name == *name) {
                return Some(self.index[place] as usize);
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// Drops removed slots and makes the index fit `wanted` entries with room to grow.
    fn rebuild(&mut self, wanted: usize) -> Result<(), Errno> {
        let places = (wanted * 2).next_power_of_two().max(8);
        let mut index = try_filled(NO_SLOT, places).map_err(|_| Errno::ENOSPC)?;
        self.slots.retain(|slot| slot.entry.is_some());
        self.slots.room_for(places * 3 / 4 - self.slots.len()).map_err(|_| Errno::ENOSPC)?;
        for (number, slot) in self.slots.iter().enumerate() {
            let place = free_place(&index, slot.hash);
            index[place] = number as u32;
        }
        self.index = index;
        Ok(())
    }
}

fn free_place(index: &[u32], hash: u32) -> usize {
    let mask = index.len() - 1;
    let mut place = hash as usize & mask;
    while index[place] != NO_SLOT {
        place = (place + 1) & mask;
    }
    place
}
