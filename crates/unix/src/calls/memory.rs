//! The quaspace's calls.

use alloc::sync::Arc;

use abi::Errno;
use abi::memory::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_NORESERVE, MAP_POPULATE, MAP_PRIVATE, MAP_SHARED,
    PROT_EXEC, PROT_READ, PROT_WRITE,
};
use kernel::space::{AnonymousMemory, Kind, MapError, MapRequest, Placement, Space, USER_LIMIT, View};
use machine::{KernelCell, Protection};

use super::Entry;
use crate::call::{Call, CallResult};
use crate::files::NodeBacking;
use abi::nr;

/// The one place where a refused change of areas becomes an errno.
pub fn errno_of(error: MapError) -> Errno {
    match error {
        MapError::Invalid => Errno::EINVAL,
        MapError::NoMemory => Errno::ENOMEM,
        MapError::Exists => Errno::EEXIST,
        MapError::Access => Errno::EACCES,
        MapError::NotPermitted => Errno::EPERM,
        MapError::Overflow => Errno::EOVERFLOW,
        MapError::Fault => Errno::EFAULT,
    }
}

pub fn space(call: &Call<'_>) -> Result<Arc<KernelCell<Space>>, Errno> {
    call.process().space().ok_or(Errno::ESRCH)
}

pub fn brk(call: &Call<'_>, wanted: u64) -> CallResult {
    Ok(space(call)?.borrow_mut().brk(wanted))
}

/// Error: `EINVAL` for unknown bits.
pub fn protection(bits: u64) -> Result<Protection, Errno> {
    if bits & !u64::from(PROT_READ | PROT_WRITE | PROT_EXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    let has = |bit: u32| bits & u64::from(bit) != 0;
    Ok(Protection {
        read: has(PROT_READ) || has(PROT_WRITE) || has(PROT_EXEC),
        write: has(PROT_WRITE),
        execute: has(PROT_EXEC),
    })
}

pub fn mmap(call: &Call<'_>, [address, bytes, bits, flags, descriptor, offset]: [u64; 6]) -> CallResult {
    let flags = flags as u32;
    let protection = Protection { ..protection(bits & 7)? };
    if offset & 0xFFF != 0 {
        return Err(Errno::EINVAL);
    }
    let shared = match flags & 0xF {
        MAP_SHARED | 3 => true,
        MAP_PRIVATE => false,
        _ => return Err(Errno::EINVAL),
    };
    let placement = if flags & MAP_FIXED_NOREPLACE != 0 {
        Placement::FixedIfFree
    } else if flags & MAP_FIXED != 0 {
        Placement::Fixed
    } else {
        Placement::Anywhere
    };
    let (kind, limit) = if flags & MAP_ANONYMOUS != 0 {
        (anonymous(call, bytes, shared, flags), Protection { read: true, write: true, execute: true })
    } else {
        file_kind(call, descriptor, offset, protection, shared)?
    };
    let request = MapRequest {
        address,
        bytes,
        placement,
        protection,
        limit,
        kind,
        no_reserve: flags & MAP_NORESERVE != 0,
        populate: flags & MAP_POPULATE != 0,
    };
    let space = space(call)?;
    let mapped = space.borrow_mut().map(request);
    mapped.map_err(errno_of)
}

fn anonymous(call: &Call<'_>, bytes: u64, shared: bool, flags: u32) -> Kind {
    if shared {
        let backing = AnonymousMemory::new(call.unix.pool, bytes);
        Kind::SharedAnonymous(View { backing, first_page: 0 })
    } else if flags & MAP_GROWSDOWN != 0 {
        Kind::Stack
    } else {
        Kind::Anonymous
    }
}

/// Errors: `EBADF`, `EACCES` when the file is not open for what the map shows, `ENODEV` for what cannot be mapped.
fn file_kind(
    call: &Call<'_>,
    descriptor: u64,
    offset: u64,
    protection: Protection,
    shared: bool,
) -> Result<(Kind, Protection), Errno> {
    let file = call.file(descriptor)?;
    if !file.is_readable() || (shared && protection.write && !file.is_writable()) {
        return Err(Errno::EACCES);
    }
    let all = Protection { read: true, write: true, execute: true };
    let limit = if shared { Protection { write: file.is_writable(), ..all } } else { all };
    if file.content().is_none() {
        // A private map of /dev/zero is anonymous memory.
        let zero = file.stream_of::<crate::files::MemoryDevice>() == Some(&crate::files::MemoryDevice::Zero);
        return if zero { Ok((Kind::Anonymous, all)) } else { Err(Errno::ENODEV) };
    }
    let node = file.node().ok_or(Errno::ENODEV)?;
    let path = call.unix.names.path_of(node, call.unix.names.root());
    let view = View { backing: NodeBacking::new(node, &path), first_page: offset >> 12 };
    Ok((if shared { Kind::FileShared(view) } else { Kind::FilePrivate(view) }, limit))
}

pub fn munmap(call: &Call<'_>, address: u64, bytes: u64) -> CallResult {
    let space = space(call)?;
    let done = space.borrow_mut().unmap(address, bytes);
    done.map(|()| 0).map_err(errno_of)
}

pub fn mprotect(call: &Call<'_>, address: u64, bytes: u64, bits: u64) -> CallResult {
    const GROWS_DOWN: u64 = 0x0100_0000;
    let protection = protection(bits & !GROWS_DOWN)?;
    let space = space(call)?;
    let mut space = space.borrow_mut();
    let done = if bits & GROWS_DOWN != 0 {
        space.protect_from_stack_start(address, bytes, protection)
    } else {
        space.protect(address, bytes, protection)
    };
    done.map(|()| 0).map_err(errno_of)
}

/// Thread-local-storage bases. Errors: `EPERM` for an address outside the quaspace, `EINVAL`.
pub fn arch_prctl(call: &Call<'_>, code: u64, address: u64) -> CallResult {
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    let tte = call.task.thread.tte();
    match code {
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
        _ => Err(Errno::EINVAL),
    }
}

pub const CALLS: &[Entry] = &[
    (nr::BRK, |call, [a, ..]| brk(call, a)),
    (nr::MMAP, |call, arguments| mmap(call, arguments)),
    (nr::MUNMAP, |call, [a, b, ..]| munmap(call, a, b)),
    (nr::MPROTECT, |call, [a, b, c, ..]| mprotect(call, a, b, c)),
    (nr::ARCH_PRCTL, |call, [a, b, ..]| arch_prctl(call, a, b)),
];
