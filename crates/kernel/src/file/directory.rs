//! The entries of one directory: found by name, listed by cookie.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{PAGE_BYTES, TryGrow, try_filled};

use super::attributes::NodeKind;
use super::below::Below;
use super::name::hash_backwards;
use super::node::Node;

/// Cookies 0 and 1 stand for `.` and `..`.
pub(super) const FIRST_COOKIE: u64 = 2;

/// A directory's size in `stat`: so many bytes for each entry, as Linux's tmpfs counts.
const ENTRY_BYTES: u64 = 20;

const NO_SLOT: u32 = u32::MAX;

/// Slots that a removal gives back at most: more than one, so that they become fewer.
const REMOVED_AT_ONCE: usize = 2;

/// Names that are known to stand for nothing are remembered up to this number.
const NOTHINGS_MAX: usize = 512;

/// A table of names. Entries stay in the order in which they came, each with a cookie that no other
/// entry of this directory ever had. A listing that stops at a cookie and goes on later therefore
/// sees every entry that stayed exactly once, whatever was added or removed meanwhile.
///
/// Invariants: cookies in `slots` rise; each slot with an entry is in `index` once, where a look for its hash comes before it finds a
/// free place; `index` has a power-of-two length and always a free place.
///
/// A directory that lies over others ([`Below`]) learns its names when somebody asks: an entry may stand for something that nobody has
/// looked at, or for nothing, which hides what is below.
#[derive(Default)]
pub(super) struct Entries {
    slots: Vec<Slot>,
    /// Open addressing with linear probing. A removed slot leaves it, and `slots` when it is the last there or at the next rebuild.
    index: Vec<u32>,
    live: usize,
    /// Names that stand for nothing.
    nothings: usize,
    /// Cookies given out so far.
    cookies: u64,
    /// The directories that this one lies over.
    pub(super) below: Option<Box<Below>>,
}

struct Slot {
    cookie: u64,
    hash: u32,
    entry: Option<Entry>,
}

/// One name and what it names.
pub(super) struct Entry {
    pub(super) name: Arc<[u8]>,
    stands: Stands,
    /// There is something of this name below.
    is_below: bool,
}

/// What a name stands for.
enum Stands {
    For(Arc<Node>),
    /// Something below that has been listed and not looked at. It will have this number.
    Listed(NodeKind, u64),
    Nothing,
}

/// What a look for a name gives.
pub(super) enum Found {
    Node(Arc<Node>),
    Missing,
    /// Below this directory there may be something of this name.
    Unknown,
}

impl Entry {
    pub(super) fn node(&self) -> Option<&Arc<Node>> {
        if let Stands::For(node) = &self.stands { Some(node) } else { None }
    }

    pub(super) fn number(&self) -> u64 {
        match &self.stands {
            Stands::For(node) => node.number(),
            Stands::Listed(_, number) => *number,
            Stands::Nothing => 0,
        }
    }

    pub(super) fn kind(&self) -> NodeKind {
        match &self.stands {
            Stands::For(node) => node.kind(),
            Stands::Listed(kind, _) => *kind,
            Stands::Nothing => NodeKind::Regular,
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self.stands, Stands::Nothing)
    }

    /// It hides something below.
    pub(super) fn hides(&self) -> bool {
        self.is_nothing() && self.is_below
    }
}

impl Entries {
    /// Of a directory that lies over others.
    pub(super) fn over(below: Box<Below>) -> Entries {
        Entries { below: Some(below), ..Entries::default() }
    }

    /// Bytes and pages that `stat` tells. A directory that lies over others is not asked for all its names.
    pub(super) fn told_size(&self) -> (u64, u64) {
        if self.below.is_some() { (PAGE_BYTES as u64, 1) } else { ((2 + self.live as u64) * ENTRY_BYTES, 0) }
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Found {
        let Some(slot) = self.slot_of(name) else { return self.not_here() };
        match self.slots[slot].entry.as_ref().map(|entry| &entry.stands) {
            Some(Stands::For(node)) => Found::Node(node.clone()),
            Some(Stands::Listed(..)) => Found::Unknown,
            _ => Found::Missing,
        }
    }

    fn not_here(&self) -> Found {
        if self.has_unknown() { Found::Unknown } else { Found::Missing }
    }

    /// Below there may be names that are not in the table.
    fn has_unknown(&self) -> bool {
        self.below.as_ref().is_some_and(|below| !below.is_listed)
    }

    /// Adds a name that stands for nothing so far. Error: `ENOSPC` if the heap is full.
    pub(super) fn insert(&mut self, name: Arc<[u8]>, node: Arc<Node>) -> Result<(), Errno> {
        let is_below = match self.nothing_of(&name) {
            None => self.has_unknown(),
            Some(slot) => self.slots[slot].entry.as_ref().is_some_and(|entry| entry.is_below),
        };
        self.put(Entry { name, stands: Stands::For(node), is_below })
    }

    /// A name below stands for `node`, which is what a listing may have shown before. Error: `ENOSPC`.
    pub(super) fn settle(&mut self, name: &[u8], node: Arc<Node>) -> Result<(), Errno> {
        if let Some(entry) = self.slot_of(name).and_then(|slot| self.slots[slot].entry.as_mut()) {
            entry.stands = Stands::For(node);
            return Ok(());
        }
        self.put(Entry { name: name.into(), stands: Stands::For(node), is_below: true })
    }

    /// The number under which a listing has shown a name below.
    pub(super) fn listed_number(&self, name: &[u8]) -> Option<u64> {
        match self.slots[self.slot_of(name)?].entry.as_ref()?.stands {
            Stands::Listed(_, number) => Some(number),
            _ => None,
        }
    }

    /// A name that is below and not known yet will be `number`. Error: `ENOSPC`.
    pub(super) fn list_below(&mut self, name: &[u8], kind: NodeKind, number: u64) -> Result<(), Errno> {
        if self.slot_of(name).is_some() {
            return Ok(());
        }
        self.put(Entry { name: name.into(), stands: Stands::Listed(kind, number), is_below: true })
    }

    /// Below there is nothing of this name. Without memory that is not remembered.
    pub(super) fn note_nothing(&mut self, name: &[u8]) {
        let Some(slot) = self.slot_of(name) else {
            let _ = self.put(Entry { name: name.into(), stands: Stands::Nothing, is_below: false });
            return;
        };
        // What was listed has gone since.
        if let Some(entry) = &mut self.slots[slot].entry
            && matches!(entry.stands, Stands::Listed(..))
        {
            *entry = Entry { name: entry.name.clone(), stands: Stands::Nothing, is_below: false };
            self.live -= 1;
            self.nothings += 1;
        }
    }

    /// Puts an entry in place of one that stands for nothing, or of none.
    fn put(&mut self, entry: Entry) -> Result<(), Errno> {
        self.make_room()?;
        if let Some(slot) = self.nothing_of(&entry.name) {
            self.vacate(slot);
            self.nothings -= 1;
        }
        self.append(entry);
        Ok(())
    }

    /// The slot of a name that stands for nothing and is in the table.
    fn nothing_of(&self, name: &[u8]) -> Option<usize> {
        if self.nothings == 0 { None } else { self.slot_of(name) }
    }

    fn append(&mut self, entry: Entry) {
        let hash = hash_backwards(0, &entry.name) as u32;
        let cookie = FIRST_COOKIE + self.cookies;
        self.cookies += 1;
        let place = free_place(&self.index, hash);
        self.index[place] = self.slots.len() as u32;
        let count = if entry.is_nothing() { &mut self.nothings } else { &mut self.live };
        *count += 1;
        self.slots.put(Slot { cookie, hash, entry: Some(entry) });
    }

    /// Makes sure that the next `insert` cannot fail, for changes that must happen wholly or not.
    pub(super) fn make_room(&mut self) -> Result<(), Errno> {
        if (self.slots.len() + 1) * 4 <= self.index.len() * 3 {
            return Ok(());
        }
        self.rebuild()
    }

    /// The name stands for nothing from now on.
    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let slot = self.slot_of(name)?;
        let entry = self.slots[slot].entry.as_mut().filter(|entry| !entry.is_nothing())?;
        self.live -= 1;
        if entry.is_below {
            let hides = Entry { name: entry.name.clone(), stands: Stands::Nothing, is_below: true };
            self.nothings += 1;
            return Some(core::mem::replace(entry, hides));
        }
        self.vacate(slot)
    }

    /// Takes the entry out of a slot, and the slot out of the index: what stands behind it there moves up, so that no look passes by it
    /// again (Knuth, volume 3, 6.4, algorithm R).
    fn vacate(&mut self, slot: usize) -> Option<Entry> {
        let mask = self.index.len() - 1;
        let mut hole = self.slots[slot].hash as usize & mask;
        while self.index[hole] as usize != slot {
            hole = (hole + 1) & mask;
        }
        let mut next = (hole + 1) & mask;
        while self.index[next] != NO_SLOT {
            let home = self.slots[self.index[next] as usize].hash as usize;
            let (from_home, from_hole) = (next.wrapping_sub(home) & mask, next.wrapping_sub(hole) & mask);
            if from_home >= from_hole {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.index[hole] = NO_SLOT;
        let entry = self.slots[slot].entry.take();
        // Not all that may stand there at once: a removal has a bound.
        for _ in 0..REMOVED_AT_ONCE {
            self.slots.pop_if(|last| last.entry.is_none());
        }
        entry
    }

    /// Lets a present name stand for another node; returns the old one. The cookie stays.
    pub(super) fn replace(&mut self, name: &[u8], node: Arc<Node>) -> Option<Arc<Node>> {
        let slot = self.slot_of(name)?;
        match &mut self.slots[slot].entry.as_mut()?.stands {
            Stands::For(known) => Some(core::mem::replace(known, node)),
            _ => None,
        }
    }

    /// Entries whose cookie is at least `cookie`, in order.
    pub(super) fn at_or_after(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let first = self.slots.partition_point(|slot| slot.cookie < cookie);
        let entries = self.slots[first..].iter().filter_map(|slot| Some((slot.cookie, slot.entry.as_ref()?)));
        entries.filter(|(_, entry)| !entry.is_nothing())
    }

    /// All entries, those for nothing as well.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().filter_map(|slot| slot.entry.as_ref())
    }

    /// Takes all nodes out, when the directory itself goes away.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Node>> {
        let slots = core::mem::take(&mut self.slots);
        *self = Entries { cookies: self.cookies, ..Entries::default() };
        slots.into_iter().filter_map(|slot| match slot.entry?.stands {
            Stands::For(node) => Some(node),
            _ => None,
        })
    }

    fn slot_of(&self, name: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
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

    /// Drops removed slots and makes the index fit one entry more, with room to grow. Of names that stand for nothing those that hide
    /// something stay, and the others while they are few.
    fn rebuild(&mut self) -> Result<(), Errno> {
        let forgets = self.nothings > NOTHINGS_MAX;
        let is_kept = |entry: &Entry| !(forgets && entry.is_nothing() && !entry.is_below);
        let stays = |slot: &Slot| slot.entry.as_ref().is_some_and(is_kept);
        let wanted = self.slots.iter().filter(|slot| stays(slot)).count() + 1;
        let places = (wanted * 2).next_power_of_two().max(8);
        let mut index = try_filled(NO_SLOT, places).map_err(|_| Errno::ENOSPC)?;
        self.slots.retain(stays);
        self.nothings = self.slots.len() - self.live;
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
