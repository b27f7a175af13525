//! One thread of a program.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use abi::Errno;
use kernel::schedule::Scheduler;
use kernel::space::{Coming, FaultKind};
use kernel::thread::{State, Thread};
use machine::{KernelCell, KernelValue, NoMemory, TryGrow, VirtAddr, try_arc};

use crate::call::Function;
use crate::files::descriptors::{Descriptor, DescriptorTable};
use crate::files::open_file::OpenFile;
use crate::signal::altstack::AltStack;
use crate::signal::deliver;
use crate::signal::fault::TrapRecord;
use crate::signal::mask::ThreadMask;
use crate::signal::pending::Pending;
use crate::signal::restart::RestartKind;
use crate::task::bindings::Bindings;
use crate::task::process::Process;
use crate::task::tracing::Watch;

/// How `restart_syscall` goes on with a call that a stop interrupted: the function and its six arguments,
/// with times made absolute. A call that can go on sets it together with its `EINTR`.
#[derive(Clone, Copy)]
pub struct RestartBlock {
    pub function: Function,
    pub arguments: [u64; 6],
}

/// The program's `struct rseq`, as it was registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartArea {
    pub address: u64,
    pub bytes: u32,
    pub signature: u32,
}

/// What a thread said of how it wants to be scheduled. It is kept and told; the ready ring treats all alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// `SCHED_OTHER`, `SCHED_BATCH` or `SCHED_IDLE`.
    pub number: u32,
    /// What it makes starts with no urgency of its own (`SCHED_RESET_ON_FORK`).
    pub resets_on_fork: bool,
}

impl Policy {
    /// What a child or a new thread starts with.
    pub fn inherited(self) -> Policy {
        Policy { resets_on_fork: false, ..self }
    }
}

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
    /// A descriptor table that is not the process's: the thread was made without `CLONE_FILES`, or has unshared.
    own_files: KernelCell<Option<Arc<DescriptorTable>>>,
    /// What was behind a descriptor at which the thread slept by code when somebody closed it.
    kept_file: KernelCell<Option<(Descriptor, Arc<OpenFile>)>>,
    restart_area: KernelValue<Option<RestartArea>>,
    /// Address of the word that names a restartable sequence, for routines.
    sequence: AtomicU64,
    pub policy: KernelValue<Policy>,
    /// Synthesized calls of this thread.
    pub bindings: Bindings,
    /// This thread alone shall end.
    pub ending: KernelCell<bool>,
    /// How the thread alone ended, for its tracer.
    pub exit_status: KernelCell<u8>,
    /// Who traces the thread.
    pub watch: Watch,
    /// Signals sent to this thread.
    pub pending: KernelCell<Pending>,
    pub mask: KernelCell<ThreadMask>,
    pub alternate_stack: KernelCell<AltStack>,
    pub trap: KernelCell<TrapRecord>,
    /// Why the last page fault could not be resolved.
    pub last_fault: KernelCell<Option<FaultKind>>,
    /// What the last page fault, or an attempt of a call, waits for.
    awaited: KernelCell<Option<Awaited>>,
    is_awaiting: KernelValue<bool>,
    /// How the call that was interrupted wants to go on; settled before the thread goes back to its program.
    pub interrupted_call: KernelCell<RestartKind>,
    pub restart_block: KernelCell<Option<RestartBlock>>,
    /// Calls that were done in Rust: synthesized ones are not counted.
    calls: KernelValue<u64>,
    /// There is something to do before the thread goes back to its program.
    attention: Arc<AtomicU8>,
}

/// Names no sequence.
static NO_SEQUENCE: u64 = 0;

/// What a task waits for, and what its call returns when that fails.
#[derive(Clone)]
pub struct Awaited {
    pub coming: Coming,
    pub failure: Errno,
}

impl Task {
    /// There must be room for it in the process's list.
    pub fn new(tid: u32, process: &Arc<Process>, thread: &Arc<Thread>, name: [u8; 16]) -> Arc<Task> {
        let task = Arc::new(Task {
            tid,
            process: process.clone(),
            thread: thread.clone(),
            name: KernelCell::new(name),
            clear_child_tid: AtomicU64::new(0),
            robust_list: AtomicU64::new(0),
            restart_area: KernelValue::new(None),
            sequence: AtomicU64::new(&raw const NO_SEQUENCE as u64),
            own_files: KernelCell::new(None),
            kept_file: KernelCell::new(None),
            policy: KernelValue::new(Policy::default()),
            bindings: Bindings::default(),
            ending: KernelCell::new(false),
            exit_status: KernelCell::new(0),
            watch: Watch::default(),
            pending: KernelCell::new(Pending::new()),
            mask: KernelCell::new(ThreadMask::default()),
            alternate_stack: KernelCell::new(AltStack::default()),
            trap: KernelCell::new(TrapRecord::default()),
            last_fault: KernelCell::new(None),
            awaited: KernelCell::new(None),
            is_awaiting: KernelValue::new(false),
            interrupted_call: KernelCell::new(RestartKind::No),
            restart_block: KernelCell::new(None),
            calls: KernelValue::new(0),
            attention: Arc::default(),
        });
        process.live_tasks.fetch_add(1, Ordering::Relaxed);
        process.branch.tasks.set(process.branch.tasks.get() + 1);
        let mut tasks = process.tasks.borrow_mut();
        tasks.retain(|task| task.strong_count() > 0);
        tasks.put(Arc::downgrade(&task));
        drop(tasks);
        task.tag();
        task.thread.tte().set_attention_byte(task.attention.clone());
        task
    }

    /// The descriptors that the thread sees.
    pub fn files(&self) -> Arc<DescriptorTable> {
        self.own_files.borrow().clone().unwrap_or_else(|| self.process.files())
    }

    /// The open file behind a descriptor.
    #[inline(always)]
    pub fn file(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        if let Some(own) = &*self.own_files.borrow() {
            return own.get(descriptor);
        }
        self.process.file(descriptor)
    }

    /// As [`Task::file`] for a call that may have slept by code, and is made anew: the file is the one that was behind the descriptor
    /// when the call began.
    #[inline(always)]
    pub fn file_slept_at(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        if self.kept_file.borrow().is_some() {
            return self.take_kept(descriptor);
        }
        self.file(descriptor)
    }

    #[cold]
    fn take_kept(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        match self.kept_file.borrow_mut().take() {
            Some((at, file)) if at == descriptor => Some(file),
            _ => self.file(descriptor),
        }
    }

    /// The thread sleeps by code in a call on `descriptor` of `files`, which leads to `file` no more: the call goes on with the file.
    pub fn keep_file(&self, scheduler: &Scheduler, from: (&Arc<DescriptorTable>, Descriptor), file: &Arc<OpenFile>) {
        let (files, descriptor) = from;
        let at = Descriptor::from_register(self.thread.tte().registers().rdi);
        if at == descriptor && Arc::ptr_eq(files, &self.files()) {
            *self.kept_file.borrow_mut() = Some((descriptor, file.clone()));
            self.call_attention();
            scheduler.unblock(&self.thread);
        }
    }

    /// The thread's own table, if it has one.
    pub fn own_files(&self) -> Option<Arc<DescriptorTable>> {
        self.own_files.borrow().clone()
    }

    /// Gives the thread a table of its own, or takes it away; returns what it had.
    pub fn replace_own_files(&self, files: Option<Arc<DescriptorTable>>) -> Option<Arc<DescriptorTable>> {
        self.bindings.unbind_descriptor_calls(self.thread.tte());
        core::mem::replace(&mut *self.own_files.borrow_mut(), files)
    }

    /// From now on nobody else sees what the thread does to its descriptors.
    /// Error: `ENOMEM`.
    pub fn unshare_files(&self) -> Result<(), NoMemory> {
        let files = self.files();
        // One count is the process's or the thread's own, one is ours; any other is somebody who shares the table.
        let is_shared = Arc::strong_count(&files) > 2;
        if self.own_files.borrow().is_some() || self.process.live_tasks() > 1 {
            if is_shared || self.own_files.borrow().is_none() {
                drop(self.replace_own_files(Some(try_arc(files.duplicate()?)?)));
            }
        } else if is_shared {
            drop(self.process.set_files(try_arc(files.duplicate()?)?));
        }
        Ok(())
    }

    /// Routines find the process group with the running thread: a terminal serves the group in front.
    pub fn tag(&self) {
        self.thread.tte().set_tag(self.process.family.get().group.into());
    }

    /// Address of a word with the address of the word that names a restartable sequence.
    pub fn sequence_word(&self) -> u64 {
        self.sequence.as_ptr() as u64
    }

    pub fn restart_area(&self) -> Option<RestartArea> {
        self.restart_area.get()
    }

    /// The program's area for restartable sequences. The machine watches the word in it that names a sequence.
    pub fn set_restart_area(&self, area: Option<RestartArea>) {
        self.restart_area.set(area);
        let word = area.map_or(&raw const NO_SEQUENCE as u64, |area| area.address + 8);
        self.sequence.store(word, Ordering::Relaxed);
        self.thread.tte().set_preemption_word(area.map(|area| VirtAddr(area.address + 8)));
    }

    /// One more call is done in Rust.
    #[inline]
    pub fn count_call(&self) {
        self.calls.set(self.calls.get() + 1);
    }

    /// Calls that were done in Rust so far.
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// A sleep must end early: the thread shall end, a signal waits, or a tracer.
    pub fn is_interrupted(&self) -> bool {
        self.is_ending() || self.has_signal() || self.watch.has_trap()
    }

    /// Something that must come first was met, and nobody has waited for it yet.
    #[inline]
    pub fn is_awaiting(&self) -> bool {
        self.is_awaiting.get()
    }

    pub fn note_awaited(&self, awaited: Option<Awaited>) {
        self.is_awaiting.set(awaited.is_some());
        *self.awaited.borrow_mut() = awaited;
    }

    /// What was moved before it was met is enough.
    pub fn forget_awaited(&self) {
        if self.is_awaiting() {
            self.take_awaited();
        }
    }

    pub fn take_awaited(&self) -> Option<Awaited> {
        self.is_awaiting.set(false);
        self.awaited.borrow_mut().take()
    }

    /// The thread shall not go back to its program.
    pub fn is_ending(&self) -> bool {
        self.ending.get() || self.process.ending.get().is_some()
    }

    /// A signal that the thread does not block waits.
    pub fn has_signal(&self) -> bool {
        deliver::is_pending(&self.pending.borrow(), &self.process.pending.borrow(), &self.mask.borrow())
    }

    /// Has the thread end, wherever it sleeps or stands.
    pub fn wake_to_end(&self, scheduler: &Scheduler) {
        self.call_attention();
        if self.thread.state() == State::Stopped {
            self.thread.start(scheduler);
        } else {
            scheduler.unblock(&self.thread);
        }
    }

    /// Has the thread look around before it goes back to its program.
    pub fn call_attention(&self) {
        self.attention.store(1, Ordering::Relaxed);
    }

    /// Whether the thread must look around.
    #[inline]
    pub fn has_attention(&self) -> bool {
        self.attention.load(Ordering::Relaxed) != 0
    }

    /// As `has_attention`; forgets it.
    pub fn take_attention(&self) -> bool {
        let called = self.has_attention();
        self.attention.store(0, Ordering::Relaxed);
        called
    }

    /// Changes the signal mask; signals that waited behind it get their turn.
    pub fn change_mask<R>(&self, change: impl FnOnce(&mut ThreadMask) -> R) -> R {
        let mut mask = self.mask.borrow_mut();
        let result = change(&mut mask);
        let is_put_aside = mask.is_put_aside();
        drop(mask);
        if is_put_aside || self.has_signal() {
            self.call_attention();
        }
        result
    }

    /// Counts the thread out; true for the last one.
    pub fn leave_process(&self) -> bool {
        if self.tid == self.process.pid {
            self.process.last_name.set(*self.name.borrow());
        }
        let tasks = &self.process.branch.tasks;
        tasks.set(tasks.get() - 1);
        self.process.live_tasks.fetch_sub(1, Ordering::Relaxed) == 1
    }
}
