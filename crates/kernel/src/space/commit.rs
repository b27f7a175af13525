//! How much memory all programs together may ask for (Linux `vm.overcommit_memory`).
//!
//! Areas that could come to need frames of their own are *charged*: private ones that are or were writable, and shared memory without
//! a file as a whole. Where the rule is strict, what is charged stays below a limit, and a program whose request was granted finds
//! memory when it touches it.

use machine::{KernelValue, PAGE_BYTES};

use super::Space;
use super::area::{Area, Kind};
use super::limits::AREAS_MAX;
use super::map::MapError;

/// Which requests are granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overcommit {
    /// All but those that are larger than all memory (0).
    Heuristic,
    /// All (1).
    Always,
    /// What is below the limit with all that was granted before (2).
    Never,
}

/// What all quaspaces that take their frames from one pool keep to; it may change while they live.
pub struct MemoryRules {
    /// Areas in one quaspace (Linux `vm.max_map_count`). One more is `NoMemory`; who has more keeps them.
    pub areas_max: KernelValue<u64>,
    pub overcommit: KernelValue<Overcommit>,
    /// The limit: so many parts of a hundred of all memory, or, if it is not 0, so many KB.
    pub limit_percent: KernelValue<u64>,
    pub limit_kilobytes: KernelValue<u64>,
    /// Bytes that are charged.
    charged: KernelValue<u64>,
}

/// The part of a process's own areas that a strict rule keeps free besides, so that it can end itself (Linux `user_reserve_kbytes`).
const OWN_PART: u64 = 32;
const OWN_BYTES_MAX: u64 = 128 << 20;

impl MemoryRules {
    pub(super) const fn new() -> MemoryRules {
        MemoryRules {
            areas_max: KernelValue::new(AREAS_MAX),
            overcommit: KernelValue::new(Overcommit::Heuristic),
            limit_percent: KernelValue::new(50),
            limit_kilobytes: KernelValue::new(0),
            charged: KernelValue::new(0),
        }
    }

    /// Bytes that may be charged at most where the rule is strict, of so many frames.
    pub fn limit_bytes(&self, total_frames: usize) -> u64 {
        match self.limit_kilobytes.get() {
            0 => (total_frames * PAGE_BYTES) as u64 / 100 * self.limit_percent.get(),
            kilobytes => kilobytes.saturating_mul(1024),
        }
    }

    pub fn charged_bytes(&self) -> u64 {
        self.charged.get()
    }

    pub fn charge(&self, bytes: u64) {
        self.charged.set(self.charged.get() + bytes);
    }

    pub fn discharge(&self, bytes: u64) {
        self.charged.set(self.charged.get() - bytes);
    }

    pub fn is_strict(&self) -> bool {
        self.overcommit.get() == Overcommit::Never
    }

    /// Whether so many bytes more may be charged to a quaspace of `own_bytes`.
    pub fn admits(&self, total_frames: usize, bytes: u64, own_bytes: u64) -> bool {
        let kept = (own_bytes / OWN_PART).min(OWN_BYTES_MAX);
        let limit = self.limit_bytes(total_frames).saturating_sub(kept);
        !self.is_strict() || self.charged.get().saturating_add(bytes) < limit
    }
}

impl Area {
    /// It may come to need frames of its own with `protection`.
    pub(super) fn is_charged_with(&self, protection: machine::Protection) -> bool {
        protection.write && !self.kind.is_shared() && !self.no_reserve
    }
}

impl Space {
    /// Whether the rule grants `bytes` bytes more of an area, with these rights.
    pub(super) fn check_commit(
        &self,
        bytes: u64,
        area: &Area,
        protection: machine::Protection,
    ) -> Result<(), MapError> {
        let pool = self.pages.pool;
        let total_frames = pool.total_frames();
        let is_granted = match pool.rules.overcommit.get() {
            Overcommit::Always => true,
            Overcommit::Heuristic => {
                let needs_frames = match area.kind {
                    Kind::SharedAnonymous(_) => true,
                    Kind::FileShared(_) => false,
                    _ => protection.write,
                };
                !needs_frames || area.no_reserve || bytes <= (total_frames * PAGE_BYTES) as u64
            }
            // Shared memory was charged when it was made.
            Overcommit::Never => {
                !area.is_charged_with(protection) || pool.rules.admits(total_frames, bytes, self.total_bytes)
            }
        };
        if is_granted { Ok(()) } else { Err(MapError::NoMemory) }
    }

    /// Whether a copy of all of it would be granted.
    pub(super) fn may_be_copied(&self) -> bool {
        let pool = self.pages.pool;
        pool.rules.admits(pool.total_frames(), self.charged_bytes, 0)
    }

    pub(super) fn charge_area(&mut self, bytes: u64) {
        self.charged_bytes += bytes;
        self.pages.pool.rules.charge(bytes);
    }

    pub(super) fn discharge_area(&mut self, bytes: u64) {
        self.charged_bytes -= bytes;
        self.pages.pool.rules.discharge(bytes);
    }
}
