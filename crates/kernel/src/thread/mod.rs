//! Threads as the kernel sees them: a TTE of the machine, where it stands, and what is done to it from outside.
//!
//! ```text
//!             create             stop, at the next safe point
//!   (nothing) ──────► asleep ◄──► ready ──────────────────────► stopped
//!                      block, unblock ▲                            │
//!                                     └────────────────────────────┘
//!                                        start, or step: one instruction of the program
//! ```
//! A sleeping thread wakes for what it waits for, and for signals. A stopped thread wakes for nothing: alarms, signals
//! and devices find it in no ring and leave it there, until somebody starts it (S-52).

mod step;

pub use step::TRAP_FLAG;

use alloc::boxed::Box;
use alloc::sync::Arc;

use machine::{KernelCell, Nanos, Registers, Tte, TteId};

use crate::schedule::Scheduler;
use step::Step;

/// Where a thread stands. There is no general blocked queue (S-56): a sleeping thread is known only to
/// the waiting queues of what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In the ready ring (running, if it is the one the processor is in).
    Ready,
    /// In no ring.
    Asleep,
    /// In no ring, and only [`Thread::start`] or [`Thread::step`] links it in again.
    Stopped,
    /// Will never run again.
    Ended,
}

pub struct Thread {
    tte: Box<dyn Tte>,
    state: KernelCell<State>,
    /// The thread shall stand still from its next safe point on.
    shall_stop: KernelCell<bool>,
    step: KernelCell<Step>,
    /// Somebody has woken the thread while it did not sleep.
    was_woken: KernelCell<bool>,
}

impl Thread {
    pub fn new(tte: Box<dyn Tte>) -> Arc<Thread> {
        Arc::new(Thread {
            tte,
            state: KernelCell::new(State::Asleep),
            shall_stop: KernelCell::new(false),
            step: KernelCell::new(Step::default()),
            was_woken: KernelCell::new(false),
        })
    }

    pub fn id(&self) -> TteId {
        self.tte.id()
    }

    pub fn tte(&self) -> &dyn Tte {
        &*self.tte
    }

    pub fn state(&self) -> State {
        if self.tte.sleeps_by_code() { State::Asleep } else { self.state.get() }
    }

    /// For who is on the way to sleep, with others running meanwhile: [`crate::schedule::Scheduler::begin_wait`].
    pub(crate) fn note_wake(&self) {
        self.was_woken.set(true);
    }

    pub(crate) fn forget_wakes(&self) {
        self.was_woken.set(false);
    }

    pub(crate) fn was_woken(&self) -> bool {
        self.was_woken.get()
    }

    /// Time as the running thread, up to its last switch: [`crate::schedule::Scheduler::ran`] is exact.
    pub fn ran(&self) -> Nanos {
        self.tte.ran()
    }

    /// Stop (S-52): the thread leaves the ready ring at its next safe point ([`Scheduler::safe_point`]). The caller sees
    /// to it that the thread gets there.
    pub fn stop(&self) {
        self.shall_stop.set(true);
    }

    /// Start (S-52): a stopped thread goes on; one that has not come to its safe point yet does not stop there.
    pub fn start(self: &Arc<Thread>, scheduler: &Scheduler) {
        self.step.borrow_mut().is_wanted = false;
        self.go_on(scheduler);
    }

    /// Step (S-53): as `start`, for one instruction of the program. Then the debug exception (vector 1) comes up as
    /// `Upcalls::exception`, or, where the instruction was a call, the caller looks at [`Thread::is_stepping`].
    pub fn step(self: &Arc<Thread>, scheduler: &Scheduler) {
        self.step.borrow_mut().is_wanted = true;
        self.go_on(scheduler);
    }

    fn go_on(self: &Arc<Thread>, scheduler: &Scheduler) {
        self.shall_stop.set(false);
        scheduler.link_in(self, State::Stopped);
    }

    /// The thread was started for one instruction.
    pub fn is_stepping(&self) -> bool {
        self.step.get().is_wanted
    }

    /// Its own handler begins instead of the instruction that was to be stepped over; the flag is the handler's.
    pub fn end_step(&self, registers: &mut Registers) {
        self.step.borrow_mut().is_wanted = false;
        self.arrange_step(registers);
    }

    /// The running thread steps from its next instruction on.
    pub fn begin_step(&self, registers: &mut Registers) {
        self.step.borrow_mut().is_wanted = true;
        self.arrange_step(registers);
    }

    /// The flag that `step` set has outlived the step, because the thread was started anew while it ran: true, and it is
    /// gone.
    pub fn take_stale_step(&self, registers: &mut Registers) -> bool {
        let is_stale = self.step.get().is_stale();
        self.arrange_step(registers);
        is_stale
    }

    /// Brings the trap flag in the program's registers in line with how the thread was started. The running thread does
    /// so after each safe point.
    pub fn arrange_step(&self, registers: &mut Registers) {
        self.step.borrow_mut().arrange(registers);
    }

    /// The program's registers without the trap flag that `step` has set.
    pub fn without_step(&self, registers: &Registers) -> Registers {
        self.step.get().hidden(registers)
    }

    pub(crate) fn shall_stop(&self) -> bool {
        self.shall_stop.get()
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.set(state);
    }
}
