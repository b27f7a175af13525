//! The quaspace's calls.

mod advice;
mod bill;
pub(crate) mod exhaustion;
mod lock;
mod map;
pub(crate) mod sentence;
pub(super) mod table;
pub mod text;

use alloc::sync::Arc;

use abi::Errno;
use kernel::space::{MapError, Space, USER_LIMIT};
use machine::{KernelCell, PAGE_BYTES};

use crate::call::{Call, CallResult};
use crate::calls::parts;

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
    let shared = space(call)?;
    let mut space = shared.borrow_mut();
    if space.locks_future().is_none() {
        return Ok(space.brk(wanted));
    }
    let end = space.brk(0);
    if wanted.saturating_sub(end) > lock::lock_room(call, &space) {
        return Ok(end);
    }
    let moved = space.brk(wanted);
    drop(space);
    parts::populate_locked(call, &shared, end.next_multiple_of(PAGE_BYTES as u64)..moved);
    Ok(moved)
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
