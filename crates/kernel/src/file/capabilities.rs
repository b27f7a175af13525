//! Sets of capabilities: the parts that root's power consists of (capabilities(7)).

use core::ops::{BitAnd, BitOr, Not};

use abi::process::{
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_LAST_CAP, CAP_LINUX_IMMUTABLE,
    CAP_MAC_OVERRIDE, CAP_MKNOD,
};

/// A set of capabilities, a bit for each. It holds none that Linux does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities(u64);

impl Capabilities {
    pub const NONE: Capabilities = Capabilities(0);
    pub const ALL: Capabilities = Capabilities((2 << CAP_LAST_CAP) - 1);
    /// Those that are about files: they follow the user with whose rights files are reached.
    pub const OF_FILES: Capabilities = Capabilities(
        1 << CAP_CHOWN
            | 1 << CAP_DAC_OVERRIDE
            | 1 << CAP_DAC_READ_SEARCH
            | 1 << CAP_FOWNER
            | 1 << CAP_FSETID
            | 1 << CAP_LINUX_IMMUTABLE
            | 1 << CAP_MKNOD
            | 1 << CAP_MAC_OVERRIDE,
    );

    /// What a user has who never gave anything up.
    pub const fn of_user(user: u32) -> Capabilities {
        if user == 0 { Capabilities::ALL } else { Capabilities::NONE }
    }

    /// The set of these bits; those that stand for nothing are left out.
    pub const fn from_bits(bits: u64) -> Capabilities {
        Capabilities(bits & Capabilities::ALL.0)
    }

    pub const fn bits(self) -> u64 {
        self.0
    }

    pub const fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 != 0
    }

    #[must_use]
    pub const fn with(self, capability: u32) -> Capabilities {
        Capabilities::from_bits(self.0 | 1 << capability)
    }

    #[must_use]
    pub const fn without(self, capability: u32) -> Capabilities {
        Capabilities(self.0 & !(1 << capability))
    }

    /// All of `self` are in `other`.
    pub const fn are_in(self, other: Capabilities) -> bool {
        self.0 & !other.0 == 0
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;

    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Capabilities;

    fn bitand(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }
}

impl Not for Capabilities {
    type Output = Capabilities;

    fn not(self) -> Capabilities {
        Capabilities::from_bits(!self.0)
    }
}
