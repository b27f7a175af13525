//! When memory is out: which calls are refused, and which process has to go.
//!
//! ```text
//!   free frames         or pages of the kernel's heap, where its addresses are used up first
//!     RESERVE_FRAMES      programs get no more pages: somebody is killed (`sentence.rs`)
//!     CALL_FRAMES_MIN     calls that make the kernel keep more: somebody else is killed, or they are refused (ENOMEM)
//!     KERNEL_FRAMES_MIN   no more translation tables, no large kernel blocks
//!     0                   what is left is for small records, and enough to end programs
//! ```

use alloc::sync::Arc;

use abi::nr;
use kernel::schedule::WaitQueue;
use kernel::space::FaultKind;
use machine::{Held, KernelValue, Nanos};

use super::sentence::{self, Sentence};
use crate::call::Call;
use crate::emulator::Unix;
use crate::limits::{CALL_FRAMES_MIN, FORK_FRAMES_MIN, FORK_RECORD_BYTES, RESERVE_FRAMES};
use crate::task::process::Process;
use crate::task::thread::Task;

/// How long ended processes may take to leave before another one is ended too.
const PATIENCE_NS: u64 = 2 * Nanos::PER_SECOND;
/// For how long a process that was refused is refused again, before somebody looks who holds most now.
const REFUSAL_NS: u64 = Nanos::PER_SECOND / 100;
/// With so many free frames nobody is killed any more who was chosen before.
const PLENTY_FRAMES: usize = 2 * RESERVE_FRAMES;
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

/// Whether there is memory for a growing call; the kernel keeps the rest for what must not fail. Where there is none, somebody who
/// holds much of it goes, but not for the sake of one who does: that one is refused.
#[inline(never)]
pub fn admits(call: &Call<'_>, number: u64) -> bool {
    let needed = match number {
        nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3 => FORK_FRAMES_MIN + fork_frames(call.task),
        _ => CALL_FRAMES_MIN,
    };
    has_room(call.unix, needed) || find_room(call.held, call.unix, call.task, needed)
}

fn has_room(unix: &Unix, needed: usize) -> bool {
    unix.pool.free_frames().min(unix.machine.heap_pages()) >= needed
}

#[cold]
fn find_room(held: Held<'_>, unix: &'static Unix, task: &Task, needed: usize) -> bool {
    let deadline = unix.machine.now().saturating_add(Nanos(PATIENCE_NS));
    loop {
        if unix.machine.reclaim() > 0 && has_room(unix, needed) {
            return true;
        }
        let now = unix.machine.now();
        if task.is_ending() || now >= deadline || !unix.want.finds_another(held, unix, &task.process, now) {
            return false;
        }
        unix.want.pause(held, unix, now);
        if !task.is_ending() && has_room(unix, needed) {
            return true;
        }
    }
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

/// A page could not be supplied to `task`: somebody is killed, and the task sleeps until there is hope. Afterwards it tries again, or
/// it is the one that was killed.
#[cold]
pub fn make_room(held: Held<'_>, unix: &'static Unix, task: &Task) {
    if task.is_ending() || unix.machine.reclaim() > 0 {
        return;
    }
    let now = unix.machine.now();
    unix.want.kill_one(held, unix, now);
    if !task.is_ending() {
        unix.want.pause(held, unix, now);
    }
}

/// Who was killed for want of memory.
pub(crate) struct Want {
    /// Somebody is looked for, and others run meanwhile.
    is_choosing: KernelValue<bool>,
    /// Sleep here until somebody has been chosen: who tries again and again would keep the chooser from it.
    chosen: WaitQueue,
    /// Since when sentences are put off.
    put_off_at: KernelValue<Option<Nanos>>,
    /// When somebody was killed last; the next one has to wait until all of them have gone, or too long.
    killed_at: KernelValue<Option<Nanos>>,
    /// Sentences so far.
    pub kills: KernelValue<u64>,
    /// Who was refused last because it held most itself, and when.
    refused: KernelValue<Option<(u32, Nanos)>>,
}

impl Want {
    pub const fn new() -> Want {
        Want {
            is_choosing: KernelValue::new(false),
            chosen: WaitQueue::new(),
            put_off_at: KernelValue::new(None),
            killed_at: KernelValue::new(None),
            kills: KernelValue::new(0),
            refused: KernelValue::new(None),
        }
    }

    /// Somebody who was killed has not gone yet, or is being looked for.
    fn is_somebody_leaving(&self, unix: &Unix, now: Nanos) -> bool {
        if self.is_choosing.get() {
            return true;
        }
        let Some(since) = self.killed_at.get() else { return false };
        let mut is_leaving = false;
        unix.tasks.each_process(|process| is_leaving |= process.is_sentenced.get() && !process.is_zombie());
        is_leaving &= now.0.saturating_sub(since.0) < PATIENCE_NS;
        if !is_leaving {
            self.killed_at.set(None);
        }
        is_leaving
    }

    /// A thread that needs memory sleeps until there is hope.
    fn pause(&self, held: Held<'_>, unix: &Unix, now: Nanos) {
        if self.is_choosing.get() {
            unix.scheduler.sleep(held, &[&self.chosen], Some(now.saturating_add(Nanos(PATIENCE_NS))));
        } else {
            unix.scheduler.sleep(held, &[], Some(now.saturating_add(Nanos(RETRY_NS))));
        }
    }

    /// Chooses and kills; nobody else does so meanwhile. True: somebody was killed, or it has become needless while somebody was
    /// chosen, because there is memory again, or others are leaving who hold as much.
    fn judge(
        &self,
        held: Held<'_>,
        unix: &'static Unix,
        now: Nanos,
        choose: impl FnOnce() -> Option<Sentence>,
    ) -> bool {
        self.is_choosing.set(true);
        let sentence = choose();
        let going = sentence::going_bytes(unix);
        let is_needless = |sentence: &Sentence| going >= sentence.bytes() || has_room(unix, PLENTY_FRAMES);
        let since = sentence.as_ref().filter(|it| is_needless(it)).map(|_| self.put_off_at.get().unwrap_or(now));
        let is_put_off = since.is_some_and(|since| now.0.saturating_sub(since.0) < PATIENCE_NS);
        self.put_off_at.set(if is_put_off { since } else { None });
        if let Some(sentence) = sentence.as_ref().filter(|_| !is_put_off) {
            self.kills.set(self.kills.get() + 1);
            sentence.execute(held, unix, now);
            self.killed_at.set(Some(now));
        }
        self.is_choosing.set(false);
        unix.scheduler.wake(&self.chosen);
        sentence.is_some()
    }

    /// Kills whoever holds most, unless somebody is leaving. The first process goes when no other has memory.
    fn kill_one(&self, held: Held<'_>, unix: &'static Unix, now: Nanos) {
        if !self.is_somebody_leaving(unix, now) {
            let choose = || sentence::choose(held, unix, now).or_else(|| last_sentence(unix));
            let _ = self.judge(held, unix, now, choose);
        }
    }

    /// The same for the sake of `process`, which is not among them; false: it would be.
    fn finds_another(&self, held: Held<'_>, unix: &'static Unix, process: &Arc<Process>, now: Nanos) -> bool {
        if self.is_somebody_leaving(unix, now) {
            return true;
        }
        let is_known = |(pid, at): (u32, Nanos)| pid == process.pid && now.0.saturating_sub(at.0) < REFUSAL_NS;
        if self.refused.get().is_some_and(is_known) {
            return false;
        }
        let chosen = || sentence::choose(held, unix, now).filter(|it| !it.includes(held, unix, process));
        let is_another = self.judge(held, unix, now, chosen);
        if !is_another {
            self.refused.set(Some((process.pid, now)));
        }
        is_another
    }
}

fn last_sentence(unix: &Unix) -> Option<Sentence> {
    let mut others = 0;
    unix.tasks.each_process(|process| others += usize::from(process.pid != 1 && !process.is_zombie()));
    let first = unix.tasks.process(1).filter(|first| others == 0 && first.ending.get().is_none())?;
    Some(sentence::of_first(first))
}
