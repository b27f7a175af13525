//! Making, moving and removing areas.

use abi::Errno;
use abi::memory::*;
use abi::process::CAP_IPC_LOCK;
use kernel::space::{
    AnonymousMemory, Kind, MapError, MapRequest, Placement, Presence, Remap, RemapTarget, Space, USER_LIMIT, View,
};
use machine::{PAGE_BYTES, Protection};

use super::lock::lock_room;
use super::{errno_of, space, text};
use crate::call::{Call, CallResult};
use crate::calls::parts::{self, LARGE_BYTES};
use crate::files::backing::NodeBacking;
use crate::files::memory::MemoryDevice;
use crate::files::open_file::OpenFile;

const PAGE: u64 = PAGE_BYTES as u64;
const ALL: Protection = Protection { read: true, write: true, execute: true };

/// Bit of a protection that means nothing on x86 (PROT_SEM).
const PROT_SEM: u64 = 8;

/// Flags that a shared map of a file may have; others are ignored, or refused if the program asked
/// for validation.
const KNOWN_FLAGS: u32 = MAP_TYPE
    | MAP_FIXED
    | MAP_ANONYMOUS
    | MAP_32BIT
    | MAP_GROWSDOWN
    | MAP_DENYWRITE
    | MAP_EXECUTABLE
    | MAP_LOCKED
    | MAP_NORESERVE
    | MAP_POPULATE
    | MAP_NONBLOCK
    | MAP_STACK
    | MAP_HUGETLB
    | ABOVE_4G
    | HUGE_2MB
    | HUGE_1GB;
const ABOVE_4G: u32 = 0x80;
const HUGE_2MB: u32 = 21 << 26;
const HUGE_1GB: u32 = 30 << 26;

/// Unknown bits are ignored, as by mmap. That any right implies reading is the processor's doing and seen nowhere.
fn protection(bits: u64) -> Protection {
    let has = |bit: u32| bits & u64::from(bit) != 0;
    Protection { read: has(PROT_READ), write: has(PROT_WRITE), execute: has(PROT_EXEC) }
}

/// The checks come in the order of Linux: alignment, descriptor, place, kind and rights.
pub fn mmap(call: &Call<'_>, [address, bytes, bits, flags, descriptor, offset]: [u64; 6]) -> CallResult {
    let flags = flags as u32;
    if offset & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL);
    }
    let file = if flags & MAP_ANONYMOUS == 0 { Some(call.file(descriptor)?) } else { None };
    if flags & MAP_HUGETLB != 0 {
        return Err(refused_huge_pages(file.is_some(), flags));
    }
    let request = MapRequest {
        address,
        placement: placement(flags),
        no_reserve: flags & MAP_NORESERVE != 0,
        populate: flags & MAP_LOCKED != 0 || flags & (MAP_POPULATE | MAP_NONBLOCK) == MAP_POPULATE,
        ..MapRequest::anonymous(bytes, protection(bits))
    };
    let space = space(call)?;
    space.borrow().place(&request).map_err(errno_of)?;
    let locked = flags & MAP_LOCKED != 0;
    if locked && call.process().limits.borrow().locked_bytes() == 0 && !call.can(CAP_IPC_LOCK) {
        return Err(Errno::EPERM);
    }
    let later = space.borrow().locks_future();
    if (locked || later.is_some()) && bytes > lock_room(call, &space.borrow()) {
        return Err(Errno::EAGAIN);
    }
    let (kind, limit) = match file {
        Some(file) => file_kind(call, &file, FilePart { first_page: offset / PAGE, bytes }, flags, request.protection)?,
        None => (anonymous_kind(call, bytes, flags)?, ALL),
    };
    let is_populated = request.populate || later == Some(Presence::Now);
    let mapped = space.borrow_mut().map(MapRequest { limit, kind, locked, ..request });
    let start = mapped.map_err(errno_of)?;
    if is_populated {
        // The map is there whatever becomes of its pages.
        let _ = parts::populate(call, &space, start..start + bytes, None);
    }
    Ok(start)
}

/// There are no huge pages in the pool.
fn refused_huge_pages(is_file: bool, flags: u32) -> Errno {
    let size_bits = flags >> 26;
    if is_file || !matches!(size_bits, 0 | 21 | 30) { Errno::EINVAL } else { Errno::ENOMEM }
}

fn placement(flags: u32) -> Placement {
    if flags & MAP_FIXED_NOREPLACE != 0 {
        Placement::FixedIfFree
    } else if flags & MAP_FIXED != 0 {
        Placement::Fixed
    } else if flags & MAP_32BIT != 0 {
        Placement::Low
    } else {
        Placement::Anywhere
    }
}

/// Error: `EINVAL`.
fn anonymous_kind(call: &Call<'_>, bytes: u64, flags: u32) -> Result<Kind, Errno> {
    let grows_down = flags & MAP_GROWSDOWN != 0;
    match flags & MAP_TYPE {
        MAP_SHARED if !grows_down => {
            let backing = AnonymousMemory::new(call.unix.pool, bytes, flags & MAP_NORESERVE != 0).map_err(errno_of)?;
            Ok(Kind::SharedAnonymous(View { backing, first_page: 0 }))
        }
        MAP_PRIVATE if grows_down => Ok(Kind::Stack),
        MAP_PRIVATE => Ok(Kind::Anonymous),
        _ => Err(Errno::EINVAL),
    }
}

/// The part of a file that is to be mapped.
struct FilePart {
    first_page: u64,
    bytes: u64,
}

/// What a map of the file shows, and the most rights it may ever have.
///
/// Errors: `EOVERFLOW`, `EOPNOTSUPP` for unknown flags, `EACCES` when the file is not open for what the map
/// shows, `ENODEV` for what cannot be mapped, `EINVAL`.
fn file_kind(
    call: &Call<'_>,
    file: &OpenFile,
    part: FilePart,
    flags: u32,
    protection: Protection,
) -> Result<(Kind, Protection), Errno> {
    let is_regular = file.has_data();
    let last_byte = if is_regular { i64::MAX as u64 } else { u64::MAX };
    if part.first_page > last_byte.saturating_sub(part.bytes) / PAGE {
        return Err(Errno::EOVERFLOW);
    }
    let shared = match flags & MAP_TYPE {
        MAP_PRIVATE => false,
        MAP_SHARED => true,
        MAP_SHARED_VALIDATE if flags & !KNOWN_FLAGS & !MAP_FIXED_NOREPLACE != 0 => return Err(Errno::ENOTSUP),
        MAP_SHARED_VALIDATE => true,
        _ => return Err(Errno::EINVAL),
    };
    if (shared && protection.write && !file.is_writable()) || !file.is_readable() {
        return Err(Errno::EACCES);
    }
    let zero = file.stream_of::<MemoryDevice>() == Some(&MemoryDevice::Zero);
    if !is_regular && !zero {
        return Err(Errno::ENODEV);
    }
    if flags & MAP_GROWSDOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let executes = !file.node().is_some_and(|node| node.volume().rules().no_execute);
    if protection.execute && !executes {
        return Err(Errno::EPERM);
    }
    let is_sealed = file.content().is_some_and(|content| content.seals().forbid_writes());
    if shared && protection.write && is_sealed {
        return Err(Errno::EPERM);
    }
    let may_write = file.is_writable() && !is_sealed;
    let limit = Protection { write: !shared || may_write, execute: executes, ..ALL };
    if zero {
        // A map of /dev/zero is anonymous memory.
        let kind = anonymous_kind(call, part.bytes, if shared { MAP_SHARED } else { MAP_PRIVATE })?;
        return Ok((kind, limit));
    }
    let node = file.node().ok_or(Errno::ENODEV)?;
    let path = call.unix.names.path_of(node, call.unix.names.root())?;
    let view = View {
        backing: NodeBacking::open(node, &path, file.outside(), shared && may_write)?,
        first_page: part.first_page,
    };
    Ok((if shared { Kind::FileShared(view) } else { Kind::FilePrivate(view) }, limit))
}

pub fn munmap(call: &Call<'_>, address: u64, bytes: u64) -> CallResult {
    let space = space(call)?;
    // What is refused below is refused before anything goes.
    if bytes > LARGE_BYTES && space.borrow().permits_unmap(address, bytes) {
        parts::release_pages(call.held, call.unix.scheduler, &space, address, address + bytes.next_multiple_of(PAGE));
    }
    let done = space.borrow_mut().unmap(address, bytes);
    done.map(|()| 0).map_err(errno_of)
}

pub fn mprotect(call: &Call<'_>, address: u64, bytes: u64, bits: u64) -> CallResult {
    change_rights(call, address, bytes, bits, None)
}

/// A key of -1 is none; no other key exists.
pub fn pkey_mprotect(call: &Call<'_>, [address, bytes, bits, key]: [u64; 4]) -> CallResult {
    change_rights(call, address, bytes, bits, Some(key as i32).filter(|&key| key != -1))
}

fn change_rights(call: &Call<'_>, address: u64, bytes: u64, bits: u64, key: Option<i32>) -> CallResult {
    let (down, up) = (bits & u64::from(PROT_GROWSDOWN) != 0, bits & u64::from(PROT_GROWSUP) != 0);
    let rights = bits & !u64::from(PROT_GROWSDOWN | PROT_GROWSUP);
    if (down && up) || address & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let rounded = bytes.checked_add(PAGE - 1).map(|sum| sum & !(PAGE - 1));
    rounded.and_then(|bytes| address.checked_add(bytes)).ok_or(Errno::ENOMEM)?;
    if rights & !(u64::from(PROT_READ | PROT_WRITE | PROT_EXEC) | PROT_SEM) != 0 || key.is_some() {
        return Err(Errno::EINVAL);
    }
    let space = space(call)?;
    let mut space = space.borrow_mut();
    if rights & u64::from(PROT_WRITE) != 0 {
        text::restore(call.unix, &mut space, address..address.saturating_add(bytes));
    }
    let done = match (down, up) {
        (true, _) => space.protect_from_stack_start(address, bytes, protection(rights)),
        // No area of x86 grows up.
        (_, true) => Err(space.check_mapped(address, 1).err().unwrap_or(MapError::Invalid)),
        _ => space.protect(address, bytes, protection(rights)),
    };
    done.map(|()| 0).map_err(errno_of)
}

pub fn mremap(call: &Call<'_>, [address, old_bytes, new_bytes, flags, to]: [u64; 5]) -> CallResult {
    let known = u64::from(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP);
    let has = |flag: u32| flags & u64::from(flag) != 0;
    if flags & !known != 0 || new_bytes > USER_LIMIT {
        return Err(Errno::EINVAL);
    }
    if (has(MREMAP_FIXED) || has(MREMAP_DONTUNMAP)) && !has(MREMAP_MAYMOVE) {
        return Err(Errno::EINVAL);
    }
    let target = match (has(MREMAP_FIXED), has(MREMAP_MAYMOVE)) {
        (true, _) => RemapTarget::Fixed(to),
        (_, true) => RemapTarget::Anywhere,
        _ => RemapTarget::InPlace,
    };
    let remap = Remap { address, old_bytes, new_bytes, target, keep_old: has(MREMAP_DONTUNMAP) };
    let shared = space(call)?;
    let mut space = shared.borrow_mut();
    if has(MREMAP_MAYMOVE) {
        text::restore(call.unix, &mut space, address..address.saturating_add(old_bytes));
    }
    let growth = new_bytes.saturating_sub(old_bytes);
    let is_locked = space.locked_bytes_within(address, address.saturating_add(1)) != 0;
    if is_locked && growth > lock_room(call, &space) {
        return Err(Errno::EAGAIN);
    }
    let moved = space.remap(remap).map_err(errno_of)?;
    drop(space);
    if is_locked && growth > 0 {
        // As far as there is memory: the map has grown already.
        let _ = parts::populate(call, &shared, moved + old_bytes..moved + new_bytes, None);
    }
    Ok(moved)
}

/// The old way to show pages of a shared map in another order.
pub fn remap_file_pages(call: &Call<'_>, [start, bytes, bits, first_page]: [u64; 4]) -> CallResult {
    let (start, bytes) = (start & !(PAGE - 1), bytes & !(PAGE - 1));
    if bits != 0 || first_page.checked_add(bytes / PAGE).is_none() {
        return Err(Errno::EINVAL);
    }
    let space = space(call)?;
    let done = Space::show_other_pages(&mut space.borrow_mut(), start, bytes, first_page);
    done.map_err(errno_of)?;
    let _ = parts::populate(call, &space, start..start + bytes, None);
    Ok(0)
}
