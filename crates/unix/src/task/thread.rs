//! One thread of a program.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use kernel::thread::Thread;
use machine::KernelCell;

use super::Process;

pub struct Task {
    pub tid: u32,
    pub process: Arc<Process>,
    pub thread: Arc<Thread>,
    /// The name in /proc and `prctl`, NUL-padded.
    pub name: KernelCell<[u8; 16]>,
    /// Cleared and woken at exit (`set_tid_address`).
    pub clear_child_tid: AtomicU64,
    /// Head of the robust futex list.
    pub robust_list: AtomicU64,
    /// This thread alone shall end.
    pub ending: KernelCell<bool>,
}

impl Task {
    pub fn new(tid: u32, process: &Arc<Process>, thread: &Arc<Thread>, name: [u8; 16]) -> Arc<Task> {
        let task = Arc::new(Task {
            tid,
            process: process.clone(),
            thread: thread.clone(),
            name: KernelCell::new(name),
            clear_child_tid: AtomicU64::new(0),
            robust_list: AtomicU64::new(0),
            ending: KernelCell::new(false),
        });
        process.live_tasks.fetch_add(1, Ordering::Relaxed);
        let mut tasks = process.tasks.borrow_mut();
        tasks.retain(|task| task.strong_count() > 0);
        tasks.push(Arc::downgrade(&task));
        drop(tasks);
        task
    }

    /// A sleep must end early: the thread shall end, or a signal waits.
    pub fn is_interrupted(&self) -> bool {
        self.ending.get() || self.process.ending.get().is_some()
    }

    /// Counts the thread out; true for the last one.
    pub fn leave_process(&self) -> bool {
        self.process.live_tasks.fetch_sub(1, Ordering::Relaxed) == 1
    }
}
