//! What a socket's waiting threads are told, also by who must not know the socket.

use alloc::sync::Arc;

use ::net::{Failure, News, Watcher};
use abi::Errno;
use machine::{KernelCell, KernelValue, NoMemory, try_arc};

use super::number_of;
use crate::schedule::{Scheduler, WaitQueue};
use crate::stream::Progress;

pub struct Events {
    scheduler: &'static Scheduler,
    /// Woken when something has come, when it is connected, and when there is a connection to accept.
    pub readable: Arc<WaitQueue>,
    /// Woken when there is room again.
    pub writable: Arc<WaitQueue>,
    progress: KernelCell<Progress>,
    /// What the next call finds (`SO_ERROR`).
    pub error: KernelValue<Option<Errno>>,
}

impl Events {
    pub fn new(scheduler: &'static Scheduler) -> Result<Arc<Events>, NoMemory> {
        let (readable, writable) = (try_arc(WaitQueue::new())?, try_arc(WaitQueue::new())?);
        let (progress, error) = (KernelCell::new(Progress::default()), KernelValue::new(None));
        try_arc(Events { scheduler, readable, writable, progress, error })
    }

    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    pub fn arrived(&self) {
        self.progress.borrow_mut().arrived += 1;
        self.scheduler.wake(&self.readable);
    }

    pub fn departed(&self) {
        self.progress.borrow_mut().departed += 1;
        self.scheduler.wake(&self.writable);
    }

    /// Everything about the socket may have changed.
    pub fn changed(&self) {
        self.arrived();
        self.departed();
    }

    pub fn fail(&self, error: Errno) {
        self.error.set(Some(error));
        self.changed();
    }
}

impl Watcher for Events {
    fn changed(&self, news: News) {
        if news.arrived {
            self.arrived();
        }
        if news.departed {
            self.departed();
        }
    }

    fn failed(&self, failure: Failure) {
        self.fail(number_of(failure));
    }
}
