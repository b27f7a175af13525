//! Waiting queues, one per resource (S-56).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{KernelCell, NoMemory, TryGrow};

use crate::thread::Thread;

/// Why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Event,
    Deadline,
}

/// Threads that wait for one resource. Invariant: a thread is in a queue only while it sleeps, or
/// between being woken and looking around; or it listens (`Scheduler::listen`).
pub struct WaitQueue {
    waiters: KernelCell<Vec<Arc<Thread>>>,
    /// How many wait: a word that synthesized code tests before it changes the resource by itself.
    count: AtomicU64,
}

impl WaitQueue {
    pub const fn new() -> WaitQueue {
        WaitQueue { waiters: KernelCell::new(Vec::new()), count: AtomicU64::new(0) }
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.borrow().is_empty()
    }

    /// Address of the word that is zero while nobody waits.
    pub fn count_word(&self) -> u64 {
        &raw const self.count as u64
    }

    fn note(&self) {
        self.count.store(self.waiters.borrow().len() as u64, Ordering::Release);
    }

    /// Once more by the same thread at once is no more than once: files share queues.
    ///
    /// Error: no room; then nobody wakes the thread.
    pub(super) fn enter(&self, thread: &Arc<Thread>) -> Result<(), NoMemory> {
        if self.waiters.borrow().last().is_some_and(|last| Arc::ptr_eq(last, thread)) {
            return Ok(());
        }
        self.waiters.borrow_mut().try_push(thread.clone())?;
        self.note();
        Ok(())
    }

    /// Whether `thread` was not there.
    pub(super) fn enter_once(&self, thread: &Arc<Thread>) -> Result<bool, NoMemory> {
        let is_new = !self.waiters.borrow().iter().any(|waiter| Arc::ptr_eq(waiter, thread));
        if is_new {
            self.enter(thread)?;
        }
        Ok(is_new)
    }

    pub(super) fn leave(&self, thread: &Arc<Thread>) {
        self.waiters.borrow_mut().retain(|waiter| !Arc::ptr_eq(waiter, thread));
        self.note();
    }

    pub(super) fn drain(&self, mut each: impl FnMut(&Arc<Thread>)) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        loop {
            let mut waiters = self.waiters.borrow_mut();
            let (last, is_empty) = (waiters.pop(), waiters.is_empty());
            drop(waiters);
            last.iter().for_each(&mut each);
            if is_empty {
                break;
            }
        }
        self.count.store(0, Ordering::Release);
    }
}

impl Default for WaitQueue {
    fn default() -> WaitQueue {
        WaitQueue::new()
    }
}
