//! Resource limits of a process.

use abi::process::{RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK};
use kernel::space::SpaceLimits;

use crate::limits::{DESCRIPTORS_DEFAULT, DESCRIPTORS_MAX, TASKS_MAX};

/// Soft and hard limit by resource number; `u64::MAX` is unlimited.
#[derive(Clone, Debug)]
pub struct Limits(pub [(u64, u64); 16]);

impl Default for Limits {
    fn default() -> Limits {
        const NONE: u64 = u64::MAX;
        let mut limits = [(NONE, NONE); 16];
        limits[3] = (8 << 20, NONE); // STACK
        limits[4] = (0, NONE); // CORE
        limits[6] = (TASKS_MAX as u64, TASKS_MAX as u64); // NPROC
        limits[7] = (DESCRIPTORS_DEFAULT, DESCRIPTORS_MAX); // NOFILE
        limits[8] = (8 << 20, 8 << 20); // MEMLOCK
        limits[11] = (4096, 4096); // SIGPENDING
        limits[12] = (819_200, 819_200); // MSGQUEUE
        limits[13] = (0, 0); // NICE
        limits[14] = (0, 0); // RTPRIO
        Limits(limits)
    }
}

impl Limits {
    /// RLIMIT_FSIZE: the largest file a process may make.
    pub fn file_bytes(&self) -> u64 {
        self.0[1].0
    }

    pub fn stack_bytes(&self) -> u64 {
        self.0[3].0
    }

    /// The limits that a quaspace watches.
    pub fn space(&self) -> SpaceLimits {
        SpaceLimits {
            address_space_bytes: self.0[RLIMIT_AS as usize].0,
            data_bytes: self.0[RLIMIT_DATA as usize].0,
            stack_bytes: self.0[RLIMIT_STACK as usize].0,
        }
    }

    /// RLIMIT_MEMLOCK.
    pub fn locked_bytes(&self) -> u64 {
        self.0[8].0
    }

    pub fn descriptors(&self) -> u64 {
        self.0[7].0
    }
}
