//! Processes as descriptors (`pidfd_open`): a number may be another's by now, a descriptor never is.
//!
//! ```text
//!   mod.rs       the descriptor, signals through it, descriptors of another process
//!   advice.rs    process_madvise, process_mrelease
//!   compare.rs   kcmp
//! ```

mod advice;
mod compare;
pub(super) mod table;

use alloc::sync::Arc;
use core::any::Any;

use machine::KernelOnce;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::siginfo::{SI_TKILL, SigInfo};
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::stream::{Nameless, Ready, Stream};

use super::descriptors;
use crate::call::{Call, CallResult};
use crate::calls::ptrace::attach::may_access;
use crate::calls::signals::kill::{check, permit};
use crate::calls::signals::send::{send_to_process, try_send_to_process};
use crate::files::descriptors::Descriptor;
use crate::files::open_file::OpenFile;
use crate::task::process::{Life, Process};

/// An open process. It keeps the record of one that has ended, not its memory and files, and can be polled for the end.
pub struct ProcessHandle {
    /// Missing only while `clone` makes the process.
    process: KernelOnce<Arc<Process>>,
}

impl ProcessHandle {
    pub fn process(&self) -> Option<&Arc<Process>> {
        self.process.get()
    }
}

impl Stream for ProcessHandle {
    fn stays_at_start(&self) -> bool {
        false
    }

    /// The record of a process that has ended is kept by its handles alone.
    fn held(&self) -> Held {
        let ended = self.process.get().filter(|process| process.life.get() == Life::Reaped);
        let record = ended.map_or(0, |process| size_of::<Process>() / Arc::strong_count(process));
        Held::new(Kept::Threads, size_of::<ProcessHandle>() + record)
    }

    fn ready(&self) -> Ready {
        let has_ended = self.process.get().is_some_and(|process| process.is_zombie());
        Ready::NONE.with_if(has_ended, Ready::READABLE)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        self.process.get().iter().for_each(|process| visit(&process.ended));
    }

    fn nameless(&self) -> Nameless {
        Nameless::Anonymous("[pidfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Errors: `EINVAL` for unknown flags or what is no number of a process, `ESRCH`, `EMFILE`.
fn pidfd_open(call: &Call<'_>, pid: i32, flags: u32) -> CallResult {
    if flags & !O_NONBLOCK != 0 || pid <= 0 {
        return Err(Errno::EINVAL);
    }
    let tasks = &call.unix.tasks;
    let Some(process) = tasks.process(pid as u32) else {
        // The number of a thread that is not its process's first.
        return Err(if tasks.task(pid as u32).is_some() { Errno::EINVAL } else { Errno::ESRCH });
    };
    let handle = ProcessHandle { process: KernelOnce::from(process) };
    add(call, Arc::new(handle), flags & O_NONBLOCK).map(|descriptor| descriptor.0.into())
}

fn add(call: &Call<'_>, handle: Arc<ProcessHandle>, flags: u32) -> Result<Descriptor, Errno> {
    descriptors::add(call, Arc::new(OpenFile::stream(handle, O_RDWR | flags)), O_CLOEXEC)
}

/// A descriptor for a process that is about to be made (`CLONE_PIDFD`).
pub struct Expected(Arc<ProcessHandle>);

impl Expected {
    /// Opens it and writes its number to `address`. Errors: `EFAULT`, `EMFILE`, `ENOMEM`.
    pub fn open(call: &Call<'_>, address: u64) -> Result<Expected, Errno> {
        call.write(address, &0u32)?;
        let handle = Arc::new(ProcessHandle { process: KernelOnce::new() });
        let descriptor = add(call, handle.clone(), 0)?;
        // Nothing has changed the memory since it was tried.
        let _ = call.write(address, &descriptor.0);
        Ok(Expected(handle))
    }

    pub fn fulfil(self, process: &Arc<Process>) {
        let _ = self.0.process.set(process.clone());
    }
}

/// The process that a descriptor stands for, and whether it was opened with `O_NONBLOCK`. Error: `EBADF` for another file.
pub fn process_of(call: &Call<'_>, descriptor: u64) -> Result<(Arc<Process>, bool), Errno> {
    let file = call.file(descriptor)?;
    let handle = file.stream_of::<ProcessHandle>().ok_or(Errno::EBADF)?;
    Ok((handle.process().cloned().ok_or(Errno::EBADF)?, file.is_nonblocking()))
}

/// Error: `ESRCH` for a process that has been waited for.
fn living(call: &Call<'_>, descriptor: u64) -> Result<Arc<Process>, Errno> {
    let process = process_of(call, descriptor)?.0;
    let is_known = call.unix.tasks.process(process.pid).is_some_and(|known| Arc::ptr_eq(&known, &process));
    if is_known { Ok(process) } else { Err(Errno::ESRCH) }
}

/// Errors: `EINVAL` for flags, no signal, or details of another one; `EBADF`, `EFAULT`; `EPERM` also for details that only the
/// kernel gives; `ESRCH`, `EAGAIN`.
fn pidfd_send_signal(call: &Call<'_>, [descriptor, signal, details, flags, ..]: [u64; 6]) -> CallResult {
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let process = process_of(call, descriptor)?.0;
    let own = call.process();
    let given = if details == 0 { None } else { Some(read_details(call, details)?) };
    if let Some(info) = &given {
        if info.signo as u32 != signal as u32 {
            return Err(Errno::EINVAL);
        }
        if !Arc::ptr_eq(own, &process) && (info.code >= 0 || info.code == SI_TKILL) {
            return Err(Errno::EPERM);
        }
    }
    living(call, descriptor)?;
    let signal = check(signal)?;
    permit(call, &process, signal)?;
    match given {
        _ if signal == 0 => {}
        Some(info) => try_send_to_process(call.unix, &process, &info)?,
        None => {
            let info = SigInfo::kill(signal, own.pid as i32, own.user_ids.get().real);
            send_to_process(call.unix, &process, &info);
        }
    }
    Ok(0)
}

fn read_details(call: &Call<'_>, address: u64) -> Result<SigInfo, Errno> {
    let mut bytes = [0; SigInfo::BYTES];
    call.copy_in(address, &mut bytes)?;
    Ok(SigInfo::from_bytes(&bytes))
}

/// A descriptor of another process becomes one of ours, for the same open file.
///
/// Errors: `EINVAL` for flags, `EBADF` for either descriptor, `EPERM`, `ESRCH`, `EMFILE`.
fn pidfd_getfd(call: &Call<'_>, descriptor: u64, theirs: u64, flags: u32) -> CallResult {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let process = living(call, descriptor)?;
    if !may_access(call.process(), &process) {
        return Err(Errno::EPERM);
    }
    if process.is_zombie() {
        return Err(Errno::ESRCH);
    }
    let file = process.file(Descriptor::from_register(theirs)).ok_or(Errno::EBADF)?;
    descriptors::add(call, file, O_CLOEXEC).map(|descriptor| descriptor.0.into())
}
