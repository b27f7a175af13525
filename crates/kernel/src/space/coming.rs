//! Pages that are on their way: from a disk, a network, whatever keeps a file's bytes.
//!
//! ```text
//!   who needs the page ──── Coming ────┐          ┌──── Arrival ──── who brings it
//!     sleeps, and tries again          └─ shared ─┘      fills the page, and tells
//! ```

use alloc::sync::Arc;

use abi::Errno;
use machine::{Held, KernelCell, NoMemory, try_arc};

use super::Page;
use crate::schedule::{Scheduler, WaitQueue};

/// The answer to the question for a page.
#[derive(Clone)]
pub enum Supply {
    /// Here it is.
    Now(Page),
    /// There is none: it reads as zeros.
    Hole,
    /// It is on its way. Whoever asked gives back all that it has borrowed, sleeps until it is here, and asks again.
    Wait(Coming),
}

impl Supply {
    /// The page, if it is here.
    pub fn now(self) -> Option<Page> {
        if let Supply::Now(page) = self { Some(page) } else { None }
    }
}

impl From<Option<Page>> for Supply {
    fn from(present: Option<Page>) -> Supply {
        present.map_or(Supply::Hole, Supply::Now)
    }
}

/// A page that somebody waits for.
#[derive(Clone)]
pub struct Coming(Arc<Expected>);

/// The duty to bring a page, or to take it away to where it is kept. Who drops it without a word has failed (`EIO`): nobody waits
/// for ever.
#[must_use]
pub struct Arrival {
    page: Page,
    expected: Arc<Expected>,
}

struct Expected {
    waiting: WaitQueue,
    /// How it ended; `None`: it is on its way.
    outcome: KernelCell<Option<Result<(), Errno>>>,
}

impl Coming {
    /// Both sides of the way of `page`.
    pub fn new(page: Page) -> Result<(Coming, Arrival), NoMemory> {
        let expected = try_arc(Expected { waiting: WaitQueue::new(), outcome: KernelCell::new(None) })?;
        Ok((Coming(expected.clone()), Arrival { page, expected }))
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Result<(), Errno>> {
        self.0.outcome.get()
    }

    /// Sleeps until the way has ended. The caller holds nothing that others may need, and looks at everything again.
    ///
    /// Errors: how it failed; `EINTR` when the thread is to end. Other signals wait until it is done.
    pub fn wait(&self, held: Held<'_>, scheduler: &Scheduler, is_ending: &dyn Fn() -> bool) -> Result<(), Errno> {
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            if is_ending() {
                return Err(Errno::EINTR);
            }
            scheduler.sleep(held, &[&self.0.waiting], None);
        }
    }
}

impl Arrival {
    /// The page to fill, or to read.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// It is done, or it failed. Whoever waits runs next.
    pub fn tell(self, outcome: Result<(), Errno>) {
        self.expected.outcome.set(Some(outcome));
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if self.expected.outcome.get().is_none() {
            self.expected.outcome.set(Some(Err(Errno::EIO)));
        }
        if let Some(scheduler) = Scheduler::the() {
            scheduler.wake(&self.expected.waiting);
        }
    }
}
