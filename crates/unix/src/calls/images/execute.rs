//! The calls `execve` and `execveat`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::Errno;
use abi::file::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use abi::process::SECBIT_KEEP_CAPS;
use kernel::file::{FinalLink, Node};
use machine::{KernelCell, Registers, TryGrow, try_text};

use super::{Identity, LoadError, Wanted, check_executable, install, load, task_name};
use crate::call::{Call, CallResult};
use crate::calls::parts;
use crate::files::closing;
use crate::signal::altstack::AltStack;
use crate::signal::fault::TrapRecord;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Bytes of arguments that Linux takes at most, whatever the stack limit.
const ARGUMENT_BYTES_MAX: u64 = 6 << 20;
/// And at least: one string of the greatest length.
const ARGUMENT_BYTES_MIN: u64 = 131_072;

pub fn execve(call: &mut Call<'_>, path: u64, argv: u64, envp: u64) -> CallResult {
    execveat(call, [AT_FDCWD as u64, path, argv, envp, 0])
}

/// Errors: those of the path and of `load`, `E2BIG`, `EFAULT`, `EINVAL` for unknown flags, `ELOOP` for a
/// symlink that is not to be followed, `EINTR` when another thread ended this one meanwhile.
pub fn execveat(call: &mut Call<'_>, [directory, path, argv, envp, flags]: [u64; 5]) -> CallResult {
    let flags = flags as u32;
    if flags & !(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let path = call.read_path(path)?;
    let (node, name) = find(call, directory, path, flags)?;
    check_executable(call.process(), &node)?;
    let limit = call.process().limits.borrow().stack_bytes();
    let budget = (limit / 4).clamp(ARGUMENT_BYTES_MIN, ARGUMENT_BYTES_MAX) as usize;
    let argv = call.read_strings(argv, budget)?;
    let used: usize = argv.iter().map(|string| string.len() + 9).sum();
    let envp = call.read_strings(envp, budget.saturating_sub(used))?;
    let task_name = task_name(&name);
    let loaded = load(call.held, call.unix, call.process(), node, Wanted { path: name, argv, envp });
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(LoadError::Refused(errno)) => return Err(errno),
        Err(LoadError::Lost(errno)) => {
            // The old program is not gone yet, but it must not notice.
            crate::calls::signals::deliver::end_by_segv(call.task);
            return Err(errno);
        }
    };
    end_other_threads(call)?;
    call.process().tasks.borrow_mut().room_for(1)?;
    call.task.unshare_files()?;
    // From here on there is no way back to the old program.
    let task = lead(call);
    forget_old_program(call, &task, task_name);
    take_identity(call.process(), loaded.identity);
    call.unix.families.aio.process_ended(call.process().pid);
    let (registers, old) = install(call.process(), loaded);
    enter_space(call, &task);
    // Shared with a parent after vfork; otherwise its frames come back here.
    old.iter().for_each(|old| parts::release_space(call.held, call.unix.scheduler, old));
    drop(old);
    crate::calls::life::end::release_vfork_parent(call.unix, call.process());
    // The selectors are the machine's and stay.
    let Registers { cause, cs, ss, .. } = *call.registers;
    *call.registers = Registers { cause, cs, ss, ..registers };
    call.registers_replaced = true;
    crate::calls::ptrace::stops::executed(call.held, call.unix, &task, call.registers, call.task.tid);
    Ok(0)
}

/// The file to run, and its path as the program will see it.
fn find(call: &Call<'_>, directory: u64, path: Vec<u8>, flags: u32) -> Result<(Arc<Node>, Vec<u8>), Errno> {
    if path.is_empty() {
        if flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT);
        }
        let node = call.any_file(directory)?.node().cloned().ok_or(Errno::EACCES)?;
        return Ok((node, try_text(format_args!("/dev/fd/{}", directory as i32))?.into_bytes()));
    }
    let link = if flags & AT_SYMLINK_NOFOLLOW != 0 { FinalLink::Keep } else { FinalLink::Follow };
    let node = call.with_view(directory, &path, |view| call.unix.names.lookup(view, &path, link))?;
    if node.is_symlink() {
        return Err(Errno::ELOOP);
    }
    let is_relative = path.first() != Some(&b'/') && directory as i32 != AT_FDCWD;
    let name = if is_relative {
        let mut name = try_text(format_args!("/dev/fd/{}/", directory as i32))?.into_bytes();
        name.try_extend_from_slice(&path)?;
        name
    } else {
        path
    };
    Ok((node, name))
}

/// Error: `EINTR` when another thread ended this one first; the caller never sees it.
fn end_other_threads(call: &Call<'_>) -> Result<(), Errno> {
    let process = call.process();
    if process.live_tasks() > 1 && !call.task.is_ending() {
        process.each_task(|task| {
            if !Arc::ptr_eq(task, call.task) {
                task.ending.set(true);
                task.wake_to_end(call.unix.scheduler);
            }
        });
    }
    while process.live_tasks() > 1 && !call.task.is_ending() {
        call.unix.scheduler.sleep(call.held, &[&process.threads_left], None);
    }
    if call.task.is_ending() { Err(Errno::EINTR) } else { Ok(()) }
}

/// The thread that executes becomes the first of its process, whose number it takes.
fn lead(call: &Call<'_>) -> Arc<Task> {
    let old = call.task;
    let process = call.process();
    if old.tid == process.pid {
        return old.clone();
    }
    crate::calls::life::end::let_go_of_memory(call.held, call.unix, old);
    old.bindings.unbind_descriptor_calls(old.thread.tte());
    old.bindings.unbind_constants(old.thread.tte());
    old.bindings.unbind_signals(old.thread.tte());
    call.unix.tasks.remove_task(old);
    let task = Task::new(process.pid, process, &old.thread, old.name.get());
    old.leave_process();
    task.mask.set(old.mask.get());
    core::mem::swap(&mut *task.pending.borrow_mut(), &mut *old.pending.borrow_mut());
    drop(task.replace_own_files(old.replace_own_files(None)));
    call.unix.tasks.add_task(&task);
    crate::calls::ptrace::attach::succeed(old, &task);
    call.unix.tracing.adopt(call.unix, &task);
    task.call_attention();
    task
}

/// What `execve` resets: descriptors that say so, handlers, alternate stack, robust list, name.
fn forget_old_program(call: &Call<'_>, task: &Arc<Task>, name: [u8; 16]) {
    let process = call.process();
    crate::calls::life::end::let_go_of_memory(call.held, call.unix, task);
    // A table that the thread has for itself becomes the process's; others must not see the changes.
    if let Some(own) = task.replace_own_files(None) {
        let old = process.set_files(own);
        closing::release_last(call.held, call.unix, process, old);
    }
    closing::release_where(call.held, call.unix, process, &process.files(), |slot| slot.close_on_exec);
    let mut actions = process.actions().borrow().clone();
    actions.reset_for_exec();
    process.set_actions(Arc::new(KernelCell::new(actions)));
    task.alternate_stack.set(AltStack::default());
    task.trap.set(TrapRecord::default());
    task.set_restart_area(None);
    task.robust_list.store(0, Ordering::Relaxed);
    crate::calls::times::posix::delete_all(process);
    *task.restart_block.borrow_mut() = None;
    task.name.set(name);
    process.has_user_calls.set(false);
    process.has_executed.set(true);
}

fn take_identity(process: &Process, identity: Identity) {
    let (mut user, mut group) = (process.user_ids.get(), process.group_ids.get());
    (user.effective, user.saved) = (identity.user, identity.user);
    (group.effective, group.saved) = (identity.group, identity.group);
    process.user_ids.set(user);
    process.group_ids.set(group);
    let mut credentials = process.credentials.borrow_mut();
    (credentials.user, credentials.group) = (identity.user, identity.group);
    drop(credentials);
    process.hold(identity.capabilities);
    process.unbind_identity();
    let mut settings = process.settings.borrow_mut();
    settings.secure_bits &= !SECBIT_KEEP_CAPS;
    settings.barriers = 0;
    settings.dumpable = u32::from(identity.is_dumpable);
    if identity.is_secure {
        settings.parent_death_signal = 0;
    }
}

/// The running thread leaves the old quaspace for the process's new one.
fn enter_space(call: &Call<'_>, task: &Task) {
    let Some(space) = call.process().space() else { return };
    let translation = space.borrow().translation().clone();
    let tte = task.thread.tte();
    tte.set_quaspace(Some(&*translation));
    call.unix.machine.activate(Some(&*translation));
    call.unix.scheduler.quaspace_changed();
    tte.set_thread_pointer(0);
    tte.set_gs_base(0);
    tte.erase_vector_state();
}
