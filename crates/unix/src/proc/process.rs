//! /proc/PID and /proc/PID/task/TID.

use alloc::format;
use alloc::sync::{Arc, Weak};

use abi::Errno;
use kernel::file::{Data, LinkTarget, Listed, NewNode, Node, NodeKind, VirtualDirectory, Visit};
use kernel::space::Space;
use machine::{KernelCell, try_arc_slice, try_text};

use super::root::caller;
use super::tree::parse_number;
use super::tree::{Entry, Subject, Table, What, file, link, private, produce, setting, show, table};
use super::{accounts, descriptors, memory, mounts, net, status};
use crate::calls::ptrace::attach::may_look_into;
use crate::emulator::Unix;
use crate::files::descriptors::DescriptorTable;
use crate::task::process::{Life, Process};
use crate::task::thread::Task;

/// A process, or one of its threads. It holds nothing alive: what is left of an open /proc/PID when the process
/// has gone answers `ESRCH`.
#[derive(Clone)]
pub struct Member {
    process: Weak<Process>,
    /// The thread that is meant; in /proc/PID, the one with the process's number.
    pub tid: u32,
    /// The directory is about the whole process.
    pub is_process: bool,
    /// The quaspace that a window was opened on.
    space: Option<Weak<KernelCell<Space>>>,
}

impl Member {
    /// The process with this number; or, as on Linux, the process that has a thread with this number.
    pub fn find(unix: &Unix, number: u32) -> Option<Member> {
        let process = unix.tasks.process(number);
        let process = process.or_else(|| unix.tasks.task(number).map(|task| task.process.clone()))?;
        (process.life.get() != Life::Reaped).then(|| Member {
            process: Arc::downgrade(&process),
            tid: number,
            is_process: true,
            space: None,
        })
    }

    /// The quaspace that the window was opened on, while it is the process's: who executes a program with more rights must not
    /// keep a way into its memory.
    pub fn space(&self, process: &Process) -> Option<Arc<KernelCell<Space>>> {
        process.space().filter(|now| self.space.as_ref().is_some_and(|space| space.as_ptr() == Arc::as_ptr(now)))
    }

    /// Error: `ESRCH` when it has been waited for.
    pub fn process(&self) -> Result<Arc<Process>, Errno> {
        let process = self.process.upgrade().ok_or(Errno::ESRCH)?;
        if process.life.get() == Life::Reaped { Err(Errno::ESRCH) } else { Ok(process) }
    }

    /// The thread; `None` when it has ended, as the first thread of a zombie has.
    pub fn task(&self, process: &Process) -> Option<Arc<Task>> {
        process.task(self.tid)
    }

    /// The descriptors that the thread sees.
    pub fn files(&self, process: &Process) -> Arc<DescriptorTable> {
        self.task(process).map_or_else(|| process.files(), |task| task.files())
    }

    /// The process, if the caller may look into it.
    /// Errors: `ESRCH`, `EACCES`.
    pub fn inspect(&self, unix: &Unix) -> Result<Arc<Process>, Errno> {
        let process = self.process()?;
        let may = may_look_into(&caller(unix)?.process, &process);
        if may { Ok(process) } else { Err(Errno::EACCES) }
    }
}

impl Subject for Member {
    fn owner(&self) -> (u32, u32) {
        let process = self.process.upgrade();
        process.map_or((0, 0), |process| (process.user_ids.get().effective, process.group_ids.get().effective))
    }

    /// Where others of its user may not look into the process, all is root's but what they may list, and its own directories
    /// for itself.
    fn keeper(&self, unix: &Unix, kind: NodeKind, mode: u32) -> (u32, u32) {
        let process = self.process.upgrade();
        let Some(process) = process.filter(|process| process.settings.get().dumpable != 1) else { return self.owner() };
        let is_own = || caller(unix).is_ok_and(|caller| Arc::ptr_eq(&caller.process, &process));
        let is_open = kind == NodeKind::Directory && (mode == 0o555 || is_own());
        if is_open { self.owner() } else { (0, 0) }
    }

    fn bound(&self) -> Member {
        Member {
            space: self.process().ok().and_then(|process| process.space()).map(|space| Arc::downgrade(&space)),
            ..self.clone()
        }
    }

    fn is_there(&self) -> bool {
        self.process().is_ok_and(|process| self.is_process || self.tid == process.pid || self.task(&process).is_some())
    }
}

const fn directory(
    name: &'static str,
    mode: u32,
    make: fn(&'static Unix, &Member) -> Arc<dyn VirtualDirectory>,
) -> Entry<Member> {
    Entry { name, mode, what: What::Directory(make) }
}

/// What a process and a thread both have.
macro_rules! entries {
    ($($own:expr),*) => {
        &[
            private("auxv", memory::auxv),
            file("cgroup", accounts::cgroup),
            file("cmdline", memory::command_line),
            setting("comm", status::name, status::set_name),
            link("cwd", working_directory),
            private("environ", memory::environment),
            link("exe", executable),
            directory("fd", 0o500, |unix, member| descriptors::links(unix, member)),
            directory("fdinfo", 0o555, |unix, member| descriptors::infos(unix, member)),
            private("io", accounts::io),
            file("limits", accounts::limits),
            file("maps", memory::maps),
            Entry { name: "mem", mode: 0o600, what: What::Window(memory::peek, memory::poke) },
            file("mountinfo", mounts::mountinfo),
            file("mounts", mounts::mounts),
            table("net", net::ENTRIES),
            table("ns", NAMESPACES),
            file("oom_score", accounts::oom_score),
            setting("oom_score_adj", accounts::oom_score_adjustment, accounts::set_oom_score_adjustment),
            private("personality", accounts::personality),
            link("root", root_directory),
            file("schedstat", accounts::schedule),
            file("smaps", memory::smaps),
            file("smaps_rollup", memory::smaps_rollup),
            file("stat", status::stat),
            file("statm", status::statm),
            file("status", status::status),
            file("wchan", accounts::waiting_channel),
            $($own),*
        ]
    };
}

pub const PROCESS: &[Entry<Member>] = entries![
    setting("coredump_filter", accounts::coredump_filter, accounts::set_coredump_filter),
    directory("task", 0o555, |unix, member| Arc::new(Tasks { unix, member: member.clone() })),
    Entry { mode: 0o666, ..setting("timerslack_ns", accounts::timer_slack, accounts::set_timer_slack) }
];

const THREAD: &[Entry<Member>] = entries![];

/// Everything is in the first namespace of its kind; the numbers are Linux's.
const NAMESPACES: &[Entry<Member>] = &[
    link("cgroup", |unix, member| namespace(unix, member, "cgroup", 4_026_531_835)),
    link("ipc", |unix, member| namespace(unix, member, "ipc", 4_026_531_839)),
    link("mnt", |unix, member| namespace(unix, member, "mnt", 4_026_531_841)),
    link("net", |unix, member| namespace(unix, member, "net", 4_026_531_840)),
    link("pid", |unix, member| namespace(unix, member, "pid", 4_026_531_836)),
    link("user", |unix, member| namespace(unix, member, "user", 4_026_531_837)),
    link("uts", |unix, member| namespace(unix, member, "uts", 4_026_531_838)),
];

/// A namespace is an empty file that can be opened, to name it by a descriptor.
fn namespace(unix: &Unix, member: &Member, kind: &str, number: u32) -> Result<LinkTarget, Errno> {
    member.inspect(unix)?;
    let new = NewNode { mode: 0o444, user: 0, group: 0, now: unix.wall_time() };
    let node = Node::nameless_as(unix.names.nameless(), number.into(), new)?;
    Ok(LinkTarget::Node(node, try_arc_slice(try_text(format_args!("{kind}:[{number}]"))?.as_bytes())?))
}

/// A link that leads straight to a node.
pub fn jump(unix: &Unix, node: &Arc<Node>) -> Result<LinkTarget, Errno> {
    let top = caller(unix)?.process.place.borrow().borrow().root.clone();
    Ok(LinkTarget::Node(node.clone(), try_arc_slice(&unix.names.path_of(node, &top)?)?))
}

fn executable(unix: &'static Unix, member: &Member) -> Result<LinkTarget, Errno> {
    let process = member.inspect(unix)?;
    process.space().ok_or(Errno::ENOENT)?;
    let node = process.executable.borrow().clone().ok_or(Errno::ENOENT)?;
    jump(unix, &node)
}

fn working_directory(unix: &'static Unix, member: &Member) -> Result<LinkTarget, Errno> {
    let process = member.inspect(unix)?;
    process.space().ok_or(Errno::ENOENT)?;
    let node = process.place.borrow().borrow().directory.clone();
    jump(unix, &node)
}

fn root_directory(unix: &'static Unix, member: &Member) -> Result<LinkTarget, Errno> {
    let process = member.inspect(unix)?;
    process.space().ok_or(Errno::ENOENT)?;
    let node = process.place.borrow().borrow().root.clone();
    jump(unix, &node)
}

/// /proc/PID/task
struct Tasks {
    unix: &'static Unix,
    member: Member,
}

impl Tasks {
    /// Numbers of the threads from `first` on, rising. The first thread of a process that still is to be waited for stays.
    fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let mut from = first;
        core::iter::from_fn(move || {
            let process = self.member.process().ok()?;
            let mut next = Some(process.pid).filter(|pid| *pid >= from);
            process.each_task(|task| {
                if task.tid >= from && next.is_none_or(|next| task.tid < next) {
                    next = Some(task.tid);
                }
            });
            from = next? + 1;
            next
        })
    }
}

impl VirtualDirectory for Tasks {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let tid = parse_number(name).filter(|tid| self.numbers_from(*tid).next() == Some(*tid)).ok_or(Errno::ENOENT)?;
        let subject = Member { tid, is_process: false, ..self.member.clone() };
        let data = Data::VirtualDirectory(Arc::new(Table { unix: self.unix, subject, entries: THREAD }));
        Ok(produce(self.unix, this, name, (NodeKind::Directory, 0o555), self.member.owner(), data))
    }

    #[expect(clippy::disallowed_macros, reason = "a number")]
    fn list(&self, this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
        // A thread's cookie is its number, so that a thread that ends between two calls hides no other.
        for tid in self.numbers_from(from as u32) {
            let name = format!("{tid}");
            if show(this, tid.into(), NodeKind::Directory, name.as_bytes(), visit) == Visit::Stop {
                return;
            }
        }
    }

    fn subdirectories(&self) -> u32 {
        self.numbers_from(0).count() as u32
    }
}
