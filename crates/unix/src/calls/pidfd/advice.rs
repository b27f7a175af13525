//! What a process says about another's memory.

use alloc::sync::Arc;

use abi::Errno;
use abi::memory::{MADV_COLD, MADV_COLLAPSE, MADV_PAGEOUT, MADV_WILLNEED};
use abi::process::CAP_SYS_NICE;
use machine::PAGE_BYTES;

use super::{living, process_of};
use crate::call::{Call, CallResult};
use crate::calls::memory::errno_of;
use crate::calls::ptrace::attach::may_access;
use crate::calls::system::read_vectors;

/// Most ranges of a call (Linux `UIO_MAXIOV`).
const RANGES_MAX: u64 = 1024;

/// Advice that never changes what the other process reads. No page is ever replaced here, so all of it comes down to looking
/// whether the ranges are mapped. Returns the bytes of those that are, up to the first that is not.
///
/// Errors: `EINVAL` for flags, other advice or a range that is not aligned; `EBADF`, `EFAULT`, `ESRCH`; `EPERM` for a process
/// that the caller may not look into, or another's without `CAP_SYS_NICE`; `ENOMEM` for what is not mapped.
pub fn process_madvise(call: &Call<'_>, [descriptor, ranges, count, advice, flags, _]: [u64; 6]) -> CallResult {
    if flags as u32 != 0 || count > RANGES_MAX {
        return Err(Errno::EINVAL);
    }
    let ranges = read_vectors(call, ranges, count)?;
    let process = living(call, descriptor)?;
    if !matches!(advice as u32, MADV_COLD | MADV_PAGEOUT | MADV_WILLNEED | MADV_COLLAPSE) {
        return Err(Errno::EINVAL);
    }
    if !may_access(call.process(), &process) {
        return Err(Errno::EPERM);
    }
    if !Arc::ptr_eq(call.process(), &process) {
        call.require(CAP_SYS_NICE)?;
    }
    let space = process.space().ok_or(Errno::ESRCH)?;
    let mut done = 0;
    for (start, bytes) in ranges {
        let page = PAGE_BYTES as u64;
        let length = bytes.next_multiple_of(page);
        let mapped = match () {
            () if !start.is_multiple_of(page) => Err(Errno::EINVAL),
            () if bytes == 0 => Ok(()),
            () => space.borrow().check_mapped(start, length).map_err(errno_of),
        };
        match mapped {
            Ok(()) => done += bytes,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// The memory of a process that is being killed goes with its threads, which is at once.
///
/// Errors: `EINVAL` for flags, or a process that is not about to end; `EBADF`; `ESRCH` for one that has ended.
pub fn process_mrelease(call: &Call<'_>, descriptor: u64, flags: u32) -> CallResult {
    let process = process_of(call, descriptor)?.0;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match () {
        () if process.is_zombie() => Err(Errno::ESRCH),
        () if process.ending.get().is_some() => Ok(0),
        () => Err(Errno::EINVAL),
    }
}
