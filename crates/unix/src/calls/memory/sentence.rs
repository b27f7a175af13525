//! Who is killed for want of memory ([ADR 41](../../../../../docs/adr/0041-who-is-killed.md)).
//!
//! The first process's children are the heads of *branches*. Of the branch that holds most, the lowest process is looked for with which
//! more than three quarters of the branch's memory would go (a bomb of which half is left goes on):
//!
//! ```text
//!   1 ─┬─ 7 make ─┬─ 9 cc     12 MiB        branch of 7: 102 MiB, branch of 8: 3 MiB
//!      │          └─ 10 bomb   1 MiB ── 60 children with 1 MiB each    goes, with all below it
//!      └─ 8 sh                 3 MiB
//! ```
//! There, one process alone goes if it holds a good part, else all. A branch that soon is chosen again goes whole: what was left of it
//! takes as much as before. Nothing here asks for memory: the sums stand in the processes.

use alloc::sync::Arc;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

use abi::process::WaitStatus;
use abi::signal::SIGKILL;
use kernel::charge::Bill;
use machine::{Held, Nanos, PAGE_BYTES};

use super::bill;
use crate::emulator::Unix;
use crate::task::process::{Branch, Life, Process, Tally};

/// A process that holds at least so large a part of what goes, one in so many, goes alone.
const GOOD_PART: u64 = 8;

/// How often a branch is chosen within how long before it goes whole. To kill a group counts as all.
const STRIKES_MAX: u32 = 4;
const FORGIVEN_NS: u64 = 10 * Nanos::PER_SECOND;

/// Who is to be killed.
pub struct Sentence {
    /// Everybody in it is meant, or below `head` if there is one.
    branch: Arc<Branch>,
    head: Option<Arc<Process>>,
    is_alone: bool,
    /// Who must not be chosen is left out.
    spares: bool,
}

/// Chooses; `None`: nobody is left but the first process, or those who are leaving. Others run between parts of it, and who calls
/// this sees to it that nobody chooses meanwhile.
pub fn choose(held: Held<'_>, unix: &Unix, now: Nanos) -> Option<Sentence> {
    let mut spares = false;
    each_running(held, unix, |process| spares |= !is_protected(process));
    tally(held, unix, spares);
    let mut most: Option<Arc<Branch>> = None;
    each_running(held, unix, |process| {
        let is_spared = spares && is_protected(process);
        if !is_spared && most.as_ref().is_none_or(|most| process.branch.bytes.get() > most.bytes.get()) {
            most = Some(process.branch.clone());
        }
    });
    let branch = most?;
    if branch.strikes_since(now) >= STRIKES_MAX {
        return Some(Sentence { branch, head: None, is_alone: false, spares });
    }
    let mut head = None;
    while let Some(child) = largest_child(held, unix, &branch, head.as_ref()) {
        if child.tally.get().bytes <= branch.bytes.get() / 4 * 3 {
            break;
        }
        head = Some(child);
    }
    let all = Sentence { branch, head, is_alone: false, spares };
    let bytes = all.head.as_ref().map_or(all.branch.bytes.get(), |head| head.tally.get().bytes);
    let largest = all.largest(held, unix)?;
    let is_good_part = largest.tally.get().own_bytes >= bytes / GOOD_PART;
    Some(if is_good_part { Sentence { head: Some(largest), is_alone: true, ..all } } else { all })
}

/// What comes back soon: those who were weighed hold it, and are ending now.
pub fn going_bytes(unix: &Unix) -> u64 {
    let mut going = 0;
    unix.tasks.each_process(|process| {
        if process.ending.get().is_some() && !process.is_zombie() {
            going += process.tally.get().own_bytes;
        }
    });
    going
}

/// Only the first process.
pub fn of_first(first: Arc<Process>) -> Sentence {
    Sentence { branch: first.branch.clone(), head: Some(first), is_alone: true, spares: false }
}

impl Branch {
    fn strikes_since(&self, now: Nanos) -> u32 {
        let (strikes, at) = self.strikes.get();
        if now.0.saturating_sub(at.0) < FORGIVEN_NS { strikes } else { 0 }
    }
}

fn is_running(process: &Process) -> bool {
    process.life.get() == Life::Running && process.ending.get().is_none()
}

/// `oom_score_adj` -1000: chosen only when nobody else is left but the first process. (Linux panics then.)
fn is_protected(process: &Process) -> bool {
    process.oom_adjustment.load(Ordering::Relaxed) <= ADJUSTMENT_MIN
}

const ADJUSTMENT_MIN: i32 = -1000;

/// What a process holds, as the choice sees it: `oom_score_adj` adds or takes away so many thousandths of all memory.
fn weight(lock: Held<'_>, unix: &Unix, process: &Process, spares: bool) -> u64 {
    let held = bill::of(lock, unix, process).total();
    let adjustment = process.oom_adjustment.load(Ordering::Relaxed);
    let frames = unix.pool.total_frames();
    // Tables and records may lie beside the frames: nobody holds more than this.
    let memory = ((frames + frames / 64) * PAGE_BYTES) as u64;
    let part = memory / 1000 * u64::from(adjustment.unsigned_abs());
    if is_protected(process) {
        return if spares { 0 } else { held };
    }
    if adjustment < 0 { held.saturating_sub(part) } else { held.saturating_add(part) }
}

/// Processes, and steps from one to its parent, between two safe points.
const PART: usize = 32;

/// Shows all processes, with safe points in between: some may come and go meanwhile.
fn each_in_parts(held: Held<'_>, unix: &Unix, mut visit: impl FnMut(&Arc<Process>)) {
    let (mut pid, mut count) = (0, 0);
    while let Some(process) = unix.tasks.process_after(pid) {
        pid = process.pid;
        visit(&process);
        drop(process);
        count += 1;
        if count % PART == 0 {
            unix.scheduler.breathe(held);
        }
    }
}

/// Those who may be chosen: not the first process.
fn each_running(held: Held<'_>, unix: &Unix, mut visit: impl FnMut(&Arc<Process>)) {
    each_in_parts(held, unix, |process| {
        if process.pid != 1 && is_running(process) {
            visit(process);
        }
    });
}

/// Notes at each process what it weighs, and what it and all below it weigh; at each branch what it weighs.
fn tally(held: Held<'_>, unix: &Unix, spares: bool) {
    each_in_parts(held, unix, |process| {
        // Those that are ending give back what they hold.
        let bytes = if process.is_zombie() { 0 } else { weight(held, unix, process, spares) };
        process.tally.set(Tally { own_bytes: bytes, bytes, is_meant: false });
        process.branch.bytes.set(0);
    });
    each_running(held, unix, |process| add_to_parents(held, unix, process));
}

/// Adds what a process weighs to all above it, and to its branch.
fn add_to_parents(held: Held<'_>, unix: &Unix, process: &Arc<Process>) {
    let bytes = process.tally.get().own_bytes;
    process.branch.bytes.set(process.branch.bytes.get() + bytes);
    let (mut at, mut steps) = (parent_of(process), 0);
    while let Some(parent) = at.filter(|parent| parent.pid != 1) {
        let tally = parent.tally.get();
        parent.tally.set(Tally { bytes: tally.bytes + bytes, ..tally });
        at = parent_of(&parent);
        steps += 1;
        if steps % PART == 0 {
            unix.scheduler.breathe(held);
        }
    }
}

fn parent_of(process: &Process) -> Option<Arc<Process>> {
    process.parent.borrow().upgrade()
}

/// The child with which most would go; without a parent, of those in the branch that the first process has now.
fn largest_child(
    held: Held<'_>,
    unix: &Unix,
    branch: &Arc<Branch>,
    parent: Option<&Arc<Process>>,
) -> Option<Arc<Process>> {
    let mut largest: Option<Arc<Process>> = None;
    let mut see = |process: &Arc<Process>| {
        let bytes = process.tally.get().bytes;
        if bytes > 0 && largest.as_ref().is_none_or(|largest| bytes > largest.tally.get().bytes) {
            largest = Some(process.clone());
        }
    };
    match parent {
        Some(parent) => parent.each_child(see),
        None => each_in_parts(held, unix, |process| {
            let is_top = parent_of(process).is_none_or(|parent| parent.pid == 1);
            if process.pid != 1 && is_top && Arc::ptr_eq(&process.branch, branch) {
                see(process);
            }
        }),
    }
    largest
}

impl Sentence {
    pub fn includes(&self, held: Held<'_>, unix: &Unix, process: &Arc<Process>) -> bool {
        match &self.head {
            _ if self.spares && is_protected(process) => false,
            Some(head) if self.is_alone => Arc::ptr_eq(head, process),
            Some(head) => is_below(held, unix, process, head),
            None => process.pid != 1 && Arc::ptr_eq(&process.branch, &self.branch),
        }
    }

    fn each(&self, held: Held<'_>, unix: &Unix, mut visit: impl FnMut(&Arc<Process>)) {
        each_in_parts(held, unix, |process| {
            if is_running(process) && self.includes(held, unix, process) {
                visit(process);
            }
        });
    }

    /// What they hold.
    pub fn bytes(&self) -> u64 {
        match &self.head {
            Some(head) if self.is_alone => head.tally.get().own_bytes,
            Some(head) => head.tally.get().bytes,
            None => self.branch.bytes.get(),
        }
    }

    /// Who of them holds most; of two that hold as much, the younger.
    fn largest(&self, held: Held<'_>, unix: &Unix) -> Option<Arc<Process>> {
        let mut largest: Option<Arc<Process>> = None;
        self.each(held, unix, |process| {
            let most = largest.as_ref().map_or(0, |largest| largest.tally.get().own_bytes);
            if process.tally.get().own_bytes >= most {
                largest = Some(process.clone());
            }
        });
        largest
    }

    /// Kills them all, and tells the user.
    pub fn execute(&self, held: Held<'_>, unix: &'static Unix, now: Nanos) {
        let strikes = self.branch.strikes_since(now) + if self.is_alone { 1 } else { STRIKES_MAX };
        self.branch.strikes.set((strikes, now));
        let mut bill = Bill::new();
        self.each(held, unix, |process| {
            bill.join(&bill::of(held, unix, process));
            process.tally.set(Tally { is_meant: true, ..process.tally.get() });
        });
        let (mut named, mut count) = (self.head.clone(), 0);
        // In one go: whoever is born to one who is meant is meant, and whoever ends hands his children on.
        unix.tasks.each_process(|process| {
            let is_child = || !self.is_alone && parent_of(process).is_some_and(|parent| parent.tally.get().is_meant);
            if is_running(process) && (process.tally.get().is_meant || is_child()) {
                process.tally.set(Tally { is_meant: true, ..process.tally.get() });
                process.is_sentenced.set(true);
                named.get_or_insert_with(|| process.clone());
                count += 1;
            }
        });
        each_in_parts(held, unix, |process| {
            if process.is_sentenced.get() && process.ending.get().is_none() {
                crate::calls::life::end::end_process(
                    unix,
                    process,
                    WaitStatus::Killed { signal: SIGKILL as u8, core: false },
                );
            }
        });
        if let Some(named) = named {
            tell(held, unix, &named, count, &bill);
        }
    }
}

fn is_below(held: Held<'_>, unix: &Unix, process: &Arc<Process>, head: &Arc<Process>) -> bool {
    let (mut at, mut steps) = (Some(process.clone()), 0);
    while let Some(process) = at {
        if Arc::ptr_eq(&process, head) {
            return true;
        }
        at = parent_of(&process);
        steps += 1;
        if steps % PART == 0 {
            unix.scheduler.breathe(held);
        }
    }
    false
}

/// A line without an allocation; what is too long is cut.
struct Line {
    bytes: [u8; 256],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let part = text.len().min(room.len());
        room[..part].copy_from_slice(&text.as_bytes()[..part]);
        self.used += part;
        Ok(())
    }
}

/// Bytes, for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: u64 = 1024;
        match self.0 / KIB {
            kib @ ..10_240 => write!(f, "{kib} KiB"),
            kib => write!(f, "{} MiB", kib / KIB),
        }
    }
}

fn tell(held: Held<'_>, unix: &'static Unix, named: &Process, count: usize, bill: &Bill) {
    let mut line = Line { bytes: [0; 256], used: 0 };
    let name = named.name();
    let name = core::str::from_utf8(&name).unwrap_or("?").trim_end_matches('\0');
    let (kept, bytes) = bill.most();
    let _ = write!(line, "process {} ({name}) ", named.pid);
    let (were, it) = if count > 1 { ("were", "they") } else { ("was", "it") };
    if count > 1 {
        let _ = write!(line, "and {} more that came from it ", count - 1);
    }
    let _ = write!(line, "{were} killed for want of memory: {it} held {}", Size(bill.total()));
    let _ = write!(line, ", of them {} in {kept}", Size(bytes));
    unix.tell(held, bootimage::control::kind::NOTICE, &line.bytes[..line.used]);
}

/// A process that was killed for want of memory has gone: what it has left behind under a number goes too.
pub fn lose_left(unix: &Unix, pid: u32) {
    unix.shm.lose_unshown(pid);
    crate::calls::sysv::messages::lose(unix, pid);
    crate::calls::sysv::semaphores::lose(unix, pid);
}
