//! What scheduler, machine and the timer's interrupt share, by address.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::{AlarmEntry, Entry, Slot};

/// Not at any time.
pub const NEVER: u64 = u64::MAX;

/// An alarm, as the timer's handler knows it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Alarm<T> {
    pub at: u64,
    /// What is to be done.
    pub routine: Entry<AlarmEntry>,
    /// Among those of the same time it tells which was set first.
    pub number: u64,
    /// What Rust does at it.
    pub target: T,
}

/// Where the alarms are. The handler jumps to what it finds there, so it can only lead to alarms.
#[repr(transparent)]
pub struct AlarmsWord(AtomicU64);

impl AlarmsWord {
    const fn new() -> AlarmsWord {
        AlarmsWord(AtomicU64::new(0))
    }

    /// From now on the handler finds its alarms in `alarms`, which are given back to who keeps them.
    pub fn lead_to<T, const COUNT: usize>(
        &self,
        alarms: &'static mut [Alarm<T>; COUNT],
    ) -> &'static mut [Alarm<T>; COUNT] {
        const { assert!(size_of::<Alarm<T>>() == 32, "the handler shifts by 5") };
        self.0.store(alarms.as_ptr() as u64, Relaxed);
        alarms
    }

    /// The word's own address.
    pub fn address(&self) -> u64 {
        core::ptr::from_ref(&self.0) as u64
    }
}

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
    /// What `armed` was when it was set for a turn among several: as long as it is the same, the timer goes off within a quantum.
    pub soon: AtomicU64,
    /// Switches of threads that left by themselves.
    pub switches: AtomicU64,
    /// Switches made by the timer's interrupt alone (S-81).
    pub preemptions: AtomicU64,
    /// The alarms, the first one last, and their number: see the scheduler.
    pub alarms: AlarmsWord,
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
            soon: AtomicU64::new(0),
            switches: AtomicU64::new(0),
            preemptions: AtomicU64::new(0),
            alarms: AlarmsWord::new(),
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

/// What routines know of a waiting queue.
///
/// Invariant: `sleeper` is counted in `count` until it is linked in; it stands here until it runs, because its call is made anew then, and
/// others must know for which file.
#[repr(C)]
pub struct WaitWords {
    /// How many wait: a routine tests it before it changes by itself what they wait for.
    pub count: AtomicU64,
    /// The thread that sleeps here by code, or is woken and has not run yet, as the machine names it; 0: there is none.
    pub sleeper: AtomicU64,
}

impl WaitWords {
    pub const fn new() -> WaitWords {
        WaitWords { count: AtomicU64::new(0), sleeper: AtomicU64::new(0) }
    }
}

impl Default for WaitWords {
    fn default() -> WaitWords {
        WaitWords::new()
    }
}
