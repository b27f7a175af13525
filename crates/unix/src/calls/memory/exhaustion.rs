//! When memory is out: which calls are refused, and which process has to go.
//!
//! ```text
//!   free frames         or pages of the kernel's heap, where its addresses are used up first
//!     RESERVE_FRAMES      programs get no more pages: the largest process is ended
//!     CALL_FRAMES_MIN     calls that make the kernel keep more are refused: ENOMEM
//!     KERNEL_FRAMES_MIN   no more translation tables, no large kernel blocks
//!     0                   what is left is for small records, and enough to end programs
//! ```

use alloc::sync::Arc;

use abi::nr;
use abi::process::WaitStatus;
use kernel::space::FaultKind;
use machine::Nanos;

use crate::call::Call;
use crate::calls::life;
use crate::emulator::Unix;
use crate::limits::{CALL_FRAMES_MIN, FORK_FRAMES_MIN, FORK_RECORD_BYTES};
use crate::task::{Life, Process, Task};

/// How long an ended process may take to leave before another one is ended too.
const PATIENCE_NS: u64 = 2 * Nanos::PER_SECOND;
/// How long a thread that needs memory sleeps between two tries.
const RETRY_NS: u64 = Nanos::PER_SECOND / 1000;

/// Calls after which the kernel keeps more than before. Those that only give back, ask or move are served
/// even with the last frame: a program must be able to end, to close and to wait.
pub const GROWING: &[u64] = &[
    nr::OPEN,
    nr::OPENAT,
    nr::OPENAT2,
    nr::CREAT,
    nr::DUP,
    nr::DUP2,
    nr::DUP3,
    nr::FCNTL,
    nr::PIPE,
    nr::PIPE2,
    nr::SOCKET,
    nr::SOCKETPAIR,
    nr::ACCEPT,
    nr::ACCEPT4,
    nr::CONNECT,
    nr::SENDTO,
    nr::SENDMSG,
    nr::EPOLL_CREATE,
    nr::EPOLL_CREATE1,
    nr::EVENTFD,
    nr::EVENTFD2,
    nr::SIGNALFD,
    nr::SIGNALFD4,
    nr::TIMERFD_CREATE,
    nr::TIMER_CREATE,
    nr::INOTIFY_INIT,
    nr::INOTIFY_INIT1,
    nr::INOTIFY_ADD_WATCH,
    nr::MEMFD_CREATE,
    nr::FORK,
    nr::VFORK,
    nr::CLONE,
    nr::CLONE3,
    nr::EXECVE,
    nr::EXECVEAT,
    nr::MMAP,
    nr::MREMAP,
    nr::MPROTECT,
    nr::REMAP_FILE_PAGES,
    nr::MADVISE,
    nr::MLOCK,
    nr::MLOCK2,
    nr::MLOCKALL,
    nr::SHMGET,
    nr::SHMAT,
    nr::SEMGET,
    nr::SEMOP,
    nr::SEMTIMEDOP,
    nr::MSGGET,
    nr::MSGSND,
    nr::MQ_OPEN,
    nr::MQ_TIMEDSEND,
    nr::IO_SETUP,
    nr::IO_SUBMIT,
    nr::MKDIR,
    nr::MKDIRAT,
    nr::MKNOD,
    nr::MKNODAT,
    nr::LINK,
    nr::LINKAT,
    nr::SYMLINK,
    nr::SYMLINKAT,
    nr::RENAME,
    nr::RENAMEAT,
    nr::RENAMEAT2,
    nr::FALLOCATE,
    nr::FTRUNCATE,
    nr::TRUNCATE,
    nr::FLOCK,
    nr::SETXATTR,
    nr::RT_SIGQUEUEINFO,
];

/// Whether there is memory for a growing call; the kernel keeps the rest for what must not fail.
#[inline(never)]
pub fn admits(call: &Call<'_>, number: u64) -> bool {
    let needed = match number {
        nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3 => FORK_FRAMES_MIN + fork_frames(call.task),
        _ => CALL_FRAMES_MIN,
    };
    let lacks = || call.unix.pool.free_frames().min(call.unix.machine.heap_pages()) < needed;
    !lacks() || (call.unix.machine.reclaim() > 0 && !lacks())
}

/// Frames that a child's copies of the parent's records may take.
fn fork_frames(task: &Task) -> usize {
    let process = &task.process;
    let areas = process.space().map_or(0, |space| space.borrow().area_count());
    let records = areas + task.files().size();
    (records * FORK_RECORD_BYTES).div_ceil(machine::PAGE_BYTES)
}

/// Whether the task's last page fault found no frame; asked once.
pub fn take_starvation(task: &Task) -> bool {
    let starved = task.last_fault.get() == Some(FaultKind::OutOfMemory);
    if starved {
        task.last_fault.set(None);
    }
    starved
}

/// A page could not be supplied to `task`: the largest process is ended, and the task sleeps until there is
/// hope. Afterwards it tries again, or it is the one that was ended.
#[cold]
pub fn make_room(unix: &'static Unix, task: &Task) {
    if task.process.ending.get().is_some() || unix.machine.reclaim() > 0 {
        return;
    }
    let now = unix.machine.now();
    if !is_victim_leaving(unix, now) {
        let Some(victim) = largest_process(unix) else { return };
        end_victim(unix, &victim, now);
        if Arc::ptr_eq(&victim, &task.process) {
            return;
        }
    }
    unix.scheduler.sleep(&[], Some(now.saturating_add(Nanos(RETRY_NS))));
}

fn is_victim_leaving(unix: &Unix, now: Nanos) -> bool {
    let Some((pid, since)) = unix.victim.get() else { return false };
    let has_memory = unix.tasks.process(pid).is_some_and(|process| process.space().is_some());
    has_memory && now.0.saturating_sub(since.0) < PATIENCE_NS
}

fn occupied_bytes(process: &Process) -> u64 {
    process.space().map_or(0, |space| space.borrow().occupied_bytes())
}

/// The running process that takes most memory. The first program, whose end is the end of all, counts only if
/// it takes more than the others together.
fn largest_process(unix: &Unix) -> Option<Arc<Process>> {
    let processes = unix.tasks.processes();
    let is_running = |process: &&Arc<Process>| process.life.get() == Life::Running && process.ending.get().is_none();
    let (mut first, mut largest, mut others_bytes) = (None, None, 0);
    for process in processes.iter().filter(is_running) {
        let bytes = occupied_bytes(process);
        if process.pid == 1 {
            first = Some((bytes, process));
            continue;
        }
        others_bytes += bytes;
        // Of two that are as large, the younger one goes.
        if largest.is_none_or(|(most, _)| bytes >= most) {
            largest = Some((bytes, process));
        }
    }
    let chosen = first.filter(|(bytes, _)| *bytes > others_bytes).or(largest).or(first);
    chosen.map(|(_, process)| process.clone())
}

fn end_victim(unix: &'static Unix, victim: &Arc<Process>, now: Nanos) {
    let kibibytes = occupied_bytes(victim) / 1024;
    unix.log(format_args!("out of memory: killed process {} with {kibibytes} KiB", victim.pid));
    unix.victim.set(Some((victim.pid, now)));
    life::end_process(unix, victim, WaitStatus::Killed { signal: abi::signal::SIGKILL as u8, core: false });
}
