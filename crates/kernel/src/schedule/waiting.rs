//! Waiting queues, one per resource (S-56).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use machine::{KernelCell, KernelValue, NoMemory, TryGrow, WaitWords};

use super::Scheduler;
use crate::thread::Thread;

/// Why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Event,
    Deadline,
}

/// Threads that wait for one resource. Invariant: a thread is in a queue only while it sleeps, or
/// between being woken and looking around; or it listens (`Scheduler::listen`). One that sleeps by code ([`machine::Sleeping`]) stands in
/// the words alone.
pub struct WaitQueue {
    waiters: KernelCell<Vec<Arc<Thread>>>,
    words: WaitWords,
    /// Counted as one more that waits.
    is_attended: KernelValue<bool>,
}

impl WaitQueue {
    pub const fn new() -> WaitQueue {
        WaitQueue {
            waiters: KernelCell::new(Vec::new()),
            words: WaitWords::new(),
            is_attended: KernelValue::new(false),
        }
    }

    /// Routines that look whether somebody waits here come to Rust from now on, or do no longer, whoever waits.
    pub fn attend(&self, is_attended: bool) {
        let was = self.is_attended.replace(is_attended);
        self.count(i64::from(is_attended) - i64::from(was));
    }

    pub fn is_empty(&self) -> bool {
        self.words.count.load(Ordering::Relaxed) == 0
    }

    /// Who sleeps here by code, or is woken and has not run yet, as the machine names it.
    pub fn sleeper(&self) -> Option<u64> {
        Some(self.words.sleeper.load(Ordering::Relaxed)).filter(|sleeper| *sleeper != 0)
    }

    /// Address of the words that routines know.
    pub fn words(&self) -> u64 {
        &raw const self.words as u64
    }

    /// Address of the word that is zero while nobody waits.
    pub fn count_word(&self) -> u64 {
        &raw const self.words.count as u64
    }

    /// So many threads have come, or gone.
    fn count(&self, more: i64) {
        let count = self.words.count.load(Ordering::Relaxed).wrapping_add_signed(more);
        self.words.count.store(count, Ordering::Release);
    }

    /// Once more by the same thread at once is no more than once: files share queues.
    ///
    /// Error: no room; then nobody wakes the thread.
    pub(super) fn enter(&self, thread: &Arc<Thread>) -> Result<(), NoMemory> {
        if self.waiters.borrow().last().is_some_and(|last| Arc::ptr_eq(last, thread)) {
            return Ok(());
        }
        self.waiters.borrow_mut().try_push(thread.clone())?;
        self.count(1);
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
        let mut waiters = self.waiters.borrow_mut();
        let before = waiters.len();
        waiters.retain(|waiter| !Arc::ptr_eq(waiter, thread));
        self.count(waiters.len() as i64 - before as i64);
    }

    pub(super) fn drain(&self, mut each: impl FnMut(&Arc<Thread>)) {
        if self.words.count.load(Ordering::Relaxed) == 0 {
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
        // Who sleeps here by code has been linked in before.
        self.words.count.store(self.is_attended.get().into(), Ordering::Release);
    }
}

impl Drop for WaitQueue {
    fn drop(&mut self) {
        if let (Some(sleeper), Some(scheduler)) = (self.sleeper(), Scheduler::the()) {
            scheduler.machine().forget_queue(sleeper);
        }
    }
}

impl Default for WaitQueue {
    fn default() -> WaitQueue {
        WaitQueue::new()
    }
}
