//! Advisory locks on a node: record locks (`fcntl`) and whole-file locks (`flock`). Nobody sleeps
//! here: a conflict is reported, and the caller waits and tries again.

use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::Ordered;

use super::limits::{FILE_BYTES_MAX, RECORD_LOCKS_MAX};

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
    /// Sorted by `first`.
    records: Vec<RecordLock>,
    /// No record reaches further behind its first byte: how far back those begin that can overlap something.
    longest: u64,
    /// Whole-file locks: kinds by open file. Many shared ones, or one exclusive.
    whole: Ordered<u64, LockKind>,
}

impl NodeLocks {
    /// The first lock in the way of `wanted` (`F_GETLK`).
    pub fn conflict(&self, wanted: &RecordLock) -> Option<RecordLock> {
        self.records[self.near(wanted.first, wanted.last)].iter().find(|held| held.conflicts(wanted)).copied()
    }

    /// Places of the records that can overlap these bytes.
    fn near(&self, first: u64, last: u64) -> Range<usize> {
        let from = self.records.partition_point(|held| held.first < first.saturating_sub(self.longest));
        from..from + self.records[from..].partition_point(|held| held.first <= last)
    }

    /// Takes `wanted`, changing the kind of what its owner already holds there (`F_SETLK`).
    pub fn lock(&mut self, wanted: RecordLock) -> Result<(), LockRefused> {
        if let Some(held) = self.conflict(&wanted) {
            return Err(LockRefused::Conflict(held));
        }
        // Cutting a hole into a record makes one more, the new one another.
        if self.records.len() + 2 > RECORD_LOCKS_MAX || self.records.try_reserve(2).is_err() {
            return Err(LockRefused::TooMany);
        }
        self.cut(wanted.owner, wanted.first, wanted.last);
        self.add_merged(wanted);
        Ok(())
    }

    /// Gives up what `owner` holds in `first..=last` (`F_UNLCK`).
    pub fn unlock(&mut self, owner: u64, first: u64, last: u64) -> Result<(), LockRefused> {
        if self.records.len() + 1 > RECORD_LOCKS_MAX || self.records.try_reserve(1).is_err() {
            return Err(LockRefused::TooMany);
        }
        self.cut(owner, first, last);
        Ok(())
    }

    /// Gives up all records of `owner`: it closed the file or ended. Says whether there were any, so
    /// that the caller knows to wake those who wait.
    pub fn unlock_all(&mut self, owner: u64) -> bool {
        let before = self.records.len();
        self.records.retain(|held| held.owner != owner);
        before != self.records.len()
    }

    /// Ranges, first to last, in which nobody holds a record.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut free_from = 0;
        for held in &self.records {
            if held.first > free_from {
                gaps.push((free_from, held.first - 1));
            }
            free_from = free_from.max(held.last.saturating_add(1));
        }
        if free_from <= FILE_BYTES_MAX {
            gaps.push((free_from, FILE_BYTES_MAX));
        }
        gaps
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

    /// Removes `first..=last` from the records of `owner`.
    fn cut(&mut self, owner: u64, first: u64, last: u64) {
        let mut position = self.near(first, last).start;
        while let Some(held) = self.records.get(position).copied().filter(|held| held.first <= last) {
            if held.owner != owner || !held.overlaps(first, last) {
                position += 1;
                continue;
            }
            self.records.remove(position);
            if held.first < first {
                self.records.insert(position, RecordLock { last: first - 1, ..held });
                position += 1;
            }
            if held.last > last {
                self.add(RecordLock { first: last + 1, ..held });
            }
        }
    }

    fn add_merged(&mut self, mut new: RecordLock) {
        let near = self.near(new.first.saturating_sub(1), new.last.saturating_add(1));
        let touches = |held: &RecordLock| {
            let touches = held.first <= new.last.saturating_add(1) && new.first <= held.last.saturating_add(1);
            held.owner == new.owner && held.kind == new.kind && touches
        };
        let (mut first, mut last) = (new.first, new.last);
        for held in self.records.extract_if(near, |held| touches(held)) {
            (first, last) = (first.min(held.first), last.max(held.last));
        }
        (new.first, new.last) = (first, last);
        self.add(new);
    }

    fn add(&mut self, new: RecordLock) {
        self.longest = if self.records.is_empty() { 0 } else { self.longest }.max(new.last - new.first);
        let position = self.records.partition_point(|held| held.first < new.first);
        self.records.insert(position, new);
    }
}
