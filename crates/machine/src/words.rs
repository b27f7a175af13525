//! What scheduler, machine and the timer's interrupt share, by address.

use core::sync::atomic::AtomicU64;

use crate::{AlarmEntry, Entry, Slot};

/// Not at any time.
pub const NEVER: u64 = u64::MAX;

/// The words of a processor's scheduler. Times are nanoseconds since boot.
///
/// Invariant: while the kernel changes alarms, `due` is [`NEVER`]: an interrupt that comes in meanwhile takes none.
#[repr(C)]
pub struct ScheduleWords {
    /// Threads in the ready ring.
    pub ready: AtomicU64,
    /// When the first alarm is due; `NEVER`: there is none. 0: every interrupt of the timer is the kernel's.
    pub due: AtomicU64,
    /// What to do then, on a machine with such code.
    pub routine: Slot<AlarmEntry>,
    /// When the timer was last set to go off; `NEVER`: not at all, or not by the scheduler.
    pub armed: AtomicU64,
    /// Switches made by the timer's interrupt alone (S-81).
    pub preemptions: AtomicU64,
    /// The alarms, the first one last, and their number: see the scheduler.
    pub alarms: AtomicU64,
    pub alarm_count: AtomicU64,
    /// Alarms that rang in the timer's interrupt alone, and those among them that rang in the midst of the kernel.
    pub rung: AtomicU64,
    pub rung_inside: AtomicU64,
}

impl ScheduleWords {
    pub const fn new() -> ScheduleWords {
        ScheduleWords {
            ready: AtomicU64::new(0),
            due: AtomicU64::new(0),
            routine: Slot::new(Entry::RUST),
            armed: AtomicU64::new(NEVER),
            preemptions: AtomicU64::new(0),
            alarms: AtomicU64::new(0),
            alarm_count: AtomicU64::new(0),
            rung: AtomicU64::new(0),
            rung_inside: AtomicU64::new(0),
        }
    }
}

impl Default for ScheduleWords {
    fn default() -> ScheduleWords {
        ScheduleWords::new()
    }
}
