//! Whole paths that were walked before, so that opening a file again walks nothing.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use machine::{TryGrow, try_collect};

use super::name::{hash_backwards, words_backwards};
use super::node::Node;
use super::volume::VolumeIdentity;

/// Sets of two entries each. 256 sets take 28 KB and some for the paths; they are made a group at a time, since a short run
/// uses few.
const SETS: usize = 256;
const GROUP_SETS: usize = 16;
/// Longer paths are not worth keeping.
const KEY_BYTES_MAX: usize = 256;

/// Remembers which node a path led to.
///
/// An entry counts only while the namespace's generation is the one in which it was made, so any
/// change that could lead a walk elsewhere (or forbid it) empties the cache at once. Entries hold no
/// node alive: an unlinked file goes when its last user goes.
pub(super) struct PathCache {
    groups: [Vec<[Option<Remembered>; 2]>; SETS / GROUP_SETS],
}

/// The directory from which a path is walked. A volume's identity and a node's number are each had once, so this names one
/// directory for ever, and a path that was kept can never be taken for one in another volume.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) volume: VolumeIdentity,
    pub(super) number: u64,
}

struct Remembered {
    generation: u64,
    start: Start,
    path_bytes: usize,
    /// The path as words, the last one first (S-100).
    path: Box<[u64]>,
    node: Weak<Node>,
    terms: Terms,
}

/// For whom an entry holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    /// Every directory on the way may be searched by owner, group and others, so nobody is refused.
    /// Otherwise only who is never refused may use the entry.
    pub(super) open_to_all: bool,
    /// The last name was not a symlink, so the entry also holds for who does not follow one.
    pub(super) straight: bool,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asker {
    pub(super) searches_all: bool,
    pub(super) follows: bool,
}

impl Terms {
    fn allow(self, asker: Asker) -> bool {
        (self.open_to_all || asker.searches_all) && (self.straight || asker.follows)
    }
}

/// A path to look for, hashed.
pub(super) struct Key<'a> {
    start: Start,
    path: &'a [u8],
    set: usize,
}

impl<'a> Key<'a> {
    /// `None` for a path that is never kept.
    pub(super) fn new(start: Start, path: &'a [u8]) -> Option<Key<'a>> {
        if path.is_empty() || path.len() > KEY_BYTES_MAX {
            return None;
        }
        let seed = u64::from(start.volume.number()) << 44 ^ start.number;
        Some(Key { start, path, set: hash_backwards(seed, path) as usize % SETS })
    }
}

impl Remembered {
    fn is(&self, generation: u64, key: &Key<'_>) -> bool {
        self.generation == generation
            && self.start == key.start
            && self.path_bytes == key.path.len()
            && words_backwards(key.path).zip(self.path.iter()).all(|(word, kept)| word == *kept)
    }
}

impl PathCache {
    pub(super) const fn new() -> PathCache {
        PathCache { groups: [const { Vec::new() }; SETS / GROUP_SETS] }
    }

    pub(super) fn find(&self, generation: u64, key: &Key<'_>, asker: Asker) -> Option<Arc<Node>> {
        let set = self.groups[key.set / GROUP_SETS].get(key.set % GROUP_SETS)?;
        let kept = set.iter().flatten().find(|kept| kept.is(generation, key))?;
        if kept.terms.allow(asker) { kept.node.upgrade() } else { None }
    }

    pub(super) fn keep(&mut self, generation: u64, key: &Key<'_>, node: &Arc<Node>, terms: Terms) {
        let sets = &mut self.groups[key.set / GROUP_SETS];
        if sets.is_empty() {
            if sets.room_for_exact(GROUP_SETS).is_err() {
                return;
            }
            (0..GROUP_SETS).for_each(|_| sets.put([None, None]));
        }
        let Ok(path) = try_collect(words_backwards(key.path)) else { return };
        let entry = Remembered {
            generation,
            start: key.start,
            path_bytes: key.path.len(),
            path: path.into_boxed_slice(),
            node: Arc::downgrade(node),
            terms,
        };
        let set = &mut sets[key.set % GROUP_SETS];
        if set[0].as_ref().is_some_and(|kept| kept.generation == generation && !kept.is(generation, key)) {
            set.swap(0, 1);
        }
        set[0] = Some(entry);
    }
}
