//! New processes and threads (fork, vfork, clone, clone3).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use abi::process::{
    CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CLONE_ARGS_SIZE_VER0, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID,
    CLONE_CLEAR_SIGHAND, CLONE_DETACHED, CLONE_FILES, CLONE_FS, CLONE_INTO_CGROUP, CLONE_NEWCGROUP, CLONE_NEWIPC,
    CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, CLONE_PARENT, CLONE_PARENT_SETTID,
    CLONE_PIDFD, CLONE_SETTLS, CLONE_SIGHAND, CLONE_THREAD, CLONE_UNTRACED, CLONE_VFORK, CLONE_VM, CSIGNAL, CloneArgs,
    RLIMIT_NPROC,
};
use abi::ptrace::PTRACE_EVENT_VFORK_DONE;
use abi::signal::{SIGCHLD, SIGRTMAX};
use abi::{Errno, Field};
use kernel::space::{Space, USER_LIMIT};
use kernel::thread::Thread;
use machine::stages::{self, Stage};
use machine::{KernelCell, Start, TryGrow, try_arc};

use crate::call::{Call, CallResult};
use crate::calls::pidfd;
use crate::calls::times::limit::watch as watch_time_limit;
use crate::limits::{TASKS_FOR_FEW, TASKS_MAX};
use crate::signal::altstack::AltStack;
use crate::task::process::{ChildParts, Process};
use crate::task::thread::Task;
use crate::task::user_calls;

/// What the new task shares with its maker, and how it starts.
#[derive(Clone, Copy, Default)]
struct Birth {
    flags: u64,
    exit_signal: u32,
    /// 0: the maker's own.
    stack_pointer: u64,
    thread_pointer: u64,
    parent_tid: u64,
    child_tid: u64,
    /// Where the child's descriptor is told (`CLONE_PIDFD`).
    pidfd: u64,
}

impl Birth {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// Namespaces, which do not exist here; refused as by a kernel built without them.
pub(super) const NAMESPACES: u64 =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

pub fn fork(call: &mut Call<'_>) -> CallResult {
    create(call, Birth { exit_signal: SIGCHLD, ..Birth::default() })
}

pub fn vfork(call: &mut Call<'_>) -> CallResult {
    create(call, Birth { flags: CLONE_VFORK | CLONE_VM, exit_signal: SIGCHLD, ..Birth::default() })
}

/// Errors: `EINVAL` for flags that do not go together, `EAGAIN` for too many tasks, `ENOMEM`.
pub fn clone(call: &mut Call<'_>, [flags, stack, parent_tid, child_tid, tls, _]: [u64; 6]) -> CallResult {
    // The upper half of the flags exists only in clone3.
    let flags = flags & 0xffff_ffff;
    create(
        call,
        Birth {
            flags: flags & !CSIGNAL,
            exit_signal: (flags & CSIGNAL) as u32,
            stack_pointer: stack,
            thread_pointer: tls,
            parent_tid,
            child_tid,
            pidfd: parent_tid,
        },
    )
}

/// As `clone`, with a record of arguments.
///
/// Errors: `EINVAL`, `E2BIG` for a record that is larger than what is known and not zero there, `EFAULT`.
pub fn clone3(call: &mut Call<'_>, address: u64, bytes: u64) -> CallResult {
    const PAGE: u64 = 4096;
    if bytes > PAGE {
        return Err(Errno::E2BIG);
    }
    if bytes < CLONE_ARGS_SIZE_VER0 {
        return Err(Errno::EINVAL);
    }
    let mut record = call.read_bytes(address, bytes as usize)?;
    if record.iter().skip(CloneArgs::BYTES).any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    record.try_resize(CloneArgs::BYTES, 0)?;
    let given = CloneArgs::get(&record);
    let has_stack = given.stack != 0;
    if given.set_tid_size != 0
        || given.set_tid != 0
        || given.exit_signal & !CSIGNAL != 0
        || given.exit_signal > u64::from(SIGRTMAX)
        || given.flags & (CSIGNAL | CLONE_DETACHED) != 0
        || given.flags & (CLONE_THREAD | CLONE_PARENT) != 0 && given.exit_signal != 0
        || given.flags & CLONE_CLEAR_SIGHAND != 0 && given.flags & CLONE_SIGHAND != 0
        || has_stack != (given.stack_size != 0)
        || given.flags >> 34 != 0
    {
        return Err(Errno::EINVAL);
    }
    let top = given.stack.checked_add(given.stack_size).filter(|top| *top <= USER_LIMIT).ok_or(Errno::EINVAL)?;
    create(
        call,
        Birth {
            flags: given.flags,
            exit_signal: given.exit_signal as u32,
            stack_pointer: top,
            thread_pointer: given.tls,
            parent_tid: given.parent_tid,
            child_tid: given.child_tid,
            pidfd: given.pidfd,
        },
    )
}

/// Errors: `EINVAL`, `EPERM` for a thread pointer that is not a program's address.
fn check(call: &Call<'_>, birth: &Birth) -> Result<(), Errno> {
    let wrong = birth.has(CLONE_THREAD) && !birth.has(CLONE_SIGHAND)
        || birth.has(CLONE_SIGHAND) && !birth.has(CLONE_VM)
        || birth.has(CLONE_PARENT) && call.process().pid == 1
        || birth.has(CLONE_PIDFD) && birth.has(CLONE_THREAD | CLONE_DETACHED)
        || birth.has(CLONE_PIDFD) && birth.has(CLONE_PARENT_SETTID) && birth.pidfd == birth.parent_tid
        || birth.has(NAMESPACES | CLONE_INTO_CGROUP);
    if wrong {
        return Err(Errno::EINVAL);
    }
    if birth.has(CLONE_SETTLS) && birth.thread_pointer >= USER_LIMIT {
        return Err(Errno::EPERM);
    }
    Ok(())
}

fn create(call: &mut Call<'_>, birth: Birth) -> CallResult {
    check(call, &birth)?;
    check_process_limit(call)?;
    // Killed while it waited for memory: who is killed as a group leaves nobody behind.
    if call.task.is_ending() {
        return Err(Errno::EINTR);
    }
    if TASKS_MAX - call.unix.tasks.task_count() < TASKS_FOR_FEW && call.process().branch.tasks.get() > TASKS_FOR_FEW {
        return Err(Errno::EAGAIN);
    }
    let tid = call.unix.tasks.take_id(&call.unix.families.tunables).ok_or(Errno::EAGAIN)?;
    let parts = if birth.has(CLONE_THREAD) { None } else { Some(parts(call, &birth)?) };
    let own_files = match birth.has(CLONE_THREAD) {
        true if birth.has(CLONE_FILES) => call.task.own_files(),
        true => Some(try_arc(call.files().duplicate()?)?),
        false => None,
    };
    let thread = create_thread(call, &birth)?;
    // What a birth adds to lists finds room afterwards.
    call.unix.tasks.make_room(thread.id())?;
    call.process().tasks.borrow_mut().room_for(1)?;
    crate::calls::ptrace::attach::make_heir_room(call.task)?;
    let process = match parts {
        None => call.process().clone(),
        Some(parts) => create_process(call, &birth, tid, parts)?,
    };
    call.unix.scheduler.enlist(&thread)?;
    // The last that can fail.
    let handle = if birth.has(CLONE_PIDFD) { Some(pidfd::Expected::open(call, birth.pidfd)) } else { None };
    let handle = handle.transpose().inspect_err(|_| drop(call.unix.scheduler.discharge(thread.id())))?;
    if !birth.has(CLONE_THREAD) {
        introduce(call, &process);
    }
    if let Some(handle) = handle {
        handle.fulfil(&process);
    }
    let task = create_task(call, &birth, tid, &process, &thread);
    drop(task.replace_own_files(own_files));
    if birth.has(CLONE_PARENT_SETTID) {
        // The caller finds the number in the result, too: a bad address is no failure.
        let _ = call.write(birth.parent_tid, &tid);
    }
    if birth.has(CLONE_CHILD_SETTID) {
        write_child_tid(call, &birth, &process, tid);
    }
    let unix = call.unix;
    unix.tasks.add_task(&task);
    let event = crate::calls::ptrace::attach::birth_event(birth.flags, birth.exit_signal);
    crate::calls::ptrace::attach::inherit(unix, call.task, &task, birth.flags, event);
    drop(task);
    unix.scheduler.unblock(&thread);
    drop(thread);
    if !birth.has(CLONE_UNTRACED) {
        crate::calls::ptrace::stops::event(call.held, unix, call.task, call.registers, event, tid.into());
    }
    if birth.has(CLONE_VFORK) && !birth.has(CLONE_THREAD) {
        wait_for_memory(call, &process);
        crate::calls::ptrace::stops::event(
            call.held,
            unix,
            call.task,
            call.registers,
            PTRACE_EVENT_VFORK_DONE,
            tid.into(),
        );
    }
    Ok(tid.into())
}

/// Error: `EAGAIN` when the user has too many processes; the privileged may exceed their limit.
fn check_process_limit(call: &Call<'_>) -> Result<(), Errno> {
    let limit = call.process().limits.borrow().0[RLIMIT_NPROC as usize].0;
    let user = call.process().user_ids.get().real;
    if user == 0 || limit == u64::MAX || call.can(CAP_SYS_RESOURCE) || call.can(CAP_SYS_ADMIN) {
        return Ok(());
    }
    let mine = |process: &Arc<Process>| process.user_ids.get().real == user;
    let count: u64 =
        call.unix.tasks.processes().filter(|each| mine(each)).map(|each| u64::from(each.live_tasks())).sum();
    if count >= limit { Err(Errno::EAGAIN) } else { Ok(()) }
}

/// What a new process shares or copies. Error: `ENOMEM`.
fn parts(call: &Call<'_>, birth: &Birth) -> Result<ChildParts, Errno> {
    let maker = call.process();
    let space = maker.space().ok_or(Errno::ESRCH)?;
    let space = if birth.has(CLONE_VM) {
        // What stands there is the maker's identity, not the child's.
        user_calls::withdraw(maker);
        space
    } else {
        duplicate(call, &space)?
    };
    let place = maker.place.borrow().clone();
    let place = if birth.has(CLONE_FS) { place } else { Arc::new(KernelCell::new(place.borrow().clone())) };
    let files = call.files();
    let files = if birth.has(CLONE_FILES) { files } else { try_arc(files.duplicate()?)? };
    let actions = maker.actions();
    let actions = if birth.has(CLONE_SIGHAND) {
        actions
    } else {
        let mut copy = actions.borrow().clone();
        if birth.has(CLONE_CLEAR_SIGHAND) {
            copy.reset_for_exec();
        }
        Arc::new(KernelCell::new(copy))
    };
    Ok(ChildParts { space, files, place, actions })
}

fn duplicate(call: &Call<'_>, space: &Arc<KernelCell<Space>>) -> Result<Arc<KernelCell<Space>>, Errno> {
    let translation = call.unix.machine.new_translation().map_err(|_| Errno::ENOMEM)?;
    let mut copy = space.borrow_mut().fork(translation).map_err(|_| Errno::ENOMEM)?;
    crate::calls::parts::share_pages(call, space, &mut copy)?;
    call.unix.desk.stops.leave_out(call.process().pid, &mut copy);
    let copy = Arc::new(KernelCell::new(copy));
    if call.process().has_user_calls.get() {
        user_calls::put_back(&copy)?;
    }
    Ok(copy)
}

/// The child continues where its maker stands, with 0 as the call's result. Error: `ENOMEM`.
fn create_thread(call: &Call<'_>, birth: &Birth) -> Result<Arc<Thread>, Errno> {
    let mut registers = call.task.thread.without_step(call.registers);
    registers.rax = 0;
    if birth.stack_pointer != 0 {
        registers.rsp = birth.stack_pointer;
    }
    let tte = {
        let _stage = stages::enter(Stage::Allocate);
        call.unix.machine.create_tte(Start::User(registers)).map_err(|_| Errno::ENOMEM)?
    };
    let own = call.task.thread.tte();
    let pointer = if birth.has(CLONE_SETTLS) { birth.thread_pointer } else { own.thread_pointer() };
    tte.set_thread_pointer(pointer);
    tte.set_gs_base(own.gs_base());
    tte.inherit_vector_state();
    Ok(Thread::new(tte))
}

/// A process that nobody knows yet. Error: `ENOMEM`.
fn create_process(call: &Call<'_>, birth: &Birth, pid: u32, parts: ChildParts) -> Result<Arc<Process>, Errno> {
    let maker = call.process();
    let shares_parent = birth.has(CLONE_PARENT);
    let parent = if shares_parent { maker.parent.borrow().upgrade() } else { None }.unwrap_or_else(|| maker.clone());
    let child = maker.child(Arc::downgrade(&parent), pid, parts, call.unix.machine.now());
    let exit_signal = if shares_parent { maker.exit_signal.load(Ordering::Relaxed) } else { birth.exit_signal };
    child.exit_signal.store(exit_signal, Ordering::Relaxed);
    child.is_vfork_child.set(birth.has(CLONE_VFORK));
    child.tasks.borrow_mut().room_for(1)?;
    watch_time_limit(call.unix, &child)?;
    Ok(child)
}

/// From now on others know the process.
fn introduce(call: &Call<'_>, child: &Arc<Process>) {
    let parent = child.parent.borrow().upgrade();
    parent.iter().for_each(|parent| parent.adopt(child));
    call.unix.tasks.add_process(child);
}

fn create_task(call: &Call<'_>, birth: &Birth, tid: u32, process: &Arc<Process>, thread: &Arc<Thread>) -> Arc<Task> {
    if let Some(space) = process.space() {
        thread.tte().set_quaspace(Some(&**space.borrow().translation()));
    }
    let task = Task::new(tid, process, thread, call.task.name.get());
    task.mask.set(call.task.mask.get().inherited());
    let policy = call.task.policy.get();
    task.policy.set(policy.inherited());
    if policy.resets_on_fork && !birth.has(CLONE_THREAD) {
        process.nice.set(process.nice.get().max(0));
    }
    if !birth.has(CLONE_VM) || birth.has(CLONE_VFORK) {
        task.alternate_stack.set(call.task.alternate_stack.get());
    } else {
        task.alternate_stack.set(AltStack::default());
    }
    if !birth.has(CLONE_VM)
        && let Some(area) = call.task.restart_area()
    {
        task.set_restart_area(Some(area));
    }
    task.trap.set(call.task.trap.get());
    if birth.has(CLONE_CHILD_CLEARTID) {
        task.clear_child_tid.store(birth.child_tid, Ordering::Relaxed);
    }
    call.unix.tracing.adopt(call.unix, &task);
    task
}

/// Writes the child's number into the child's own memory; a bad address is no failure.
fn write_child_tid(call: &Call<'_>, birth: &Birth, process: &Process, tid: u32) {
    if birth.has(CLONE_VM) {
        let _ = call.write(birth.child_tid, &tid);
    } else if let Some(space) = process.space() {
        let _ = call.unix.reach(call.held, &space, |space| space.write_bytes(birth.child_tid, &tid.to_le_bytes()));
    }
}

/// Sleeps until the child has its own quaspace or is gone. Only death ends the sleep early.
fn wait_for_memory(call: &Call<'_>, child: &Arc<Process>) {
    while child.is_vfork_child.get() && !call.task.is_ending() {
        call.unix.scheduler.sleep(call.held, &[&child.vfork_done], None);
    }
}
