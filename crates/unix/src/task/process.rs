//! What the threads of a program share.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Bound;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use abi::Errno;
use abi::process::WaitStatus;
use kernel::file::{Credentials, Node};
use kernel::schedule::WaitQueue;
use kernel::space::Space;
use machine::{Entry, FileEntry, KernelCell, KernelValue, Nanos, Ordered, PAGE_BYTES};

use crate::calls::times::ProcessTimers;
use crate::files::descriptors::{Descriptor, DescriptorTable};
use crate::files::open_file::OpenFile;
use crate::signal::actions::Actions;
use crate::signal::pending::Pending;
use crate::signal::set::SignalSet;
use crate::task::capabilities::CapabilitySets;
use crate::task::limits::Limits;
use crate::task::settings::Settings;
use crate::task::thread::Task;
use crate::task::tracing::Ghost;
use crate::task::user_calls;

/// Where a process stands in the file tree, and the mode bits that its new files do not get (`struct fs_struct` on Linux).
#[derive(Clone)]
pub struct Place {
    pub root: Arc<Node>,
    pub directory: Arc<Node>,
    pub umask: u32,
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

impl Usage {
    /// Counts an ended child in.
    pub fn add(&mut self, other: &Usage) {
        self.user = self.user.saturating_add(other.user);
        self.minor_faults += other.minor_faults;
        self.peak_pages = self.peak_pages.max(other.peak_pages);
    }
}

pub struct Process {
    pub pid: u32,
    pub parent: KernelCell<Weak<Process>>,
    /// The children, the oldest first.
    children: KernelCell<Ordered<u64, Arc<Process>>>,
    /// Its place among its parent's children.
    child_number: KernelValue<u64>,
    pub tasks: KernelCell<Vec<Weak<Task>>>,
    /// The quaspace. Shared between parent and child after `vfork`; gone when the process has ended.
    pub space: KernelCell<Option<Arc<KernelCell<Space>>>>,
    /// Gone when the process has ended.
    files: KernelCell<Option<Arc<DescriptorTable>>>,
    /// What its descriptors lead to without a routine.
    slow: Entry<FileEntry>,
    /// Shared with others after `clone` with `CLONE_FS`.
    pub place: KernelCell<Arc<KernelCell<Place>>>,
    /// Signals sent to the process as a whole.
    pub pending: KernelCell<Pending>,
    /// Shared with others after `clone` with `CLONE_SIGHAND`.
    actions: KernelCell<Arc<KernelCell<Actions>>>,
    /// Sleep here until a signal is sent to the process or one of its threads (signalfd).
    pub signal_arrived: WaitQueue,
    pub settings: KernelCell<Settings>,
    /// With whose rights files are reached, and the effective capabilities.
    pub credentials: KernelCell<Credentials>,
    capabilities: KernelCell<CapabilitySets>,
    pub user_ids: KernelCell<Ids>,
    pub group_ids: KernelCell<Ids>,
    pub family: KernelCell<Family>,
    pub limits: KernelCell<Limits>,
    pub life: KernelCell<Life>,
    /// Set when the whole process shall end: its wait status.
    pub ending: KernelCell<Option<WaitStatus>>,
    /// Stopped by a signal.
    pub stopped: KernelCell<bool>,
    /// By which signal, if it is.
    pub stop_signal: KernelCell<u32>,
    pub report: KernelCell<Option<Report>>,
    /// Threads that this process traces.
    pub tracees: KernelCell<Vec<Weak<Task>>>,
    /// Those of them that have ended and have not been waited for.
    pub ghosts: KernelCell<Vec<Ghost>>,
    /// The process has ended, and its tracer is to be told first: its parent does not see it yet.
    pub is_held: KernelCell<bool>,
    /// Who traced the first thread when that ended.
    pub mourner: KernelCell<Option<(Weak<Process>, u32)>>,
    /// The process was continued and has not run since, which is when its parent gets the signal.
    pub continue_untold: KernelCell<bool>,
    /// The parent sleeps here for news of its children.
    pub children_changed: WaitQueue,
    /// A thread that executes a program sleeps here until the others have gone.
    pub threads_left: WaitQueue,
    /// A `vfork` parent sleeps here until this process has its own quaspace or is gone.
    pub vfork_done: WaitQueue,
    /// Who polls a descriptor of the process sleeps here until it ends.
    pub ended: WaitQueue,
    pub is_vfork_child: KernelCell<bool>,
    /// The signal the parent gets at the end (SIGCHLD, or none for a thread-like child).
    pub exit_signal: AtomicU32,
    pub executable: KernelCell<Option<Arc<Node>>>,
    /// While somebody has it, the file that runs is not to be written. Shared with children.
    pub execution: KernelCell<Option<Arc<Execution>>>,
    /// Addresses of arguments and environment on the stack, for /proc.
    pub arguments: KernelCell<(u64, u64)>,
    pub environment: KernelCell<(u64, u64)>,
    /// Stack pointer the program started with; the argument count is there. 0 if unknown.
    pub stack_start: KernelCell<u64>,
    /// Which of the first process's children it comes from.
    pub branch: Arc<Branch>,
    /// Notes of who looks for somebody to kill for want of memory.
    pub tally: KernelCell<Tally>,
    /// It was killed for want of memory.
    pub is_sentenced: KernelCell<bool>,
    /// Linux `oom_score_adj`, -1000 to 1000: who is killed for want of memory.
    pub oom_adjustment: AtomicI32,
    /// The name of the first thread, from when it has ended.
    pub last_name: KernelCell<[u8; 16]>,
    pub has_executed: KernelCell<bool>,
    /// Answers of the kernel stand in the program's vDSO.
    pub has_user_calls: KernelCell<bool>,
    pub started: Nanos,
    pub usage: KernelCell<Usage>,
    pub children_usage: KernelCell<Usage>,
    pub(crate) timers: ProcessTimers,
    /// From -20 to 19; kept and told, but the ready ring treats all alike.
    pub nice: KernelCell<i32>,
    pub(super) live_tasks: AtomicU32,
}

/// What a new process starts with.
pub struct NewProcess {
    pub pid: u32,
    pub parent: Weak<Process>,
    pub space: Option<Arc<KernelCell<Space>>>,
    pub files: Arc<DescriptorTable>,
    pub place: Arc<KernelCell<Place>>,
    pub actions: Arc<KernelCell<Actions>>,
    pub family: Family,
    pub limits: Limits,
    pub branch: Arc<Branch>,
    pub started: Nanos,
}

/// All that comes from one child of the first process, wherever it is now: who leaves its children to the first process, and begins a
/// session of its own, does not leave it.
#[derive(Default)]
pub struct Branch {
    /// Threads of its processes.
    pub tasks: KernelCell<usize>,
    /// What its processes hold together, when it was last asked.
    pub bytes: KernelCell<u64>,
    /// How often somebody of it was killed for want of memory within a while, and when last.
    pub strikes: KernelCell<(u32, Nanos)>,
}

/// What is known of a process while somebody is looked for.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// What it holds itself.
    pub own_bytes: u64,
    /// And all below it.
    pub bytes: u64,
    /// It is to be killed.
    pub is_meant: bool,
}

/// A file that a program runs from: it cannot be opened for writing meanwhile.
pub struct Execution(Arc<Node>);

impl Execution {
    /// Error: `ETXTBSY` while the file is open for writing.
    pub fn begin(node: &Arc<Node>) -> Result<Arc<Execution>, Errno> {
        node.begin_execute()?;
        Ok(Arc::new(Execution(node.clone())))
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.0.end_execute();
    }
}

/// What a child shares with its parent, or has a copy of.
pub struct ChildParts {
    pub space: Arc<KernelCell<Space>>,
    pub files: Arc<DescriptorTable>,
    pub place: Arc<KernelCell<Place>>,
    pub actions: Arc<KernelCell<Actions>>,
}

impl Process {
    /// The first process.
    pub fn new(new: NewProcess) -> Arc<Process> {
        Arc::new(Process {
            pid: new.pid,
            parent: KernelCell::new(new.parent),
            children: KernelCell::default(),
            child_number: KernelValue::new(0),
            tasks: KernelCell::new(Vec::new()),
            space: KernelCell::new(new.space),
            slow: new.files.slow(),
            files: KernelCell::new(Some(new.files)),
            place: KernelCell::new(new.place),
            pending: KernelCell::new(Pending::new()),
            actions: KernelCell::new(new.actions),
            signal_arrived: WaitQueue::new(),
            settings: KernelCell::new(Settings::default()),
            credentials: KernelCell::new(Credentials::root()),
            capabilities: KernelCell::new(CapabilitySets::of_user(0)),
            user_ids: KernelCell::new(Ids::default()),
            group_ids: KernelCell::new(Ids::default()),
            family: KernelCell::new(new.family),
            limits: KernelCell::new(new.limits),
            life: KernelCell::new(Life::Running),
            ending: KernelCell::new(None),
            stopped: KernelCell::new(false),
            stop_signal: KernelCell::new(0),
            report: KernelCell::new(None),
            tracees: KernelCell::new(Vec::new()),
            ghosts: KernelCell::new(Vec::new()),
            is_held: KernelCell::new(false),
            mourner: KernelCell::new(None),
            continue_untold: KernelCell::new(false),
            children_changed: WaitQueue::new(),
            threads_left: WaitQueue::new(),
            vfork_done: WaitQueue::new(),
            ended: WaitQueue::new(),
            is_vfork_child: KernelCell::new(false),
            exit_signal: AtomicU32::new(abi::signal::SIGCHLD),
            executable: KernelCell::new(None),
            execution: KernelCell::new(None),
            arguments: KernelCell::new((0, 0)),
            environment: KernelCell::new((0, 0)),
            stack_start: KernelCell::new(0),
            branch: new.branch,
            tally: KernelCell::new(Tally::default()),
            is_sentenced: KernelCell::new(false),
            oom_adjustment: AtomicI32::new(0),
            last_name: KernelCell::new([0; 16]),
            has_executed: KernelCell::new(false),
            has_user_calls: KernelCell::new(false),
            started: new.started,
            usage: KernelCell::new(Usage::default()),
            children_usage: KernelCell::new(Usage::default()),
            timers: ProcessTimers::new(),
            nice: KernelCell::new(0),
            live_tasks: AtomicU32::new(0),
        })
    }

    /// From now on it is the youngest of the children.
    pub fn adopt(&self, child: &Arc<Process>) {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        child.child_number.set(number);
        self.children.borrow_mut().put(number, child.clone());
    }

    /// It is no child any more.
    pub fn part_with(&self, child: &Process) {
        let removed = self.children.borrow_mut().remove(&child.child_number.get());
        drop(removed);
    }

    /// Shows all children. Nothing that is done meanwhile may add or remove one.
    pub fn each_child(&self, mut visit: impl FnMut(&Arc<Process>)) {
        self.children.borrow().iter().for_each(|(_, child)| visit(child));
    }

    /// All children leave.
    pub fn take_children(&self) -> impl Iterator<Item = Arc<Process>> {
        let mut children = core::mem::take(&mut *self.children.borrow_mut());
        core::iter::from_fn(move || children.pop_first().map(|(_, child)| child))
    }

    /// The first child that `fits`.
    pub fn find_child(&self, mut fits: impl FnMut(&Arc<Process>) -> bool) -> Option<Arc<Process>> {
        let children = self.children.borrow();
        children.range(Bound::Unbounded).map(|(_, child)| child).find(|child| fits(child)).cloned()
    }

    /// The process, if it is a child.
    pub fn is_parent_of(&self, process: &Process) -> bool {
        let children = self.children.borrow();
        children.get(&process.child_number.get()).is_some_and(|child| core::ptr::eq(&**child, process))
    }

    /// A child of `parent` with copies of what a child inherits; quaspace, descriptors, place and actions are
    /// its own or shared, as the caller decided.
    pub fn child(
        self: &Arc<Process>,
        parent: Weak<Process>,
        pid: u32,
        parts: ChildParts,
        started: Nanos,
    ) -> Arc<Process> {
        let child = Process::new(NewProcess {
            pid,
            parent,
            space: Some(parts.space),
            files: parts.files,
            place: parts.place,
            actions: parts.actions,
            family: self.family.get(),
            limits: self.limits.borrow().clone(),
            branch: if self.pid == 1 { Arc::default() } else { self.branch.clone() },
            started,
        });
        *child.credentials.borrow_mut() = self.credentials.borrow().clone();
        child.capabilities.set(self.capabilities.get());
        child.user_ids.set(self.user_ids.get());
        child.group_ids.set(self.group_ids.get());
        child.settings.set(self.settings.get().inherited());
        *child.executable.borrow_mut() = self.executable.borrow().clone();
        *child.execution.borrow_mut() = self.execution.borrow().clone();
        child.nice.set(self.nice.get());
        child.arguments.set(self.arguments.get());
        child.environment.set(self.environment.get());
        child.stack_start.set(self.stack_start.get());
        child.oom_adjustment.store(self.oom_adjustment.load(Ordering::Relaxed), Ordering::Relaxed);
        child
    }

    /// The first process is a user's.
    pub fn belong_to(&self, credentials: Credentials) {
        self.user_ids.set(Ids { real: credentials.user, effective: credentials.user, saved: credentials.user });
        self.group_ids.set(Ids { real: credentials.group, effective: credentials.group, saved: credentials.group });
        let sets = CapabilitySets::of_user(credentials.user);
        *self.credentials.borrow_mut() = credentials;
        self.hold(sets);
    }

    pub fn capabilities(&self) -> CapabilitySets {
        self.capabilities.get()
    }

    /// From now on the process has these capabilities.
    pub fn hold(&self, sets: CapabilitySets) {
        let before = self.capabilities.get();
        self.capabilities.set(sets);
        self.credentials.borrow_mut().capabilities = sets.effective;
        if before.effective != sets.effective {
            self.unbind_opens();
        }
    }

    /// Whether the process may do what needs this capability.
    pub fn can(&self, capability: u32) -> bool {
        self.capabilities.borrow().effective.has(capability)
    }

    /// What synthesized opens were folded from has changed.
    pub fn unbind_opens(&self) {
        self.each_task(|task| task.bindings.unbind_open(task.thread.tte()));
    }

    /// Who the process is has changed: constant calls and permissions are looked at again, and the tags of its threads.
    pub fn unbind_identity(&self) {
        self.unbind_opens();
        user_calls::withdraw(self);
        self.each_task(|task| task.tag());
        self.each_task(|task| task.bindings.unbind_constants(task.thread.tte()));
    }

    /// The descriptors; an empty table for a process that has ended.
    pub fn files(&self) -> Arc<DescriptorTable> {
        self.files.borrow().clone().unwrap_or_else(|| Arc::new(DescriptorTable::new(self.slow)))
    }

    /// The same, while it has one.
    pub fn table(&self) -> Option<Arc<DescriptorTable>> {
        self.files.borrow().clone()
    }

    /// All descriptor tables of the process's threads; one that several have is shown several times.
    pub fn each_files(&self, mut visit: impl FnMut(&Arc<DescriptorTable>)) {
        if let Some(files) = self.files.borrow().clone() {
            visit(&files);
        }
        self.each_task(|task| task.own_files().iter().for_each(&mut visit));
    }

    /// The open file behind a descriptor.
    #[inline(always)]
    pub fn file(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        self.files.borrow().as_ref()?.get(descriptor)
    }

    /// Gives the process another table; returns the one it had, for the caller to drop.
    pub fn set_files(&self, files: Arc<DescriptorTable>) -> Option<Arc<DescriptorTable>> {
        self.each_task(|task| task.bindings.unbind_descriptor_calls(task.thread.tte()));
        self.files.borrow_mut().replace(files)
    }

    /// Takes the descriptors away at the end of the process; the caller drops them.
    pub fn take_files(&self) -> Option<Arc<DescriptorTable>> {
        self.each_task(|task| task.bindings.unbind_descriptor_calls(task.thread.tte()));
        self.files.borrow_mut().take()
    }

    pub fn actions(&self) -> Arc<KernelCell<Actions>> {
        self.actions.borrow().clone()
    }

    pub fn set_actions(&self, actions: Arc<KernelCell<Actions>>) {
        self.each_task(|task| task.bindings.unbind_signals(task.thread.tte()));
        *self.actions.borrow_mut() = actions;
    }

    /// Removes these signals from all queues of the process and its threads.
    pub fn flush_signals(&self, signals: SignalSet) {
        if !signals.is_empty() {
            self.pending.borrow_mut().flush(signals);
            self.each_task(|task| task.pending.borrow_mut().flush(signals));
        }
    }

    /// The quaspace of a process that has not ended.
    pub fn space(&self) -> Option<Arc<KernelCell<Space>>> {
        self.space.borrow().clone()
    }

    /// Notes the most memory that a quaspace held, before it goes.
    pub fn note_peak(&self, space: &KernelCell<Space>) {
        let pages = space.borrow().resident_peak_bytes() / PAGE_BYTES as u64;
        let mut usage = self.usage.borrow_mut();
        usage.peak_pages = usage.peak_pages.max(pages);
    }

    /// Address of the word that counts the threads, of 32 bits.
    pub fn live_tasks_word(&self) -> u64 {
        self.live_tasks.as_ptr() as u64
    }

    pub fn live_tasks(&self) -> u32 {
        self.live_tasks.load(Ordering::Relaxed)
    }

    pub fn each_task(&self, mut visit: impl FnMut(&Arc<Task>)) {
        let mut at = 0;
        while let Some(task) = self.task_at(at) {
            at += 1;
            task.iter().for_each(&mut visit);
        }
    }

    /// The name of its first thread, NUL-padded; the last it had.
    pub fn name(&self) -> [u8; 16] {
        self.task(self.pid).map_or(self.last_name.get(), |task| *task.name.borrow())
    }

    /// So nothing is borrowed while tasks are shown, and there is no copy: there may be no memory for one.
    fn task_at(&self, place: usize) -> Option<Option<Arc<Task>>> {
        self.tasks.borrow().get(place).map(Weak::upgrade)
    }

    /// The thread with this number.
    pub fn task(&self, tid: u32) -> Option<Arc<Task>> {
        self.tasks.borrow().iter().filter_map(Weak::upgrade).find(|task| task.tid == tid)
    }

    pub fn is_zombie(&self) -> bool {
        self.life.get() != Life::Running
    }
}
