//! fcntl, without its locks.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{
    F_ADD_SEALS, F_DUPFD, F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_GETLEASE, F_GETLK, F_GETOWN, F_GETOWN_EX,
    F_GETPIPE_SZ, F_GETSIG, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETFD, F_SETFL, F_SETLK, F_SETLKW, F_SETOWN,
    F_SETOWN_EX, F_SETPIPE_SZ, F_SETSIG, F_UNLCK, FD_CLOEXEC, O_APPEND, O_ASYNC, O_DIRECT, O_NOATIME, O_NONBLOCK,
};
use abi::process::CAP_SYS_RESOURCE;
use kernel::file::{Node, Seals, VolumeIdentity};
use kernel::pipe::{Pipe, PipeEnd};

use super::locks::{self, Owner, Wait};
use super::signal_driven;
use crate::call::{Call, CallResult, int};
use crate::files::descriptors::{Descriptor, Slot};
use crate::files::open_file::OpenFile;
use kernel::call::FileCode;

/// Flags that `F_SETFL` can change.
const CHANGEABLE: u32 = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC;
/// Largest pipe that there can be, in bytes; more is `ENOMEM`.
const PIPE_BYTES_MAX: u64 = 1 << 20;
const PIPE_BYTES_LIMIT: u64 = 1 << 31;

/// Errors: `EBADF`, also for most commands on an `O_PATH` descriptor; `EINVAL` for an unknown command; the
/// command's own.
pub fn fcntl(call: &Call<'_>, descriptor: u64, command: u32, argument: u64) -> CallResult {
    match command {
        F_DUPFD => return duplicate(call, descriptor, argument, false),
        F_DUPFD_CLOEXEC => return duplicate(call, descriptor, argument, true),
        F_GETFD | F_SETFD => return descriptor_flags(call, descriptor, command, argument),
        F_GETFL => return Ok(call.any_file(descriptor)?.flags().into()),
        _ => {}
    }
    let file = call.file(descriptor)?;
    match command {
        F_SETFL => set_flags(call, &file, int(descriptor), argument as u32),
        F_GETLK => locks::get(call, &file, argument, Owner::Process),
        F_SETLK => locks::set(call, &file, argument, Owner::Process, Wait::No),
        F_SETLKW => locks::set(call, &file, argument, Owner::Process, Wait::Yes),
        F_OFD_GETLK => locks::get(call, &file, argument, Owner::File),
        F_OFD_SETLK => locks::set(call, &file, argument, Owner::File, Wait::No),
        F_OFD_SETLKW => locks::set(call, &file, argument, Owner::File, Wait::Yes),
        F_ADD_SEALS => add_seals(call, &file, argument as u32),
        F_GET_SEALS => file.content().map(|content| content.seals().bits().into()).ok_or(Errno::EINVAL),
        F_SETPIPE_SZ => resize_pipe(call, &file, argument),
        F_GETPIPE_SZ => pipe_of(&file).map(|pipe| pipe.capacity() as u64),
        F_SETOWN => signal_driven::set_owner(call, &file, int(argument)),
        F_GETOWN => signal_driven::owner(&file),
        F_SETOWN_EX => signal_driven::set_owner_of_kind(call, &file, argument),
        F_GETOWN_EX => signal_driven::owner_of_kind(call, &file, argument),
        F_SETSIG => signal_driven::set_signal(&file, argument),
        F_GETSIG => Ok(file.told.get().signal.into()),
        F_GETLEASE => Ok(F_UNLCK.into()),
        _ => Err(Errno::EINVAL),
    }
}

/// Errors: `EBADF`, `EINVAL` when `from` is above the limit, `EMFILE`.
fn duplicate(call: &Call<'_>, descriptor: u64, from: u64, close_on_exec: bool) -> CallResult {
    let file = call.any_file(descriptor)?;
    let limit = super::limit(call);
    let from = u64::from(from as u32);
    if from >= limit {
        return Err(Errno::EINVAL);
    }
    let added = call.files().add(Slot { file, close_on_exec }, from as usize, limit);
    added.map(|descriptor| descriptor.0.into())
}

fn descriptor_flags(call: &Call<'_>, descriptor: u64, command: u32, argument: u64) -> CallResult {
    let files = call.files();
    let descriptor = Descriptor::from_register(descriptor);
    if command == F_GETFD {
        let slot = files.slot(descriptor).ok_or(Errno::EBADF)?;
        return Ok(if slot.close_on_exec { FD_CLOEXEC.into() } else { 0 });
    }
    files.set_close_on_exec(descriptor, argument as u32 & FD_CLOEXEC != 0).map(|()| 0)
}

/// Error: `EPERM` for `O_NOATIME` on somebody else's file.
fn set_flags(call: &Call<'_>, file: &Arc<OpenFile>, descriptor: i32, wanted: u32) -> CallResult {
    let old = file.flags();
    if wanted & !old & O_NOATIME != 0
        && let Some(node) = file.node()
        && !call.process().credentials.borrow().owns(node)
    {
        return Err(Errno::EPERM);
    }
    if let Some(opening) = file.outside() {
        opening.set_flags(wanted & CHANGEABLE)?;
    }
    if (wanted ^ old) & O_ASYNC != 0 {
        signal_driven::set(call, file, descriptor, wanted & O_ASYNC != 0)?;
    }
    let changed = CHANGEABLE & !O_ASYNC;
    file.set_flags(file.flags() & !changed | wanted & changed);
    if file.is_appending() {
        // The routine writes at the position.
        let mut code = file.code.borrow_mut();
        (code.write, code.pwrite) = (None, None);
    }
    if file.flags() & O_NOATIME != 0 && file.content().is_some() {
        // The routines note the access time.
        let mut code = file.code.borrow_mut();
        (code.read, code.pread) = (None, None);
    }
    rebind(call, file);
    Ok(0)
}

/// Lets every process that has the file open use its present routines.
pub fn rebind(call: &Call<'_>, file: &Arc<OpenFile>) {
    for process in call.unix.tasks.processes() {
        process.each_files(|files| files.rebind(file));
    }
}

/// The rules of a volume have changed, and so has what its open files may have.
pub fn rebind_volume(call: &Call<'_>, volume: VolumeIdentity) {
    rebind_where(call, &|node| node.volume().identity() == volume);
}

/// Errors: `EPERM` for a file that is not open for writing or has been sealed against seals; `EINVAL` for unknown seals or what
/// is no file in memory; `EBUSY`.
fn add_seals(call: &Call<'_>, file: &OpenFile, seals: u32) -> CallResult {
    if !file.is_writable() {
        return Err(Errno::EPERM);
    }
    let seals = Seals::from_bits(seals)?;
    let node = file.node().filter(|_| file.content().is_some()).ok_or(Errno::EINVAL)?;
    node.add_seals(seals)?;
    // No routine that writes may outlive the seal, whoever has the file open.
    rebind_where(call, &|other| core::ptr::eq(other, &raw const **node));
    Ok(0)
}

fn rebind_where(call: &Call<'_>, choose: &dyn Fn(&Node) -> bool) {
    for process in call.unix.tasks.processes() {
        process.each_files(|files| files.rebind_where(choose));
    }
}

/// The ends of a pipe whose bytes have moved go on without synthesized routines.
fn forget_routines(call: &Call<'_>, pipe: &Arc<Pipe>) {
    for process in call.unix.tasks.processes() {
        process.each_files(|files| {
            for (_, file) in files.list() {
                if pipe_of(&file).is_ok_and(|other| Arc::ptr_eq(other, pipe)) {
                    *file.code.borrow_mut() = FileCode::default();
                    files.rebind(&file);
                }
            }
        });
    }
}

fn pipe_of(file: &OpenFile) -> Result<&Arc<Pipe>, Errno> {
    file.stream_of::<PipeEnd>().map(PipeEnd::pipe).ok_or(Errno::EBADF)
}

/// The capacity becomes the next power of two; it is the result.
///
/// Errors: `EBADF` for what is no pipe, `EINVAL`, `EPERM` above the limit without privilege, `EBUSY`, `ENOMEM`.
fn resize_pipe(call: &Call<'_>, file: &Arc<OpenFile>, bytes: u64) -> CallResult {
    let pipe = pipe_of(file)?;
    let bytes = u64::from(bytes as u32);
    if bytes > PIPE_BYTES_LIMIT {
        return Err(Errno::EINVAL);
    }
    let capacity = bytes.max(4096).next_power_of_two();
    if capacity > pipe.capacity() as u64 {
        if capacity > call.unix.families.tunables.pipe_bytes.get() && !call.can(CAP_SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
        if capacity > PIPE_BYTES_MAX {
            return Err(Errno::ENOMEM);
        }
    }
    if capacity != pipe.capacity() as u64 {
        pipe.resize(capacity as usize)?;
        forget_routines(call, pipe);
        call.unix.scheduler.wake(pipe.writable());
    }
    Ok(capacity)
}
