//! The quaspace's calls.

mod advice;
mod bill;
mod exhaustion;
mod lock;
mod map;
mod sentence;
pub mod text;

use alloc::sync::Arc;

use abi::Errno;
use kernel::space::{MapError, Space, USER_LIMIT};
use machine::KernelCell;

use super::Entry;
use crate::call::{Call, CallResult};
use abi::nr;

pub(crate) use exhaustion::Want;
pub use exhaustion::{GROWING, admits, make_room, take_starvation};
pub use sentence::lose_left;

/// The one place where a refused change of areas becomes an errno.
pub fn errno_of(error: MapError) -> Errno {
    match error {
        MapError::Invalid => Errno::EINVAL,
        MapError::NoMemory => Errno::ENOMEM,
        MapError::Exists => Errno::EEXIST,
        MapError::Access => Errno::EACCES,
        MapError::NotPermitted => Errno::EPERM,
        MapError::Overflow => Errno::EOVERFLOW,
        MapError::Fault | MapError::Coming => Errno::EFAULT,
    }
}

pub fn space(call: &Call<'_>) -> Result<Arc<KernelCell<Space>>, Errno> {
    call.process().space().ok_or(Errno::ESRCH)
}

fn brk(call: &Call<'_>, wanted: u64) -> CallResult {
    let space = space(call)?;
    let mut space = space.borrow_mut();
    if space.locks_future().is_some() {
        let end = space.brk(0);
        if wanted.saturating_sub(end) > lock::lock_room(call, &space) {
            return Ok(end);
        }
    }
    Ok(space.brk(wanted))
}

/// Thread-local-storage bases and what else only x86 has.
///
/// Errors: `EPERM` for an address outside the quaspace, `ENODEV` where the processor cannot do it, `EINVAL`, `EFAULT`.
fn arch_prctl(call: &Call<'_>, code: u64, address: u64) -> CallResult {
    // `asm/prctl.h`
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    const GET_CPUID: u64 = 0x1011;
    const SET_CPUID: u64 = 0x1012;
    const GET_UNTAG_MASK: u64 = 0x4001;
    const ENABLE_TAGGED_ADDR: u64 = 0x4002;
    const GET_MAX_TAG_BITS: u64 = 0x4003;
    const FORCE_TAGGED_SVA: u64 = 0x4004;
    let tte = call.task.thread.tte();
    // The option is a C int.
    match u64::from(code as u32) {
        SET_FS | SET_GS if address >= USER_LIMIT => Err(Errno::EPERM),
        SET_FS => {
            tte.set_thread_pointer(address);
            Ok(0)
        }
        SET_GS => {
            tte.set_gs_base(address);
            Ok(0)
        }
        GET_FS => call.write(address, &tte.thread_pointer()).map(|()| 0),
        GET_GS => call.write(address, &tte.gs_base()).map(|()| 0),
        // Programs may use CPUID, and it cannot be taken from them.
        GET_CPUID => Ok(1),
        SET_CPUID => Err(Errno::ENODEV),
        GET_UNTAG_MASK => call.write(address, &u64::MAX).map(|()| 0),
        GET_MAX_TAG_BITS => call.write(address, &0u64).map(|()| 0),
        ENABLE_TAGGED_ADDR | FORCE_TAGGED_SVA => Err(Errno::ENODEV),
        _ => Err(Errno::EINVAL),
    }
}

pub const CALLS: &[Entry] = &[
    (nr::BRK, |call, [a, ..]| brk(call, a)),
    (nr::MMAP, |call, arguments| map::mmap(call, arguments)),
    (nr::MUNMAP, |call, [a, b, ..]| map::munmap(call, a, b)),
    (nr::MREMAP, |call, [a, b, c, d, e, _]| map::mremap(call, [a, b, c, d, e])),
    (nr::REMAP_FILE_PAGES, |call, [a, b, c, d, _, _]| map::remap_file_pages(call, [a, b, c, d])),
    (nr::MPROTECT, |call, [a, b, c, ..]| map::mprotect(call, a, b, c)),
    (nr::PKEY_MPROTECT, |call, [a, b, c, d, ..]| map::pkey_mprotect(call, [a, b, c, d])),
    // The processor's protection keys are not used: Linux without them says the same.
    (nr::PKEY_ALLOC, |_, _| Err(Errno::EINVAL)),
    (nr::PKEY_FREE, |_, _| Err(Errno::EINVAL)),
    (nr::MAP_SHADOW_STACK, |_, _| Err(Errno::ENOTSUP)),
    (nr::MADVISE, |call, [a, b, c, ..]| advice::madvise(call, a, b, c)),
    (nr::MSYNC, |call, [a, b, c, ..]| advice::msync(call, a, b, c)),
    (nr::MINCORE, |call, [a, b, c, ..]| advice::mincore(call, a, b, c)),
    (nr::MLOCK, |call, [a, b, ..]| lock::mlock(call, a, b)),
    (nr::MLOCK2, |call, [a, b, c, ..]| lock::mlock2(call, a, b, c)),
    (nr::MUNLOCK, |call, [a, b, ..]| lock::munlock(call, a, b)),
    (nr::MLOCKALL, |call, [a, ..]| lock::mlockall(call, a)),
    (nr::MUNLOCKALL, |call, _| lock::munlockall(call)),
    (nr::ARCH_PRCTL, |call, [a, b, ..]| arch_prctl(call, a, b)),
];
