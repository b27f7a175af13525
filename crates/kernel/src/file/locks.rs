//! Advisory locks on a node: record locks (`fcntl`) and whole-file locks (`flock`). Nobody sleeps
//! here: a conflict is reported, and the caller waits and tries again.

use core::ops::Bound;

use abi::Errno;
use machine::Ordered;

use super::limits::{FILE_BYTES_MAX, RECORD_LOCKS_MAX};
use crate::charge::{Held, Kept};

/// Shared or exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    Shared,
    Exclusive,
}

/// A lock on the bytes `first..=last`, held by `owner`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordLock {
    /// Who holds it: a process for POSIX locks, an open file for Linux's own (`F_OFD_SETLK`). The
    /// caller keeps the two apart by the numbers it gives.
    pub owner: u64,
    /// Process number that `F_GETLK` tells; no part in conflicts.
    pub process: i32,
    pub kind: LockKind,
    pub first: u64,
    /// Last byte; `i64::MAX` reaches to the end, however far the file grows.
    pub last: u64,
}

impl RecordLock {
    fn overlaps(&self, first: u64, last: u64) -> bool {
        self.first <= last && first <= self.last
    }

    fn conflicts(&self, other: &RecordLock) -> bool {
        let exclusive = self.kind == LockKind::Exclusive || other.kind == LockKind::Exclusive;
        self.owner != other.owner && exclusive && self.overlaps(other.first, other.last)
    }
}

/// Why a lock was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockRefused {
    /// This lock is in the way.
    Conflict(RecordLock),
    /// Somebody outside of the machine has one in the way.
    Outside,
    /// Too many locks on this node.
    TooMany,
}

impl From<LockRefused> for Errno {
    fn from(refused: LockRefused) -> Errno {
        match refused {
            LockRefused::Conflict(_) | LockRefused::Outside => Errno::EAGAIN,
            LockRefused::TooMany => Errno::ENOLCK,
        }
    }
}

/// All advisory locks on one node.
///
/// Invariant: the records of one owner do not overlap, and neighbours of one kind are one record.
#[derive(Default)]
pub struct NodeLocks {
    /// By first byte and owner.
    records: Ordered<(u64, u64), RecordLock>,
    /// No record reaches further behind its first byte: how far back those begin that can overlap something.
    longest: u64,
    /// Whole-file locks: kinds by open file. Many shared ones, or one exclusive.
    whole: Ordered<u64, LockKind>,
}

impl NodeLocks {
    /// What the locks of one owner take.
    pub fn held(&self, owner: u64) -> Held {
        let records = self.records.iter().filter(|(_, record)| record.owner == owner).count();
        Held::new(Kept::Locks, records * size_of::<((u64, u64), RecordLock)>())
    }

    /// The first lock in the way of `wanted` (`F_GETLK`).
    pub fn conflict(&self, wanted: &RecordLock) -> Option<RecordLock> {
        self.near(wanted.first, wanted.last).find(|held| held.conflicts(wanted)).copied()
    }

    /// The records that can overlap these bytes.
    fn near(&self, first: u64, last: u64) -> impl Iterator<Item = &RecordLock> {
        let from = (first.saturating_sub(self.longest), 0);
        self.records.range(Bound::Included(&from)).map(|(_, held)| held).take_while(move |held| held.first <= last)
    }

    /// Takes `wanted`, changing the kind of what its owner already holds there (`F_SETLK`).
    pub fn lock(&mut self, wanted: RecordLock) -> Result<(), LockRefused> {
        if let Some(held) = self.conflict(&wanted) {
            return Err(LockRefused::Conflict(held));
        }
        // Cutting a hole into a record makes one more, the new one another.
        if self.records.len() + 2 > RECORD_LOCKS_MAX {
            return Err(LockRefused::TooMany);
        }
        // What takes memory comes first: nothing is lost when there is none.
        let behind = self.split_behind(wanted.owner, wanted.first, wanted.last)?;
        if self.records.try_insert((wanted.first, wanted.owner), wanted).is_err() {
            behind.iter().for_each(|key| _ = self.records.remove(key));
            return Err(LockRefused::TooMany);
        }
        self.note_length(&wanted);
        self.trim(wanted.owner, wanted.first, wanted.last, true);
        self.join(wanted);
        Ok(())
    }

    /// Gives up what `owner` holds in `first..=last` (`F_UNLCK`).
    pub fn unlock(&mut self, owner: u64, first: u64, last: u64) -> Result<(), LockRefused> {
        if self.records.len() + 1 > RECORD_LOCKS_MAX {
            return Err(LockRefused::TooMany);
        }
        self.split_behind(owner, first, last)?;
        self.trim(owner, first, last, false);
        Ok(())
    }

    /// Gives up all records of `owner`: it closed the file or ended. Says whether there were any, so
    /// that the caller knows to wake those who wait.
    pub fn unlock_all(&mut self, owner: u64) -> bool {
        let before = self.records.len();
        if before > 0 {
            self.records.retain(|held| held.owner != owner);
        }
        before != self.records.len()
    }

    /// The first range, from its first byte to its last, not before `at`, in which nobody holds a record.
    pub fn gap_from(&self, at: u64) -> Option<(u64, u64)> {
        let mut free_from = at;
        for (_, held) in self.records.iter() {
            if held.first > free_from {
                return Some((free_from, held.first - 1));
            }
            free_from = free_from.max(held.last.saturating_add(1));
        }
        (free_from <= FILE_BYTES_MAX).then_some((free_from, FILE_BYTES_MAX))
    }

    /// Takes the whole-file lock for the open file `owner`, or changes its kind (`flock`). As on
    /// Linux a change gives the old lock up first. Error: `EAGAIN`.
    pub fn lock_whole(&mut self, owner: u64, kind: LockKind) -> Result<(), Errno> {
        if self.whole.get(&owner) == Some(&kind) {
            return Ok(());
        }
        self.unlock_whole(owner);
        let blocked = match kind {
            LockKind::Exclusive => !self.whole.is_empty(),
            LockKind::Shared => self.whole.first().is_some_and(|(_, held)| *held == LockKind::Exclusive),
        };
        if blocked {
            return Err(Errno::EAGAIN);
        }
        self.whole.try_insert(owner, kind).map(drop).map_err(|_| Errno::ENOLCK)
    }

    /// Gives the whole-file lock up; says whether `owner` had it.
    pub fn unlock_whole(&mut self, owner: u64) -> bool {
        self.whole.remove(&owner).is_some()
    }

    fn note_length(&mut self, record: &RecordLock) {
        // Alone it says how long the longest is.
        let others = if self.records.len() > 1 { self.longest } else { 0 };
        self.longest = others.max(record.last - record.first);
    }

    /// If a record of `owner` reaches from `first..=last` to behind it, what is behind becomes a record of its own: its key.
    fn split_behind(&mut self, owner: u64, first: u64, last: u64) -> Result<Option<(u64, u64)>, LockRefused> {
        let reaches = |held: &&RecordLock| held.owner == owner && held.overlaps(first, last) && held.last > last;
        let Some(held) = self.near(first, last).find(reaches).copied() else { return Ok(None) };
        let key = (last + 1, owner);
        let inserted = self.records.try_insert(key, RecordLock { first: last + 1, ..held });
        inserted.map(|_| Some(key)).map_err(|_| LockRefused::TooMany)
    }

    /// Takes `first..=last` from the records of `owner`, except from the one that begins there, if that is `new`.
    fn trim(&mut self, owner: u64, first: u64, last: u64, is_new: bool) {
        let mut from = Bound::Included((first.saturating_sub(self.longest), 0));
        loop {
            let is_hit = |key: &(u64, u64), held: &RecordLock| {
                held.owner == owner && held.overlaps(first, last) && !(is_new && *key == (first, owner))
            };
            let mut near = self.records.range(from.as_ref()).take_while(|(key, _)| key.0 <= last);
            let hit = near.find(|(key, held)| is_hit(key, held)).map(|(key, _)| *key);
            drop(near);
            let Some(key) = hit else { return };
            if key.0 < first {
                self.records.get_mut(&key).into_iter().for_each(|held| held.last = first - 1);
            } else {
                self.records.remove(&key);
            }
            from = Bound::Excluded(key);
        }
    }

    /// Makes one record of `new` and its neighbours of the same kind.
    fn join(&mut self, new: RecordLock) {
        let (key, mut whole) = ((new.first, new.owner), new);
        let fits = |held: &RecordLock| held.owner == new.owner && held.kind == new.kind;
        if let Some(next) = new.last.checked_add(1).map(|first| (first, new.owner))
            && self.records.get(&next).is_some_and(fits)
            && let Some(next) = self.records.remove(&next)
        {
            whole.last = next.last;
        }
        let before = new
            .first
            .checked_sub(1)
            .and_then(|last| self.near(last, last).find(|held| fits(held) && held.last == last).copied());
        if let Some(before) = before {
            self.records.remove(&key);
            whole.first = before.first;
        }
        self.records.get_mut(&(whole.first, whole.owner)).into_iter().for_each(|held| held.last = whole.last);
        self.note_length(&whole);
    }
}
