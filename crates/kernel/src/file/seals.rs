//! Seals: what may never be done again to a memory file (memfd_create(2), `F_ADD_SEALS`).

use core::ops::BitOr;

use abi::Errno;
use abi::file::{F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE};

/// Nobody may change who may execute the file (not in every system's headers).
const F_SEAL_EXEC: u32 = 0x20;

/// Seals are only ever added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seals(u32);

impl Seals {
    pub const NONE: Seals = Seals(0);
    /// No more seals: what every file has that was not made to be sealed.
    pub const SEAL: Seals = Seals(F_SEAL_SEAL);
    pub const SHRINK: Seals = Seals(F_SEAL_SHRINK);
    pub const GROW: Seals = Seals(F_SEAL_GROW);
    pub const WRITE: Seals = Seals(F_SEAL_WRITE);
    /// No writes but through shared maps that are there already.
    pub const FUTURE_WRITE: Seals = Seals(F_SEAL_FUTURE_WRITE);
    pub const EXEC: Seals = Seals(F_SEAL_EXEC);

    const ALL: u32 = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE | F_SEAL_EXEC;

    /// Error: `EINVAL` for a bit that is no seal.
    pub fn from_bits(bits: u32) -> Result<Seals, Errno> {
        if bits & !Seals::ALL == 0 { Ok(Seals(bits)) } else { Err(Errno::EINVAL) }
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    /// Has one of `seals`.
    pub fn has(self, seals: Seals) -> bool {
        self.0 & seals.0 != 0
    }

    /// Nothing may be written by a call any more, nor may a new shared map be written to.
    pub fn forbid_writes(self) -> bool {
        self.has(Seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
    }

    /// Some write is forbidden, wherever it is.
    pub(super) fn forbid_some(self) -> bool {
        self.forbid_writes() || self.has(Seals::GROW)
    }

    /// Error: `EPERM` if bytes up to `end` may not be written to a file of `size_bytes`.
    pub(super) fn check_write(self, end: u64, size_bytes: u64) -> Result<(), Errno> {
        let refused = self.forbid_writes() || self.has(Seals::GROW) && end > size_bytes;
        if refused { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Error: `EPERM` if the size may not change so.
    pub(super) fn check_resize(self, from: u64, to: u64) -> Result<(), Errno> {
        let refused = self.has(Seals::SHRINK) && to < from || self.has(Seals::GROW) && to > from;
        if refused { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// These and `more`, for a file with these mode bits: who may execute a file that keeps its mode must also be sure of what
    /// is executed.
    pub(super) fn with(self, more: Seals, mode: u32) -> Seals {
        let follows = Seals::SHRINK | Seals::GROW | Seals::WRITE | Seals::FUTURE_WRITE;
        let executable = more.has(Seals::EXEC) && mode & 0o111 != 0;
        self | more | if executable { follows } else { Seals::NONE }
    }
}

impl BitOr for Seals {
    type Output = Seals;

    fn bitor(self, other: Seals) -> Seals {
        Seals(self.0 | other.0)
    }
}
