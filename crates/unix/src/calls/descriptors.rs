//! Calls on descriptors: dup, fcntl, locks, pipes.

pub(crate) mod control;
pub(crate) mod locks;
pub(crate) mod signal_driven;
pub(super) mod table;

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, O_CLOEXEC, O_DIRECT, O_NONBLOCK, O_RDONLY, O_WRONLY};
use kernel::pipe::{PipeEnd, Side};

use crate::call::{Call, CallResult};
use crate::calls::pipes::new_pipe;
use crate::files::closing::let_go;
use crate::files::descriptors::{Descriptor, Slot};
use crate::files::open_file::OpenFile;
use crate::files::synthesize;

/// Soft RLIMIT_NOFILE of the caller.
fn limit(call: &Call<'_>) -> u64 {
    call.process().limits.borrow().descriptors()
}

/// Puts a file behind the lowest free descriptor. Error: `EMFILE`.
pub fn add(call: &Call<'_>, file: Arc<OpenFile>, flags: u32) -> Result<Descriptor, Errno> {
    call.files().add(Slot { file, close_on_exec: flags & O_CLOEXEC != 0 }, 0, limit(call))
}

fn dup(call: &Call<'_>, descriptor: u64) -> CallResult {
    let file = call.any_file(descriptor)?;
    add(call, file, 0).map(|descriptor| descriptor.0.into())
}

fn dup2(call: &Call<'_>, old: u64, new: u64) -> CallResult {
    if old as u32 == new as u32 {
        return call.any_file(old).map(|_| u64::from(new as u32));
    }
    place(call, old, new, 0)
}

/// Errors: `EINVAL` for other flags than `O_CLOEXEC` or for twice the same descriptor, `EBADF`.
fn dup3(call: &Call<'_>, old: u64, new: u64, flags: u32) -> CallResult {
    if flags & !O_CLOEXEC != 0 || old as u32 == new as u32 {
        return Err(Errno::EINVAL);
    }
    place(call, old, new, flags)
}

fn place(call: &Call<'_>, old: u64, new: u64, flags: u32) -> CallResult {
    let limit = limit(call);
    if u64::from(new as u32) >= limit {
        return Err(Errno::EBADF);
    }
    let slot = Slot { file: call.any_file(old)?, close_on_exec: flags & O_CLOEXEC != 0 };
    let (files, new_descriptor) = (call.files(), Descriptor::from_register(new));
    let replaced = files.replace(new_descriptor, slot, limit)?;
    if let Some(replaced) = replaced {
        let_go(call.unix, call.process(), (&files, new_descriptor), replaced);
    }
    Ok(u64::from(new as u32))
}

/// Errors: `EINVAL` for unknown flags or an empty range.
fn close_range(call: &Call<'_>, first: u64, last: u64, flags: u64) -> CallResult {
    let (first, last, flags) = (first as u32, last as u32, flags as u32);
    if flags & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 || first > last {
        return Err(Errno::EINVAL);
    }
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        call.task.unshare_files()?;
    }
    let files = call.files();
    if flags & CLOSE_RANGE_CLOEXEC != 0 {
        let end = files.size().min(last as usize + 1);
        for index in first as usize..end {
            // Descriptors that are free have no flag to set.
            let _ = files.set_close_on_exec(Descriptor(index as u32), true);
        }
        return Ok(0);
    }
    let mut next = first as usize;
    while let Some((descriptor, slot)) = files.remove_first(next..last as usize + 1, |_| true) {
        next = descriptor.index() + 1;
        let_go(call.unix, call.process(), (&files, descriptor), slot);
    }
    Ok(0)
}

/// The two ends of a new pipe as open files: to read from, to write to. Error: `ENOMEM`.
pub fn open_pipe(call: &Call<'_>, flags: u32) -> Result<[Arc<OpenFile>; 2], Errno> {
    let pipe = new_pipe(call)?;
    let kept = flags & (O_NONBLOCK | O_DIRECT);
    let credentials = call.process().credentials.borrow();
    pipe.ownership().give(credentials.user, credentials.group);
    drop(credentials);
    let end = |side, access| {
        let end = PipeEnd::new(&pipe, side, call.unix.scheduler);
        let mut file = OpenFile::stream(Arc::new(end), access | kept);
        synthesize(call.unix, &mut file);
        Arc::new(file)
    };
    Ok([end(Side::Read, O_RDONLY), end(Side::Write, O_WRONLY)])
}

/// Errors: `EINVAL` for unknown flags, `EMFILE`, `ENOMEM`, `EFAULT`; then no descriptor is left over.
fn pipe2(call: &Call<'_>, address: u64, flags: u32) -> CallResult {
    if flags & !(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
        return Err(Errno::EINVAL);
    }
    let [reader, writer] = open_pipe(call, flags)?;
    let first = add(call, reader, flags)?;
    let files = call.files();
    let second = match add(call, writer, flags) {
        Ok(second) => second,
        Err(error) => {
            drop(files.remove(first));
            return Err(error);
        }
    };
    if let Err(error) = call.write(address, &[first.0, second.0]) {
        drop(files.remove(first));
        drop(files.remove(second));
        return Err(error);
    }
    Ok(0)
}
