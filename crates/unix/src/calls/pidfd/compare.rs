//! Whether two processes have something in common (`kcmp`).

use alloc::sync::Arc;
use core::cmp::Ordering;

use abi::Errno;
use abi::process::{KCMP_FILE, KCMP_FILES, KCMP_FS, KCMP_IO, KCMP_SIGHAND, KCMP_SYSVSEM, KCMP_VM};

use crate::call::{Call, CallResult};
use crate::calls::ptrace::attach::may_access;
use crate::files::descriptors::Descriptor;
use crate::task::thread::Task;

/// 0: they are the same; 1 and 2: the first stands before or behind the second, in an order that says nothing else.
///
/// Errors: `ESRCH`, `EPERM`, `EBADF` for a descriptor, `EINVAL` for another kind; `EOPNOTSUPP` for members of an epoll instance.
pub fn kcmp(call: &Call<'_>, [first, second, kind, first_index, second_index, _]: [u64; 6]) -> CallResult {
    const KCMP_EPOLL_TFD: u32 = 7;
    let task = |tid: u64| call.unix.tasks.task(tid as u32).ok_or(Errno::ESRCH);
    let (first, second) = (task(first)?, task(second)?);
    if [&first, &second].iter().any(|task| !may_access(call.process(), &task.process)) {
        return Err(Errno::EPERM);
    }
    let kind = kind as u32;
    if kind == KCMP_EPOLL_TFD {
        return Err(Errno::EOPNOTSUPP);
    }
    let one = place(&first, kind, first_index)?;
    let other = place(&second, kind, second_index)?;
    Ok(match one.cmp(&other) {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}

/// Where the thing lies. Programs learn nothing of it but which comes first, as what is compared moves with every boot.
fn place(task: &Task, kind: u32, index: u64) -> Result<usize, Errno> {
    let process = &task.process;
    Ok(match kind {
        KCMP_FILE => Arc::as_ptr(&task.file(Descriptor::from_register(index)).ok_or(Errno::EBADF)?) as usize,
        KCMP_VM => process.space().map_or(0, |space| Arc::as_ptr(&space) as usize),
        KCMP_FILES => Arc::as_ptr(&task.files()) as usize,
        KCMP_FS => Arc::as_ptr(&process.place.borrow()) as usize,
        KCMP_SIGHAND => Arc::as_ptr(&process.actions()) as usize,
        // Nobody shares what is taken back at a process's end.
        KCMP_SYSVSEM => task.process.pid as usize,
        // Nobody has any.
        KCMP_IO => 0,
        _ => return Err(Errno::EINVAL),
    })
}
