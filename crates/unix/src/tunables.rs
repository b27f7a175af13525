//! Limits that a privileged program may change while the machine runs (/proc/sys). Whoever keeps to a limit asks here, each
//! time: what is written takes effect with the next call.

use core::cell::Cell;

use abi::Errno;

/// A number between two others.
pub struct Tunable {
    value: Cell<u64>,
    least: u64,
    most: u64,
}

impl Tunable {
    const fn new(value: u64, least: u64, most: u64) -> Tunable {
        Tunable { value: Cell::new(value), least, most }
    }

    pub fn get(&self) -> u64 {
        self.value.get()
    }

    /// Error: `EINVAL` for a number outside its bounds.
    pub fn set(&self, value: u64) -> Result<(), Errno> {
        if !(self.least..=self.most).contains(&value) {
            return Err(Errno::EINVAL);
        }
        self.value.set(value);
        Ok(())
    }
}

pub struct Tunables {
    /// Events that wait in an inotify instance; then one says that some are missing.
    pub inotify_queued: Tunable,
    /// Instances and watches of one user; more are `EMFILE` and `ENOSPC`.
    pub inotify_instances: Tunable,
    pub inotify_watches: Tunable,
}

const INT_MAX: u64 = i32::MAX as u64;

impl Tunables {
    pub const fn new() -> Tunables {
        Tunables {
            inotify_queued: Tunable::new(16_384, 0, INT_MAX),
            inotify_instances: Tunable::new(128, 0, INT_MAX),
            inotify_watches: Tunable::new(8_192, 0, INT_MAX),
        }
    }
}
