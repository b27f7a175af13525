//! Threads as the kernel sees them: a TTE of the machine and where it stands.

use alloc::boxed::Box;
use alloc::sync::Arc;

use machine::{KernelCell, Nanos, Tte, TteId};

/// Where a thread stands. There is no general blocked queue (S-56): a sleeping thread is known only to
/// the waiting queues of what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In the ready ring (running, if it is the one the processor is in).
    Ready,
    /// In no ring.
    Asleep,
    /// Will never run again.
    Ended,
}

pub struct Thread {
    tte: Box<dyn Tte>,
    state: KernelCell<State>,
}

impl Thread {
    pub fn new(tte: Box<dyn Tte>) -> Arc<Thread> {
        Arc::new(Thread { tte, state: KernelCell::new(State::Asleep) })
    }

    pub fn id(&self) -> TteId {
        self.tte.id()
    }

    pub fn tte(&self) -> &dyn Tte {
        &*self.tte
    }

    pub fn state(&self) -> State {
        self.state.get()
    }

    /// Time as the running thread, up to its last switch: [`crate::schedule::Scheduler::ran`] is exact.
    pub fn ran(&self) -> Nanos {
        self.tte.ran()
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.set(state);
    }
}
