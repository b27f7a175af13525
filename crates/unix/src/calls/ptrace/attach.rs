//! Who traces whom: how it begins, is inherited, and ends.

use alloc::sync::{Arc, Weak};

use abi::Errno;
use abi::process::{CAP_SYS_PTRACE, CLONE_PTRACE, CLONE_UNTRACED, CLONE_VFORK};
use abi::ptrace::{
    PTRACE_EVENT_CLONE, PTRACE_EVENT_FORK, PTRACE_EVENT_VFORK, PTRACE_O_EXITKILL, PTRACE_O_SUSPEND_SECCOMP,
    PTRACE_OPTIONS,
};
use abi::siginfo::SigInfo;
use abi::signal::{SIGCHLD, SIGKILL, SIGSTOP};
use kernel::file::Capabilities;
use kernel::thread::State;
use machine::{NoMemory, TryGrow};

use super::stops::end_status;
use super::watchpoints;
use crate::call::{Call, CallResult};
use crate::calls::memory::text;
use crate::emulator::Unix;
use crate::signal::child::{Child, child_info};
use crate::task::process::Process;
use crate::task::thread::Task;
use crate::task::tracing::{Ghost, Going, Tracing};

/// Errors: `EPERM` for a thread that is traced already, whose parent is not there, or has fewer rights.
pub fn trace_me(call: &Call<'_>) -> CallResult {
    let parent = call.process().parent.borrow().upgrade();
    let own = call.process().capabilities().permitted;
    let has_rights = |parent: &Process| own.are_in(parent.capabilities().permitted) || parent.can(CAP_SYS_PTRACE);
    let may = |parent: &Arc<Process>| !call.task.watch.is_traced() && has_rights(parent);
    let tracer = parent.filter(may).ok_or(Errno::EPERM)?;
    make_tracing_room(&tracer)?;
    begin(call.unix, call.task, tracing(call, &tracer, tracer.pid));
    Ok(0)
}

fn tracing(call: &Call<'_>, tracer: &Arc<Process>, tracer_tid: u32) -> Tracing {
    Tracing {
        tracer: Arc::downgrade(tracer),
        tracer_tid,
        is_privileged: call.can(CAP_SYS_PTRACE),
        is_seized: false,
        options: 0,
        going: Going::On,
        message: 0,
    }
}

/// Errors: `ESRCH`, `EPERM` for a thread of the caller's own process, of somebody else, or that has a tracer.
pub fn attach(call: &Call<'_>, tid: u64) -> CallResult {
    let task = permitted(call, tid)?;
    make_tracing_room(call.process())?;
    begin(call.unix, &task, tracing(call, call.process(), call.task.tid));
    crate::calls::signals::send::send_to_task(call.unix, &task, &SigInfo::kernel(SIGSTOP));
    catch_stopped(call.unix, &task);
    Ok(0)
}

/// As `attach`, and the thread does not stop. Errors: `EIO` for an address or unknown options, too.
pub fn seize(call: &Call<'_>, tid: u64, address: u64, options: u64) -> CallResult {
    if address != 0 || check_options(options).is_err() {
        return Err(Errno::EIO);
    }
    let task = permitted(call, tid)?;
    let tracing = Tracing { is_seized: true, options: options as u32, ..tracing(call, call.process(), call.task.tid) };
    make_tracing_room(call.process())?;
    begin(call.unix, &task, tracing);
    catch_stopped(call.unix, &task);
    Ok(0)
}

/// Error: `EINVAL` for options that are unknown, or about what is not there.
pub fn check_options(options: u64) -> Result<u32, Errno> {
    let known: u64 = PTRACE_OPTIONS.iter().map(|(_, option)| option).sum();
    if options & !known != 0 || options & u64::from(PTRACE_O_SUSPEND_SECCOMP) != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(options as u32)
}

fn permitted(call: &Call<'_>, tid: u64) -> Result<Arc<Task>, Errno> {
    let task = call.unix.tasks.task(tid as u32).ok_or(Errno::ESRCH)?;
    let own = call.process();
    if Arc::ptr_eq(own, &task.process) || task.watch.is_traced() || !may_access(own, &task.process) {
        return Err(Errno::EPERM);
    }
    Ok(task)
}

/// Whether one process may look into another and change it (Linux `ptrace_may_access`, `PTRACE_MODE_REALCREDS`).
pub fn may_access(own: &Process, other: &Process) -> bool {
    let used = own.capabilities().permitted;
    may_access_as(own, other, (own.user_ids.get().real, own.group_ids.get().real), used)
}

/// The same for files of /proc, which ask with the ids that all files ask with (`PTRACE_MODE_FSCREDS`).
pub fn may_look_into(own: &Process, other: &Process) -> bool {
    let credentials = own.credentials.borrow();
    may_access_as(own, other, (credentials.user, credentials.group), credentials.capabilities)
}

/// Who has the same ids still must have all the capabilities that the other may use.
fn may_access_as(own: &Process, other: &Process, (user, group): (u32, u32), used: Capabilities) -> bool {
    let (users, groups) = (other.user_ids.get(), other.group_ids.get());
    let same_user = [users.real, users.effective, users.saved].iter().all(|id| *id == user);
    let same_group = [groups.real, groups.effective, groups.saved].iter().all(|id| *id == group);
    let is_open = same_user && same_group && other.settings.get().dumpable == 1;
    let has_rights = is_open && other.capabilities().permitted.are_in(used);
    core::ptr::eq(own, other) || own.can(CAP_SYS_PTRACE) || has_rights
}

/// Makes sure that a process can trace one thread more, and hear of its end.
fn make_tracing_room(tracer: &Process) -> Result<(), NoMemory> {
    let mut tracees = tracer.tracees.borrow_mut();
    tracer.ghosts.borrow_mut().room_for(tracees.len() + 1)?;
    tracees.room_for(1)
}

/// The same for a thread that `maker` is about to make, and which may inherit its tracer.
pub fn make_heir_room(maker: &Task) -> Result<(), NoMemory> {
    let tracer = maker.watch.tracing.borrow().as_ref().and_then(|tracing| tracing.tracer.upgrade());
    tracer.map_or(Ok(()), |tracer| make_tracing_room(&tracer))
}

/// From now on the thread is traced: it makes its calls in Rust, and its text is what the program brought.
fn begin(unix: &'static Unix, task: &Arc<Task>, tracing: Tracing) {
    if let Some(tracer) = tracing.tracer.upgrade() {
        let mut tracees = tracer.tracees.borrow_mut();
        tracees.retain(|task| task.strong_count() > 0);
        tracees.put(Arc::downgrade(task));
    }
    task.watch.set_tracing(Some(tracing));
    unbind(task);
    task.thread.tte().set_debugged(true);
    if let Some(space) = task.process.space() {
        text::restore(unix, &mut space.borrow_mut(), 0..u64::MAX);
    }
}

fn unbind(task: &Task) {
    let tte = task.thread.tte();
    task.bindings.unbind_descriptor_calls(tte);
    task.bindings.unbind_constants(tte);
    task.bindings.unbind_signals(tte);
}

/// A thread whose process has stopped already stops for its tracer at once.
fn catch_stopped(unix: &Unix, task: &Arc<Task>) {
    if task.process.stopped.get() {
        ask_to_trap(unix, task);
    }
}

/// Has a traced thread stop before it goes back to its program.
pub fn ask_to_trap(unix: &Unix, task: &Arc<Task>) {
    task.watch.set_trap(true);
    task.call_attention();
    if let Some(stop) = &mut *task.watch.stop.borrow_mut()
        && stop.is_listening
    {
        stop.is_over = true;
    }
    if task.watch.is_stopped() {
        return;
    }
    if task.thread.state() == State::Stopped {
        task.thread.start(unix.scheduler);
    } else {
        unix.scheduler.unblock(&task.thread);
    }
}

/// A thread that stands still at its end is killed: it goes.
pub fn end_last_stop(unix: &Unix, task: &Arc<Task>) {
    if let Some(stop) = &mut *task.watch.stop.borrow_mut() {
        stop.is_over = true;
    }
    task.wake_to_end(unix.scheduler);
}

/// The event that a birth with these flags is for the maker's tracer.
pub fn birth_event(flags: u64, exit_signal: u32) -> u32 {
    match () {
        _ if flags & CLONE_VFORK != 0 => PTRACE_EVENT_VFORK,
        _ if exit_signal != SIGCHLD => PTRACE_EVENT_CLONE,
        _ => PTRACE_EVENT_FORK,
    }
}

/// A new thread, which has not run yet, is traced if its maker's tracer wants it or the maker asks for it.
pub fn inherit(unix: &'static Unix, maker: &Task, child: &Arc<Task>, flags: u64, event: u32) {
    let Some(tracing) = maker.watch.tracing.borrow().clone() else { return };
    let wanted = maker.watch.has_option(1 << event) && flags & CLONE_UNTRACED == 0;
    if !wanted && flags & CLONE_PTRACE == 0 {
        return;
    }
    let is_seized = tracing.is_seized;
    child.watch.in_call.set(true);
    begin(unix, child, Tracing { going: Going::On, message: 0, ..tracing });
    if is_seized {
        child.watch.set_trap(true);
    } else {
        let _ = child.pending.borrow_mut().post(&SigInfo::kernel(SIGSTOP), usize::MAX);
    }
    child.call_attention();
}

/// The first thread of a process takes over from the one that executed a program.
pub fn succeed(old: &Task, new: &Arc<Task>) {
    let Some(tracing) = old.watch.tracing.borrow_mut().take() else { return };
    old.watch.set_tracing(None);
    if let Some(tracer) = tracing.tracer.upgrade() {
        let mut tracees = tracer.tracees.borrow_mut();
        // In its place: what the old one was will not be told of.
        if let Some(place) = tracees.iter_mut().find(|task| core::ptr::eq(task.as_ptr(), old)) {
            *place = Arc::downgrade(new);
        }
    }
    new.watch.in_call.set(old.watch.in_call.get());
    new.watch.set_tracing(Some(tracing));
}

/// Nobody traces the thread any more; if it stands still for its tracer it goes on, with `signal`.
pub fn detach(unix: &Unix, task: &Arc<Task>, signal: u32) {
    let tracer = task.watch.tracer();
    task.watch.set_tracing(None);
    task.watch.set_trap(false);
    watchpoints::forget(task);
    if let Some(tracer) = tracer {
        tracer.tracees.borrow_mut().retain(|other| !core::ptr::eq(other.as_ptr(), Arc::as_ptr(task)));
    }
    unbind(task);
    task.thread.tte().set_debugged(false);
    if let Some(stop) = &mut *task.watch.stop.borrow_mut() {
        stop.signal = signal;
        stop.is_over = true;
    }
    task.call_attention();
    task.thread.start(unix.scheduler);
}

/// The thread has ended: its tracer hears of it first. The first thread's end is told with that of its process.
pub fn left(unix: &'static Unix, task: &Arc<Task>) {
    let Some(tracing) = task.watch.tracing.borrow_mut().take() else { return };
    task.watch.set_tracing(None);
    let Some(tracer) = tracing.tracer.upgrade() else { return };
    tracer.tracees.borrow_mut().retain(|other| !core::ptr::eq(other.as_ptr(), Arc::as_ptr(task)));
    if task.tid == task.process.pid {
        *task.process.mourner.borrow_mut() = Some((tracing.tracer, tracing.tracer_tid));
        return;
    }
    haunt(unix, &tracer, ghost(&task.process, task.tid, tracing.tracer_tid, end_status(task)));
}

fn ghost(process: &Process, tid: u32, tracer_tid: u32, status: abi::process::WaitStatus) -> Ghost {
    Ghost {
        tid,
        tracer_tid,
        group: process.family.get().group,
        user: process.user_ids.get().real,
        status,
        usage: process.usage.get(),
        process: None,
    }
}

fn haunt(unix: &'static Unix, tracer: &Arc<Process>, ghost: Ghost) {
    let child = Child { pid: ghost.tid as i32, uid: ghost.user, utime: 0, stime: 0 };
    let info = child_info(SIGCHLD, &child, ghost.status);
    tracer.ghosts.borrow_mut().put(ghost);
    crate::calls::signals::send::send_to_process(unix, tracer, &info);
    unix.scheduler.wake(&tracer.children_changed);
}

/// A process has ended. True: another than its parent traced it, and is told first.
pub fn hold(unix: &'static Unix, process: &Arc<Process>, parent: &Arc<Process>) -> bool {
    let Some((tracer, tracer_tid)) = process.mourner.borrow_mut().take() else { return false };
    let Some(tracer) = tracer.upgrade().filter(|tracer| !Arc::ptr_eq(tracer, parent) && !tracer.is_zombie()) else {
        return false;
    };
    let crate::task::process::Life::Zombie(status) = process.life.get() else { return false };
    process.is_held.set(true);
    haunt(unix, &tracer, Ghost { process: Some(process.clone()), ..ghost(process, process.pid, tracer_tid, status) });
    true
}

/// A ghost was waited for, or its tracer has gone: now the parent hears.
pub fn release(unix: &'static Unix, ghost: Ghost) {
    if let Some(process) = ghost.process {
        process.is_held.set(false);
        crate::calls::life::family::tell_parent_of_end(unix, &process);
    }
}

/// The process has ended, and traces nobody any more.
pub fn tracer_ended(unix: &'static Unix, process: &Process) {
    let tracees = core::mem::take(&mut *process.tracees.borrow_mut());
    for task in tracees.iter().filter_map(Weak::upgrade) {
        let kills = task.watch.has_option(PTRACE_O_EXITKILL);
        detach(unix, &task, 0);
        if kills {
            crate::calls::signals::send::send_to_process(unix, &task.process, &SigInfo::kernel(SIGKILL));
        }
    }
    let ghosts = core::mem::take(&mut *process.ghosts.borrow_mut());
    ghosts.into_iter().for_each(|ghost| release(unix, ghost));
}
