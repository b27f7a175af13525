//! One thread of a program.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use codestore::Code;
use kernel::call::CallCode;
use kernel::thread::Thread;
use machine::KernelCell;

use super::Process;

/// What a thread has opened lately, and the routines made for it.
#[derive(Default)]
pub struct OpenCache {
    /// Path and flags of the last open that a routine could do.
    pub last: Option<(Vec<u8>, u32)>,
    pub open: Option<Code<CallCode>>,
    pub close: Option<Code<CallCode>>,
}

/// Calls that a thread dispatches by descriptor in synthesized code.
pub const DESCRIPTOR_CALLS: [u64; 3] = [abi::nr::READ, abi::nr::WRITE, abi::nr::LSEEK];

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
    /// Which of [`DESCRIPTOR_CALLS`] are bound to the process's descriptor table.
    pub bound_descriptor_calls: [Cell<bool>; DESCRIPTOR_CALLS.len()],
    /// The synthesized `open` and `close` of this thread.
    pub opens: KernelCell<OpenCache>,
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
            bound_descriptor_calls: [const { Cell::new(false) }; DESCRIPTOR_CALLS.len()],
            opens: KernelCell::new(OpenCache::default()),
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

    /// What a synthesized `open` was folded from has changed (descriptor table, limits, credentials, root directory,
    /// terminal): the call is done in Rust again.
    pub fn unbind_open(&self) {
        let cache = core::mem::take(&mut *self.opens.borrow_mut());
        for (code, number) in [(&cache.open, abi::nr::OPENAT), (&cache.close, abi::nr::CLOSE)] {
            if code.is_some() {
                self.thread.tte().bind_call(number as usize, None);
            }
        }
    }

    /// The process has another descriptor table: the dispatch that knows the old one goes.
    pub fn unbind_descriptor_calls(&self) {
        self.unbind_open();
        for (bound, number) in self.bound_descriptor_calls.iter().zip(DESCRIPTOR_CALLS) {
            if bound.replace(false) {
                self.thread.tte().bind_call(number as usize, None);
            }
        }
    }

    /// Counts the thread out; true for the last one.
    pub fn leave_process(&self) -> bool {
        self.process.live_tasks.fetch_sub(1, Ordering::Relaxed) == 1
    }
}
