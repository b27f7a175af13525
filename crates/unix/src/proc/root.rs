//! /proc itself: fixed names first, then a directory for each process.

use alloc::format;
use alloc::sync::Arc;

use core::fmt::Arguments;

use abi::Errno;
use kernel::file::{Data, LinkTarget, Listed, Node, NodeKind, VirtualDirectory, Visit};
use machine::try_arc_slice;

use super::process::{Member, PROCESS};
use super::text::written;
use super::tree::parse_number;
use super::tree::{Entry, Subject, Table, Whole, file, link, produce, show, table};
use super::{processor, settings, synthesis, system};
use crate::emulator::Unix;
use crate::task::thread::Task;

pub struct Root {
    pub unix: &'static Unix,
}

/// Cookies of processes lie behind those of the table: this plus the process id.
const FIRST_PROCESS: u64 = 256;

const ENTRIES: &[Entry<Whole>] = &[
    file("buddyinfo", system::buddyinfo),
    file("cgroups", system::cgroups),
    file("cmdline", system::command_line),
    file("consoles", system::consoles),
    file("cpuinfo", processor::cpuinfo),
    file("devices", system::devices),
    file("diskstats", system::empty),
    file("filesystems", system::filesystems),
    file("interrupts", system::interrupts),
    file("loadavg", system::loadavg),
    file("locks", system::empty),
    file("meminfo", system::meminfo),
    file("modules", system::empty),
    link("mounts", |_, _| Ok(LinkTarget::Path(b"self/mounts".as_slice().into()))),
    link("net", |_, _| Ok(LinkTarget::Path(b"self/net".as_slice().into()))),
    file("partitions", system::partitions),
    link("self", |unix, _| path(format_args!("{}", caller(unix)?.process.pid))),
    file("softirqs", system::softirqs),
    file("stat", system::stat),
    file("swaps", system::swaps),
    table("synthesis", synthesis::ENTRIES),
    table("sys", settings::ENTRIES),
    table("sysvipc", system::SYSVIPC),
    link("thread-self", |unix, _| {
        let task = caller(unix)?;
        path(format_args!("{}/task/{}", task.process.pid, task.tid))
    }),
    table("tty", system::TTY),
    file("uptime", system::uptime),
    file("version", system::version),
    file("vmstat", system::vmstat),
    file("zoneinfo", system::empty),
];

/// Who looks. Error: `ENOENT` while no program runs yet.
pub fn caller(unix: &Unix) -> Result<Arc<Task>, Errno> {
    unix.tasks.of_thread(unix.machine.current_tte()).ok_or(Errno::ENOENT)
}

/// The target of a link that is plain text.
pub fn path(text: Arguments<'_>) -> Result<LinkTarget, Errno> {
    Ok(LinkTarget::Path(try_arc_slice(&written(text)?)?))
}

impl Root {
    fn fixed(&self) -> Table<Whole> {
        Table { unix: self.unix, subject: Whole, entries: ENTRIES }
    }
}

impl VirtualDirectory for Root {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let Some(number) = parse_number(name) else { return self.fixed().lookup(this, name) };
        let member = Member::find(self.unix, number).ok_or(Errno::ENOENT)?;
        let owner = member.owner();
        let directory = Table { unix: self.unix, subject: member, entries: PROCESS };
        let data = Data::VirtualDirectory(Arc::new(directory));
        Ok(produce(self.unix, this, name, (NodeKind::Directory, 0o555), owner, data))
    }

    fn list(&self, this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
        for (cookie, entry) in (0..).zip(ENTRIES).skip(from as usize) {
            if show(this, cookie, entry.kind(), entry.name.as_bytes(), visit) == Visit::Stop {
                return;
            }
        }
        for process in self.unix.tasks.processes() {
            let cookie = FIRST_PROCESS + u64::from(process.pid);
            #[expect(clippy::disallowed_macros, reason = "a number")]
            let name = format!("{}", process.pid);
            if cookie >= from && show(this, cookie, NodeKind::Directory, name.as_bytes(), visit) == Visit::Stop {
                return;
            }
        }
    }

    fn subdirectories(&self) -> u32 {
        self.fixed().subdirectories() + self.unix.tasks.process_count() as u32
    }
}
