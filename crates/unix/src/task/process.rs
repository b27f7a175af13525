//! What the threads of a program share.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::process::WaitStatus;
use kernel::file::{Credentials, Node};
use kernel::schedule::WaitQueue;
use kernel::space::Space;
use machine::{KernelCell, Nanos};

use super::Task;
use crate::calls::Limits;
use crate::files::DescriptorTable;

/// Where a process stands in the file tree.
#[derive(Clone)]
pub struct Place {
    pub root: Arc<Node>,
    pub directory: Arc<Node>,
}

/// Real, effective and saved ids; the file-system ids are in the credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ids {
    pub real: u32,
    pub effective: u32,
    pub saved: u32,
}

/// Where a process stands between birth and burial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    Running,
    /// Its threads have gone; the parent has not asked yet.
    Zombie(WaitStatus),
    /// The parent has been told, or never wanted to know.
    Reaped,
}

/// A process's relations: process group, session, controlling terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family {
    pub group: u32,
    pub session: u32,
    /// The session has the one terminal as its controlling terminal.
    pub has_terminal: bool,
}

/// What `wait4` reports beside an exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    Stopped(u32),
    Continued,
}

/// Processor time and faults, of a process or of its waited-for children.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub user: Nanos,
    pub minor_faults: u64,
    pub peak_pages: u64,
}

pub struct Process {
    pub pid: u32,
    pub parent: KernelCell<Weak<Process>>,
    pub children: KernelCell<Vec<Arc<Process>>>,
    pub tasks: KernelCell<Vec<Weak<Task>>>,
    /// The quaspace. Shared between parent and child after `vfork`; gone when the process has ended.
    pub space: KernelCell<Option<Arc<KernelCell<Space>>>>,
    files: KernelCell<Arc<DescriptorTable>>,
    pub place: KernelCell<Place>,
    pub umask: AtomicU32,
    pub credentials: KernelCell<Credentials>,
    pub user_ids: KernelCell<Ids>,
    pub group_ids: KernelCell<Ids>,
    pub family: KernelCell<Family>,
    pub limits: KernelCell<Limits>,
    pub life: KernelCell<Life>,
    /// Set when the whole process shall end: its wait status.
    pub ending: KernelCell<Option<WaitStatus>>,
    /// Stopped by a signal.
    pub stopped: KernelCell<bool>,
    pub report: KernelCell<Option<Report>>,
    /// The parent sleeps here for news of its children.
    pub children_changed: WaitQueue,
    /// Threads of a stopped process sleep here.
    pub continued: WaitQueue,
    /// A `vfork` parent sleeps here until this process has its own quaspace or is gone.
    pub vfork_done: WaitQueue,
    pub is_vfork_child: KernelCell<bool>,
    /// The signal the parent gets at the end (SIGCHLD, or none for a thread-like child).
    pub exit_signal: AtomicU32,
    pub executable: KernelCell<Option<Arc<Node>>>,
    /// Addresses of arguments and environment on the stack, for /proc.
    pub arguments: KernelCell<(u64, u64)>,
    pub environment: KernelCell<(u64, u64)>,
    pub has_executed: KernelCell<bool>,
    pub started: Nanos,
    pub usage: KernelCell<Usage>,
    pub children_usage: KernelCell<Usage>,
    pub(super) live_tasks: AtomicU32,
}

/// What a new process starts with.
pub struct NewProcess {
    pub pid: u32,
    pub parent: Weak<Process>,
    pub space: Option<Arc<KernelCell<Space>>>,
    pub files: Arc<DescriptorTable>,
    pub place: Place,
    pub family: Family,
    pub limits: Limits,
    pub started: Nanos,
}

impl Process {
    /// The first process.
    pub fn new(new: NewProcess) -> Arc<Process> {
        Arc::new(Process {
            pid: new.pid,
            parent: KernelCell::new(new.parent),
            children: KernelCell::new(Vec::new()),
            tasks: KernelCell::new(Vec::new()),
            space: KernelCell::new(new.space),
            files: KernelCell::new(new.files),
            place: KernelCell::new(new.place),
            umask: AtomicU32::new(0o022),
            credentials: KernelCell::new(Credentials::root()),
            user_ids: KernelCell::new(Ids::default()),
            group_ids: KernelCell::new(Ids::default()),
            family: KernelCell::new(new.family),
            limits: KernelCell::new(new.limits),
            life: KernelCell::new(Life::Running),
            ending: KernelCell::new(None),
            stopped: KernelCell::new(false),
            report: KernelCell::new(None),
            children_changed: WaitQueue::new(),
            continued: WaitQueue::new(),
            vfork_done: WaitQueue::new(),
            is_vfork_child: KernelCell::new(false),
            exit_signal: AtomicU32::new(abi::signal::SIGCHLD),
            executable: KernelCell::new(None),
            arguments: KernelCell::new((0, 0)),
            environment: KernelCell::new((0, 0)),
            has_executed: KernelCell::new(false),
            started: new.started,
            usage: KernelCell::new(Usage::default()),
            children_usage: KernelCell::new(Usage::default()),
            live_tasks: AtomicU32::new(0),
        })
    }

    /// A child with copies of what a child inherits; `space` and `files` are its own or shared, as
    /// the caller decided.
    pub fn child(
        self: &Arc<Process>,
        pid: u32,
        space: Arc<KernelCell<Space>>,
        files: Arc<DescriptorTable>,
        started: Nanos,
    ) -> Arc<Process> {
        let child = Process::new(NewProcess {
            pid,
            parent: Arc::downgrade(self),
            space: Some(space),
            files,
            place: self.place.borrow().clone(),
            family: self.family.get(),
            limits: self.limits.borrow().clone(),
            started,
        });
        child.umask.store(self.umask.load(Ordering::Relaxed), Ordering::Relaxed);
        *child.credentials.borrow_mut() = self.credentials.borrow().clone();
        child.user_ids.set(self.user_ids.get());
        child.group_ids.set(self.group_ids.get());
        *child.executable.borrow_mut() = self.executable.borrow().clone();
        child.arguments.set(self.arguments.get());
        child.environment.set(self.environment.get());
        child
    }

    pub fn files(&self) -> Arc<DescriptorTable> {
        self.files.borrow().clone()
    }

    pub fn set_files(&self, files: Arc<DescriptorTable>) {
        *self.files.borrow_mut() = files;
    }

    /// The quaspace of a process that has not ended.
    pub fn space(&self) -> Option<Arc<KernelCell<Space>>> {
        self.space.borrow().clone()
    }

    pub fn live_tasks(&self) -> u32 {
        self.live_tasks.load(Ordering::Relaxed)
    }

    pub fn each_task(&self, mut visit: impl FnMut(&Arc<Task>)) {
        let tasks = self.tasks.borrow().clone();
        tasks.iter().filter_map(Weak::upgrade).for_each(|task| visit(&task));
    }

    pub fn is_zombie(&self) -> bool {
        self.life.get() != Life::Running
    }
}
