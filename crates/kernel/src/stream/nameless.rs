//! What a stream without a name in the file tree has in place of a node.

use core::sync::atomic::{AtomicU64, Ordering};

use machine::KernelValue;

use abi::Errno;
use abi::process::{CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER};

use crate::file::attributes::MODE_BITS;
use crate::file::credentials::{Access, Credentials};

/// A number that no other pipe or socket has had.
pub fn take_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// What every socket is beside what its family makes of it.
pub struct SocketRecord {
    pub number: u64,
    pub ownership: Ownership,
}

impl SocketRecord {
    pub fn new(user: u32, group: u32) -> SocketRecord {
        let ownership = Ownership::new(0o777);
        ownership.give(user, group);
        SocketRecord { number: take_number(), ownership }
    }
}

/// Whose a pipe or socket is and what its mode says. It decides nothing, for who has a descriptor may use it; programs
/// set it and ask for it.
pub struct Ownership {
    mode: KernelValue<u32>,
    user: KernelValue<u32>,
    group: KernelValue<u32>,
}

impl Ownership {
    pub fn new(mode: u32) -> Ownership {
        Ownership { mode: KernelValue::new(mode), user: KernelValue::new(0), group: KernelValue::new(0) }
    }

    /// Mode, user and group.
    pub fn get(&self) -> (u32, u32, u32) {
        (self.mode.get(), self.user.get(), self.group.get())
    }

    /// Who makes it is whose it is.
    pub fn give(&self, user: u32, group: u32) {
        self.user.set(user);
        self.group.set(group);
    }

    /// Whether the mode lets `who` do it, for who asks. Error: `EACCES`.
    pub fn permit(&self, who: &Credentials, access: Access) -> Result<(), Errno> {
        let (mode, user, group) = self.get();
        let shift = match () {
            _ if user == who.user => 6,
            _ if who.in_group(group) => 3,
            _ => 0,
        };
        let granted = access.bits() & !(mode >> shift) == 0;
        let overrides = who.can(CAP_DAC_OVERRIDE) && (!access.execute || mode & 0o111 != 0);
        if granted || overrides { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Error: `EPERM`.
    pub fn set_mode(&self, who: &Credentials, mode: u32) -> Result<(), Errno> {
        if !who.can(CAP_FOWNER) && who.user != self.user.get() {
            return Err(Errno::EPERM);
        }
        self.mode.set(mode & MODE_BITS);
        Ok(())
    }

    /// `None` leaves one. Error: `EPERM`.
    pub fn set_owner(&self, who: &Credentials, user: Option<u32>, group: Option<u32>) -> Result<(), Errno> {
        let is_own = who.user == self.user.get();
        let user_stays = user.is_none_or(|user| is_own && user == self.user.get());
        let group_fits = group.is_none_or(|group| is_own && (group == self.group.get() || who.in_group(group)));
        let allowed = who.can(CAP_CHOWN) || user_stays && group_fits;
        if !allowed {
            return Err(Errno::EPERM);
        }
        self.give(user.unwrap_or(self.user.get()), group.unwrap_or(self.group.get()));
        Ok(())
    }
}
