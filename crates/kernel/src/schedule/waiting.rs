//! Waiting queues, one per resource (S-56).

use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::KernelCell;

use crate::thread::Thread;

/// Why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Event,
    Deadline,
}

/// Threads that wait for one resource. Invariant: a thread is in a queue only while it sleeps, or
/// between being woken and looking around.
pub struct WaitQueue(KernelCell<Vec<Arc<Thread>>>);

impl WaitQueue {
    pub const fn new() -> WaitQueue {
        WaitQueue(KernelCell::new(Vec::new()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(super) fn enter(&self, thread: &Arc<Thread>) {
        self.0.borrow_mut().push(thread.clone());
    }

    pub(super) fn leave(&self, thread: &Arc<Thread>) {
        self.0.borrow_mut().retain(|waiter| !Arc::ptr_eq(waiter, thread));
    }

    pub(super) fn drain(&self, mut each: impl FnMut(&Arc<Thread>)) {
        let waiters = core::mem::take(&mut *self.0.borrow_mut());
        for thread in waiters.iter().rev() {
            each(thread);
        }
        // The vector is put back for its capacity unless somebody has come meanwhile.
        let mut slot = self.0.borrow_mut();
        if slot.is_empty() {
            *slot = waiters;
            slot.clear();
        }
    }
}

impl Default for WaitQueue {
    fn default() -> WaitQueue {
        WaitQueue::new()
    }
}
