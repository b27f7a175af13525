//! What a process may do beyond what its users may: five sets of capabilities, and Linux's rules by which they change
//! (capabilities(7), "Transformation of capabilities during execve()", "Effect of user ID changes on capabilities").

use abi::Errno;
use abi::process::{SECBIT_KEEP_CAPS, SECBIT_NO_CAP_AMBIENT_RAISE, SECBIT_NO_SETUID_FIXUP, SECBIT_NOROOT, SECURE_BITS};
use kernel::file::Capabilities;

use crate::task::process::Ids;

/// Invariants: `effective` and `ambient` are in `permitted`, `ambient` is in `inheritable`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapabilitySets {
    /// What is asked for when something is done.
    pub effective: Capabilities,
    /// What may become effective; what is gone from here does not return but by `execve`.
    pub permitted: Capabilities,
    /// What a program may get from its own inheritable set.
    pub inheritable: Capabilities,
    /// What `execve` may give at most.
    pub bounding: Capabilities,
    /// What `execve` keeps for a process that is not root's.
    pub ambient: Capabilities,
}

/// The user ids after `execve`, and what else the rules for it look at.
#[derive(Clone, Copy, Debug)]
pub struct ProgramChange {
    pub real: u32,
    pub effective: u32,
    /// The effective ids are others than before.
    pub ids_change: bool,
    /// Somebody else could abuse new rights: there must be none.
    pub is_watched: bool,
}

impl CapabilitySets {
    /// What a user's first process has.
    pub fn of_user(user: u32) -> CapabilitySets {
        let own = Capabilities::of_user(user);
        CapabilitySets { effective: own, permitted: own, bounding: Capabilities::ALL, ..CapabilitySets::default() }
    }

    /// The user ids change from `old` to `new` by a call (Linux `cap_emulate_setxuid`).
    #[must_use]
    pub fn after_user_change(self, old: Ids, new: Ids, secure_bits: u32) -> CapabilitySets {
        let mut after = self;
        if secure_bits & SECBIT_NO_SETUID_FIXUP != 0 {
            return after;
        }
        let has_root = |ids: Ids| [ids.real, ids.effective, ids.saved].contains(&0);
        if has_root(old) && !has_root(new) {
            if secure_bits & SECBIT_KEEP_CAPS == 0 {
                (after.permitted, after.effective) = (Capabilities::NONE, Capabilities::NONE);
            }
            after.ambient = Capabilities::NONE;
        }
        if old.effective == 0 && new.effective != 0 {
            after.effective = Capabilities::NONE;
        }
        if old.effective != 0 && new.effective == 0 {
            after.effective = after.permitted;
        }
        after
    }

    /// The user with whose rights files are reached changes alone.
    #[must_use]
    pub fn after_file_user_change(self, old: u32, new: u32, secure_bits: u32) -> CapabilitySets {
        let mut after = self;
        if secure_bits & SECBIT_NO_SETUID_FIXUP != 0 {
            return after;
        }
        if old == 0 && new != 0 {
            after.effective = after.effective & !Capabilities::OF_FILES;
        }
        if old != 0 && new == 0 {
            after.effective = after.effective | after.permitted & Capabilities::OF_FILES;
        }
        after
    }

    /// `capset`. Error: `EPERM` for what would be more than there is.
    pub fn set(self, wanted: CapabilitySets, may_inherit: bool) -> Result<CapabilitySets, Errno> {
        let inherits_too_much = !wanted.inheritable.are_in(self.inheritable | self.bounding)
            || !may_inherit && !wanted.inheritable.are_in(self.inheritable | self.permitted);
        if inherits_too_much || !wanted.permitted.are_in(self.permitted) || !wanted.effective.are_in(wanted.permitted) {
            return Err(Errno::EPERM);
        }
        let CapabilitySets { effective, permitted, inheritable, .. } = wanted;
        let ambient = self.ambient & permitted & inheritable;
        Ok(CapabilitySets { effective, permitted, inheritable, ambient, ..self })
    }

    /// `PR_CAP_AMBIENT_RAISE`. Error: `EPERM`.
    pub fn raise_ambient(self, capability: u32, secure_bits: u32) -> Result<CapabilitySets, Errno> {
        let is_held = self.permitted.has(capability) && self.inheritable.has(capability);
        if !is_held || secure_bits & SECBIT_NO_CAP_AMBIENT_RAISE != 0 {
            return Err(Errno::EPERM);
        }
        Ok(CapabilitySets { ambient: self.ambient.with(capability), ..self })
    }

    /// What a program starts with. Files have no capabilities of their own here, so only root's programs get any
    /// (Linux `cap_bprm_creds_from_file`).
    #[must_use]
    pub fn after_execution(self, change: ProgramChange, secure_bits: u32) -> CapabilitySets {
        let counts_root = secure_bits & SECBIT_NOROOT == 0;
        let is_roots = counts_root && (change.effective == 0 || change.real == 0);
        let given = if is_roots { self.bounding | self.inheritable } else { Capabilities::NONE };
        let given = if change.is_watched { given & self.permitted } else { given };
        let ambient = if change.ids_change { Capabilities::NONE } else { self.ambient };
        let permitted = given | ambient;
        let effective = if counts_root && change.effective == 0 { permitted } else { ambient };
        CapabilitySets { effective, permitted, ambient, ..self }
    }

    /// Whether the rights that `execve` gives are more than the caller's own, so that its environment is not to be trusted.
    pub fn are_raised(self, real_user: u32) -> bool {
        let is_ambient = self.permitted == self.ambient && self.effective == self.ambient;
        real_user != 0 && !is_ambient
    }
}

/// `PR_SET_SECUREBITS`: whether these bits may follow those. What is locked stays as it is.
pub fn may_follow(old: u32, new: u32) -> bool {
    let known: u64 = SECURE_BITS.iter().map(|(_, bit)| bit).sum();
    let locks = old & 0xaaaa_aaaa;
    let changes_locked = locks >> 1 & (old ^ new) != 0;
    !changes_locked && locks & !new == 0 && u64::from(new) & !known == 0
}
