//! Parents, children and process groups: who is told of an end, and who gets the orphans.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use abi::process::WaitStatus;
use abi::siginfo::SigInfo;
use abi::signal::{SIGCHLD, SIGCONT, SIGHUP};

use crate::emulator::Unix;
use crate::signal::child::{Child, child_info};
use crate::task::process::{Life, Process};

/// The process has ended: its children find a new parent, its parent is told.
pub fn part(unix: &'static Unix, process: &Arc<Process>, status: WaitStatus) {
    process.life.set(Life::Zombie(status));
    unix.scheduler.wake(&process.ended);
    give_children_away(unix, process);
    wake_orphaned_group(unix, process);
    match process.parent.borrow().upgrade() {
        Some(parent) if crate::calls::ptrace::attach::hold(unix, process, &parent) => {}
        Some(parent) => tell_of_end(unix, &parent, process, status),
        None => forget(unix, process),
    }
}

/// The tracer of an ended process has been told; now its parent is.
pub fn tell_parent_of_end(unix: &'static Unix, process: &Arc<Process>) {
    let Life::Zombie(status) = process.life.get() else { return };
    match process.parent.borrow().upgrade() {
        Some(parent) => tell_of_end(unix, &parent, process, status),
        None => forget(unix, process),
    }
}

/// Sends the exit signal; a parent that does not care for its children never sees the zombie.
fn tell_of_end(unix: &'static Unix, parent: &Arc<Process>, process: &Arc<Process>, status: WaitStatus) {
    let signal = process.exit_signal.load(Ordering::Relaxed);
    let end = parent.actions().borrow().child_end(signal);
    if end.reap {
        // What nobody waits for is not counted among the children either.
        release(unix, parent, process);
    }
    if end.signal {
        crate::calls::signals::send::send_to_process(unix, parent, &child_info(signal, &as_child(process), status));
    }
    unix.scheduler.wake(&parent.children_changed);
}

/// Tells the parent that the process stopped or continued.
pub fn tell_parent(unix: &'static Unix, process: &Arc<Process>, status: WaitStatus) {
    let Some(parent) = process.parent.borrow().upgrade() else { return };
    if parent.actions().borrow().wants_child_stops() {
        crate::calls::signals::send::send_to_process(unix, &parent, &child_info(SIGCHLD, &as_child(process), status));
    }
    unix.scheduler.wake(&parent.children_changed);
}

/// Has a parent that waits look at its children again.
pub fn wake_parent(unix: &Unix, process: &Process) {
    if let Some(parent) = process.parent.borrow().upgrade() {
        unix.scheduler.wake(&parent.children_changed);
    }
}

/// What a parent learns of the process.
pub fn as_child(process: &Process) -> Child {
    const TICK_NS: u64 = 10_000_000;
    let user = process.usage.get().user.0 / TICK_NS;
    Child { pid: process.pid as i32, uid: process.user_ids.get().real, utime: user as i64, stime: 0 }
}

/// Takes a zombie out of the world; its parent has been told.
pub fn reap(unix: &Unix, parent: &Process, process: &Arc<Process>) {
    let mut usage = parent.children_usage.get();
    usage.add(&process.usage.get());
    usage.add(&process.children_usage.get());
    parent.children_usage.set(usage);
    release(unix, parent, process);
}

fn release(unix: &Unix, parent: &Process, process: &Arc<Process>) {
    parent.part_with(process);
    forget(unix, process);
}

fn forget(unix: &Unix, process: &Process) {
    process.life.set(Life::Reaped);
    unix.tasks.remove_process(process);
}

/// Orphans go to the nearest subreaper above, or to the first process.
fn give_children_away(unix: &'static Unix, process: &Arc<Process>) {
    let mut children = process.take_children().peekable();
    if children.peek().is_none() {
        return;
    }
    let Some(heir) = heir(unix, process) else { return };
    for child in children {
        *child.parent.borrow_mut() = Arc::downgrade(&heir);
        child.exit_signal.store(SIGCHLD, Ordering::Relaxed);
        heir.adopt(&child);
        child.unbind_identity();
        let death_signal = child.settings.get().parent_death_signal;
        if death_signal != 0 {
            let info = SigInfo::kill(death_signal, process.pid as i32, process.user_ids.get().real);
            crate::calls::signals::send::send_to_process(unix, &child, &info);
        }
        if child.is_held.get() {
            continue;
        }
        if let Life::Zombie(status) = child.life.get() {
            tell_of_end(unix, &heir, &child, status);
        } else if child.family.get().group != process.family.get().group {
            wake_if_orphaned(unix, child.family.get().group, None);
        }
    }
}

fn heir(unix: &Unix, process: &Arc<Process>) -> Option<Arc<Process>> {
    let mut at = process.parent.borrow().upgrade();
    while let Some(ancestor) = at {
        if ancestor.settings.get().is_subreaper && !ancestor.is_zombie() {
            return Some(ancestor);
        }
        at = ancestor.parent.borrow().upgrade();
    }
    unix.first.borrow().clone()
}

/// The end of a process may leave its own group without anybody who could continue it.
fn wake_orphaned_group(unix: &'static Unix, process: &Arc<Process>) {
    let family = process.family.get();
    let has_outer_parent = process.parent.borrow().upgrade().is_some_and(|parent| {
        let outer = parent.family.get();
        outer.group != family.group && outer.session == family.session
    });
    if has_outer_parent {
        wake_if_orphaned(unix, family.group, Some(process));
    }
}

/// A group that is orphaned and has stopped members is hung up and continued (POSIX, `_exit`).
fn wake_if_orphaned(unix: &'static Unix, group: u32, leaving: Option<&Arc<Process>>) {
    let is_stopped = members(unix, group, leaving).any(|member| member.stopped.get());
    if is_stopped && is_orphaned(members(unix, group, leaving), group) {
        crate::calls::signals::send::send_to_group(unix, group, &SigInfo::kernel(SIGHUP));
        crate::calls::signals::send::send_to_group(unix, group, &SigInfo::kernel(SIGCONT));
    }
}

fn members<'a>(
    unix: &'a Unix,
    group: u32,
    leaving: Option<&'a Arc<Process>>,
) -> impl Iterator<Item = Arc<Process>> + 'a {
    unix.tasks.group(group).filter(move |process| {
        let is_leaving = leaving.is_some_and(|leaving| Arc::ptr_eq(leaving, process));
        !process.is_zombie() && !is_leaving
    })
}

/// No member has a parent in another group of the same session, who could continue it. The first process
/// counts as the child of the host's shell.
pub fn is_orphaned_group(unix: &Unix, group: u32) -> bool {
    is_orphaned(members(unix, group, None), group)
}

fn is_orphaned(mut members: impl Iterator<Item = Arc<Process>>, group: u32) -> bool {
    !members.any(|member| {
        member.pid == 1
            || member.parent.borrow().upgrade().is_some_and(|parent| {
                let outer = parent.family.get();
                outer.group != group && outer.session == member.family.get().session
            })
    })
}
