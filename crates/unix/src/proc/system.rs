//! The machine as a whole: memory, time, load.

use alloc::vec::Vec;
use core::fmt::Write;

use abi::Errno;
use kernel::space::{FramePool, Space};
use machine::{Nanos, PAGE_BYTES};

use super::status::{ticks, used};
use super::text::{Lines, constant, written};
use super::tree::{Entry, Whole, file, table};
use crate::calls::shm::shown_segments;
use crate::calls::sysv::shown::{messages as shown_messages, semaphores as shown_semaphores};
use crate::emulator::Unix;
use crate::task::process::Life;

type Text = Result<Vec<u8>, Errno>;

/// What `uname -r` says: the Linux whose calls these are.
pub const RELEASE: &str = "6.1.0-synthesis";
/// What `uname -v` says.
pub const VERSION: &str = "#1 Synthesis";

pub fn empty(_: &'static Unix, _: &Whole) -> Text {
    Ok(Vec::new())
}

pub fn version(_: &'static Unix, _: &Whole) -> Text {
    written(format_args!("Linux version {RELEASE} (synthesis@synthesis) (rustc) {VERSION}\n"))
}

pub fn command_line(_: &'static Unix, _: &Whole) -> Text {
    constant(b"synthesis\n")
}

fn kilobytes(pages: usize) -> u64 {
    pages as u64 * PAGE_BYTES as u64 / 1024
}

/// Memory in KB, of which programs and files may have the free part without the kernel's reserve.
struct Memory {
    total: u64,
    free: u64,
    available: u64,
    /// Pages of the memory-resident files.
    files: u64,
}

impl Memory {
    fn of(unix: &Unix) -> Memory {
        let pool: &FramePool = unix.pool;
        let free = kilobytes(pool.free_frames());
        let total = kilobytes(pool.total_frames()).max(free);
        let reserve = kilobytes(crate::limits::RESERVE_FRAMES);
        let files = kilobytes(unix.names.pages_in_use() as usize).min(total - free);
        Memory { total, free, available: free.saturating_sub(reserve), files }
    }
}

/// Bytes of anonymous memory of all programs, in KB.
fn anonymous_kilobytes(unix: &Unix) -> u64 {
    let processes = unix.tasks.processes();
    let spaces = processes.filter_map(|process| process.space());
    let anonymous = |space: &Space| space.usage().resident.saturating_sub(space.resident_shared_bytes());
    spaces.map(|space| anonymous(&space.borrow()) / 1024).sum()
}

/// Every line of Linux 6.1, most of them about things that are not here.
pub fn meminfo(unix: &'static Unix, _: &Whole) -> Text {
    let memory = Memory::of(unix);
    let anonymous = anonymous_kilobytes(unix).min(memory.total - memory.free);
    let code = unix.store.live_bytes() as u64 / 1024;
    let lines: &[(&str, u64)] = &[
        ("MemTotal:", memory.total),
        ("MemFree:", memory.free),
        ("MemAvailable:", memory.available),
        ("Buffers:", 0),
        ("Cached:", memory.files),
        ("SwapCached:", 0),
        ("Active:", anonymous),
        ("Inactive:", memory.files),
        ("Active(anon):", anonymous),
        ("Inactive(anon):", memory.files),
        ("Active(file):", 0),
        ("Inactive(file):", 0),
        ("Unevictable:", 0),
        ("Mlocked:", 0),
        ("SwapTotal:", 0),
        ("SwapFree:", 0),
        ("Zswap:", 0),
        ("Zswapped:", 0),
        ("Dirty:", 0),
        ("Writeback:", 0),
        ("AnonPages:", anonymous),
        ("Mapped:", 0),
        ("Shmem:", memory.files),
        ("KReclaimable:", 0),
        ("Slab:", code),
        ("SReclaimable:", 0),
        ("SUnreclaim:", code),
        ("KernelStack:", unix.tasks.task_count() as u64 * 16),
        ("PageTables:", 0),
        ("SecPageTables:", 0),
        ("NFS_Unstable:", 0),
        ("Bounce:", 0),
        ("WritebackTmp:", 0),
        ("CommitLimit:", unix.pool.rules.limit_bytes(unix.pool.total_frames()) / 1024),
        ("Committed_AS:", unix.pool.rules.charged_bytes() / 1024),
        ("VmallocTotal:", 34_359_738_367),
        ("VmallocUsed:", 0),
        ("VmallocChunk:", 0),
        ("Percpu:", 0),
        ("HardwareCorrupted:", 0),
        ("AnonHugePages:", 0),
        ("ShmemHugePages:", 0),
        ("ShmemPmdMapped:", 0),
        ("FileHugePages:", 0),
        ("FilePmdMapped:", 0),
    ];
    let mut text = Lines::default();
    for (label, amount) in lines {
        let _ = writeln!(text, "{label:<16}{amount:8} kB");
    }
    for label in ["HugePages_Total:", "HugePages_Free:", "HugePages_Rsvd:", "HugePages_Surp:"] {
        let _ = writeln!(text, "{label:<19}{:5}", 0);
    }
    for (label, amount) in
        [("Hugepagesize:", 2048), ("Hugetlb:", 0), ("DirectMap4k:", 0), ("DirectMap2M:", memory.total)]
    {
        let _ = writeln!(text, "{label:<16}{amount:8} kB");
    }
    text.whole()
}

/// The memory lines of a node of /sys.
pub fn node_meminfo(unix: &'static Unix, _: &Whole) -> Text {
    let memory = Memory::of(unix);
    let lines = [
        ("MemTotal:", memory.total),
        ("MemFree:", memory.free),
        ("MemUsed:", memory.total - memory.free),
        ("FilePages:", memory.files),
        ("AnonPages:", anonymous_kilobytes(unix)),
        ("Shmem:", memory.files),
    ];
    let mut text = Lines::default();
    for (label, amount) in lines {
        let _ = writeln!(text, "Node 0 {label:<15}{amount:9} kB");
    }
    text.whole()
}

/// Time programs have used, of processes that are there and those they have waited for.
fn busy(unix: &Unix) -> Nanos {
    let used = |process: &alloc::sync::Arc<crate::task::process::Process>| {
        used(unix, process).0 + process.children_usage.get().user.0
    };
    Nanos(unix.tasks.processes().map(|process| used(&process)).sum())
}

fn idle(unix: &Unix) -> Nanos {
    Nanos(unix.machine.now().0.saturating_sub(busy(unix).0))
}

pub fn uptime(unix: &'static Unix, _: &Whole) -> Text {
    let seconds = |time: Nanos| (time.0 / Nanos::PER_SECOND, time.0 % Nanos::PER_SECOND / 10_000_000);
    let (up, idle) = (seconds(unix.machine.now()), seconds(idle(unix)));
    written(format_args!("{}.{:02} {}.{:02}\n", up.0, up.1, idle.0, idle.1))
}

fn ready(unix: &Unix) -> usize {
    unix.scheduler.ready_count().max(1)
}

/// Nobody averages the load; the rest of the line is true.
pub fn loadavg(unix: &'static Unix, _: &Whole) -> Text {
    let (ready, tasks, last) = (ready(unix), unix.tasks.task_count(), unix.tasks.last_id());
    written(format_args!("0.00 0.00 0.00 {ready}/{tasks} {last}\n"))
}

pub fn stat(unix: &'static Unix, _: &Whole) -> Text {
    let (busy, idle) = (ticks(busy(unix)), ticks(idle(unix)));
    let mut text = Lines::default();
    let _ = writeln!(text, "cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 {busy} 0 0 {idle} 0 0 0 0 0 0");
    let _ = writeln!(text, "intr 0\nctxt {}", unix.scheduler.switch_count());
    let _ = writeln!(text, "btime {}\nprocesses {}", unix.epoch.get().0 / Nanos::PER_SECOND, unix.tasks.created());
    let _ = writeln!(text, "procs_running {}\nprocs_blocked 0", ready(unix));
    let _ = writeln!(text, "softirq 0 0 0 0 0 0 0 0 0 0 0");
    text.whole()
}

pub fn vmstat(unix: &'static Unix, _: &Whole) -> Text {
    let memory = Memory::of(unix);
    let pages = |kilobytes: u64| kilobytes * 1024 / PAGE_BYTES as u64;
    let processes = unix.tasks.processes();
    let live = processes.filter(|process| process.life.get() == Life::Running);
    let faults: u64 =
        live.map(|process| process.usage.get().minor_faults + process.children_usage.get().minor_faults).sum();
    let lines = [
        ("nr_free_pages", pages(memory.free)),
        ("nr_zone_inactive_anon", pages(memory.files)),
        ("nr_zone_active_anon", pages(anonymous_kilobytes(unix))),
        ("nr_anon_pages", pages(anonymous_kilobytes(unix))),
        ("nr_mapped", 0),
        ("nr_file_pages", pages(memory.files)),
        ("nr_dirty", 0),
        ("nr_writeback", 0),
        ("nr_shmem", pages(memory.files)),
        ("pgpgin", 0),
        ("pgpgout", 0),
        ("pswpin", 0),
        ("pswpout", 0),
        ("pgalloc_normal", 0),
        ("pgfree", 0),
        ("pgactivate", 0),
        ("pgdeactivate", 0),
        ("pgfault", faults),
        ("pgmajfault", 0),
        ("oom_kill", unix.want.kills.get()),
    ];
    let mut text = Lines::default();
    for (label, amount) in lines {
        let _ = writeln!(text, "{label} {amount}");
    }
    text.whole()
}

/// Free frames are not kept in blocks: all of them are of order 0.
pub fn buddyinfo(unix: &'static Unix, _: &Whole) -> Text {
    let mut text = Lines::default();
    let _ = write!(text, "Node 0, zone {:>8} {:6} ", "Normal", unix.pool.free_frames());
    for _ in 1..11 {
        let _ = write!(text, "{:6} ", 0);
    }
    text.push('\n');
    text.whole()
}

pub fn filesystems(_: &'static Unix, _: &Whole) -> Text {
    let kinds = ["sysfs", "tmpfs", "proc", "devtmpfs", "sockfs", "pipefs", "ramfs", "devpts"];
    let mut text = Lines::default();
    for kind in kinds {
        let _ = writeln!(text, "nodev\t{kind}");
    }
    text.whole()
}

pub fn devices(_: &'static Unix, _: &Whole) -> Text {
    let text =
        "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n136 pts\n\nBlock devices:\n";
    Ok(text.into())
}

pub fn consoles(_: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{:<21}{}\n", "console0", "-W- (EC    )    5:1"))
}

pub fn partitions(_: &'static Unix, _: &Whole) -> Text {
    constant(b"major minor  #blocks  name\n\n")
}

pub fn swaps(_: &'static Unix, _: &Whole) -> Text {
    constant(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
}

pub fn cgroups(_: &'static Unix, _: &Whole) -> Text {
    constant(b"#subsys_name\thierarchy\tnum_cgroups\tenabled\n")
}

/// Nobody counts interrupts.
pub fn interrupts(_: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{:11}CPU0       \nLOC: {:10}   Local timer interrupts\nERR: {:10}\n", "", 0, 0))
}

pub fn softirqs(_: &'static Unix, _: &Whole) -> Text {
    let names = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    let mut text = Lines::default();
    let _ = writeln!(text, "{:20}CPU0       ", "");
    for name in names {
        let _ = writeln!(text, "{name:>12}: {:10}", 0);
    }
    text.whole()
}

pub const SYSVIPC: &[Entry<Whole>] = &[
    file("msg", |unix, _| Ok(shown_messages(unix))),
    file("sem", |unix, _| Ok(shown_semaphores(unix))),
    file("shm", |unix, _| Ok(shown_segments(unix))),
];

/// Programs that turn a terminal's number into a name look here.
pub const TTY: &[Entry<Whole>] = &[
    file("drivers", |_, _| {
        let mut text = Lines::default();
        let mut row = |driver: &str, name: &str, major: u32, minors: &str, kind: &str| {
            let _ = writeln!(text, "{driver:<20} {name:<11} {major:3} {minors:>7} {kind}");
        };
        row("/dev/tty", "/dev/tty", 5, "0", "system:/dev/tty");
        row("/dev/console", "/dev/console", 5, "1", "system:console");
        row("/dev/ptmx", "/dev/ptmx", 5, "2", "system");
        row("pty_slave", "/dev/pts", 136, "0-255", "pty:slave");
        text.whole()
    }),
    table("ldisc", &[]),
];
