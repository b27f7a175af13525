//! What the scheduler keeps of each processor: reached by that processor alone, without the kernel's lock.

use alloc::sync::Arc;

use machine::{LocalCell, LocalValue, Machine, NEVER, Nanos, NoFrames, PROCESSORS_MAX, ScheduleWords, Start};
use queue::procedures::{self, Chain, Runner};

use super::alarm::Alarms;
use super::idle::idle;
use super::timer::TimerCodes;
use crate::thread::Thread;

/// Procedures that can wait for the idle thread or the next timer interrupt.
pub const CHAINED_MOST: usize = 64;

/// A processor's part of the scheduler. The ready ring, its first thread and what code needs of it are in the machine's record.
pub struct PerProcessor {
    /// Runs while nobody is ready here.
    pub idle: Arc<Thread>,
    /// How many are ready, when the first alarm is due, when the timer goes off: shared with the machine.
    pub words: &'static ScheduleWords,
    pub alarms: LocalCell<Alarms>,
    /// The timer's handler, where it is code.
    pub timer_codes: LocalValue<Option<&'static TimerCodes>>,
    /// Alarms rung inside of the kernel that sleepers have taken note of.
    pub inside_seen: LocalValue<u64>,
    /// The timer's interrupt is overdue; see `Scheduler::serve_late_timer`.
    pub is_timer_late: LocalValue<bool>,
    /// When the running thread's account was last brought up to date.
    pub charged_at: LocalValue<Nanos>,
    /// What is to be done by somebody else, soon (S-44, S-47).
    pub chain: Chain,
    pub chained: LocalCell<Runner>,
}

impl PerProcessor {
    /// That of the processor that runs this, which has no alarms and nobody ready.
    pub fn new(machine: &'static dyn Machine) -> Result<PerProcessor, NoFrames> {
        let idle = Thread::new(machine.create_tte(Start::Kernel(idle))?);
        machine.set_idle(idle.tte());
        let words = machine.schedule_words();
        words.armed.store(NEVER, core::sync::atomic::Ordering::Relaxed);
        let (chain, chained) = procedures::pair(CHAINED_MOST);
        Ok(PerProcessor {
            idle,
            words,
            alarms: LocalCell::new(Alarms::new(words)),
            timer_codes: LocalValue::new(None),
            inside_seen: LocalValue::new(0),
            is_timer_late: LocalValue::new(false),
            charged_at: LocalValue::new(machine.now()),
            chain,
            chained: LocalCell::new(chained),
        })
    }
}

/// The parts of all processors.
pub struct Processors([PerProcessor; PROCESSORS_MAX]);

impl Processors {
    /// The first processor's part; the others have none, because they do not run.
    pub fn new(machine: &'static dyn Machine) -> Result<Processors, NoFrames> {
        let first = PerProcessor::new(machine)?;
        Ok(Processors([first]))
    }

    /// That of the processor that runs this.
    #[inline(always)]
    pub fn this(&self, machine: &dyn Machine) -> &PerProcessor {
        if PROCESSORS_MAX == 1 { &self.0[0] } else { &self.0[machine.number().0 as usize] }
    }
}
