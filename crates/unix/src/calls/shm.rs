//! System V shared memory: segments with numbers, attached to quaspaces as shared areas.
//!
//! A segment counts as attached once for each area that shows it, as on Linux: an area holds one
//! reference to the segment's pages, so the count is the number of references less the table's own. When a segment is
//! removed the table gives up its reference: the last area to go, by whatever call or end, takes the segment along.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Write;

use abi::process::{CAP_IPC_OWNER, CAP_SYS_ADMIN};
use abi::{Errno, Field};
use kernel::charge::{Bill, Held};
use kernel::file::Credentials;
use kernel::space::{
    AnonymousMemory, AreaLabel, AreaView, Backing, BackingError, BackingIdentity, Kind, MapRequest, Placement, Space,
    Supply, View,
};
use machine::{KernelCell, Ordered, PAGE_BYTES, Protection, Text, try_text};

use super::memory::{errno_of, space};
use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use abi::nr;

const PAGE: u64 = PAGE_BYTES as u64;

const IPC_CREAT: u32 = 0o1000;
const IPC_EXCL: u32 = 0o2000;
const SHM_HUGETLB: u32 = 0o4000;
const SHM_NORESERVE: u32 = 0o10000;

/// What all segments of the machine are found by.
pub struct Segments(KernelCell<State>);

impl Segments {
    pub fn new() -> Segments {
        Segments(KernelCell::new(State::default()))
    }

    /// Error: `EINVAL` for a number that no segment has.
    fn with<R>(&self, id: u64, act: impl FnOnce(&mut Segment) -> Result<R, Errno>) -> Result<R, Errno> {
        act(self.0.borrow_mut().by_id.get_mut(&(id as u32)).ok_or(Errno::EINVAL)?)
    }
}

#[derive(Default)]
struct State {
    by_id: Ordered<u32, Segment>,
    next_id: u32,
}

impl State {
    /// Of all segments, present or not.
    fn pages(&self) -> u64 {
        self.by_id.iter().map(|(_, segment)| segment.bytes.div_ceil(PAGE)).sum()
    }
}

struct Segment {
    pages: Weak<SegmentPages>,
    /// The table's own reference. `None`: it goes with its last area, and its key is free (`IPC_RMID`).
    kept: Option<Arc<SegmentPages>>,
    key: u32,
    user: u32,
    group: u32,
    creator: (u32, u32),
    mode: u32,
    bytes: u64,
    /// Seconds since 1970 of the last attach, the last detach and the last change.
    attached_at: i64,
    detached_at: i64,
    changed_at: i64,
    creator_pid: u32,
    last_pid: u32,
    locked: bool,
}

/// The pages of a segment, under the name that /proc/PID/maps shows.
struct SegmentPages {
    memory: Arc<AnonymousMemory>,
    name: String,
    id: u32,
    table: &'static Segments,
}

impl Drop for SegmentPages {
    /// Nobody can have borrowed the table: it has given up its own reference before.
    fn drop(&mut self) {
        self.table.0.borrow_mut().by_id.remove(&self.id);
    }
}

impl Backing for SegmentPages {
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        self.memory.page(index)
    }

    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError> {
        self.memory.page_for_write(index)
    }

    fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }

    fn held(&self) -> Held {
        self.memory.held()
    }

    fn identity(&self) -> BackingIdentity {
        BackingIdentity { device_major: 0, device_minor: 1, inode: self.id.into() }
    }
}

impl Segment {
    /// Areas that show the segment.
    fn attached(&self) -> u64 {
        (self.pages.strong_count() - usize::from(self.kept.is_some())) as u64
    }

    /// Error: `EACCES` when the mode bits do not grant all of `wanted` (as in one digit of a mode).
    fn permit(&self, who: &Credentials, wanted: u32) -> Result<(), Errno> {
        let granted = if who.user == self.user || who.user == self.creator.0 {
            self.mode >> 6
        } else if who.in_group(self.group) || who.in_group(self.creator.1) {
            self.mode >> 3
        } else {
            self.mode
        };
        if who.can(CAP_IPC_OWNER) || wanted & !granted & 7 == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Error: `EPERM`.
    fn check_owner(&self, who: &Credentials) -> Result<(), Errno> {
        let owns = who.can(CAP_SYS_ADMIN) || who.user == self.user || who.user == self.creator.0;
        if owns { Ok(()) } else { Err(Errno::EPERM) }
    }
}

impl Segments {
    /// The part that the table itself holds of what a process has made.
    pub fn charge(&self, pid: u32, bill: &mut Bill) {
        for (_, segment) in self.0.borrow().by_id.iter().filter(|(_, segment)| segment.creator_pid == pid) {
            segment.kept.iter().for_each(|pages| bill.share(pages.held(), Arc::strong_count(pages)));
        }
    }

    /// A process was killed for want of memory: what it has made and nobody shows goes with it.
    pub fn lose_unshown(&self, pid: u32) {
        loop {
            let mut state = self.0.borrow_mut();
            let goes =
                |segment: &Segment| segment.creator_pid == pid && segment.kept.is_some() && segment.attached() == 0;
            let Some(id) = state.by_id.iter().find(|(_, segment)| goes(segment)).map(|(id, _)| *id) else {
                return;
            };
            let pages = state.by_id.get_mut(&id).and_then(|segment| segment.kept.take());
            // Their end takes the segment out of the table.
            drop(state);
            drop(pages);
        }
    }
}

fn shmget(call: &Call<'_>, key: u64, bytes: u64, flags: u64) -> CallResult {
    let (key, flags) = (key as u32, flags as u32);
    let who = call.process().credentials.borrow().clone();
    let mut state = call.unix.shm.0.borrow_mut();
    let has_key = |segment: &Segment| segment.kept.is_some() && segment.key == key;
    let found = if key == 0 { None } else { state.by_id.iter().find(|(_, segment)| has_key(segment)) };
    if let Some((&id, segment)) = found {
        if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL {
            return Err(Errno::EEXIST);
        }
        if bytes > segment.bytes {
            return Err(Errno::EINVAL);
        }
        segment.permit(&who, flags >> 6 | flags >> 3 | flags)?;
        return Ok(id.into());
    }
    if key != 0 && flags & IPC_CREAT == 0 {
        return Err(Errno::ENOENT);
    }
    let limits = &call.unix.families.tunables;
    if bytes == 0 || bytes > limits.segment_bytes.get() {
        return Err(Errno::EINVAL);
    }
    if state.pages().saturating_add(bytes.div_ceil(PAGE)) > limits.segment_pages.get() {
        return Err(Errno::ENOSPC);
    }
    // Linux refuses here only what its counters cannot hold; a segment beyond all memory is no use.
    let memory_bytes = call.unix.pool.total_frames() as u64 * PAGE;
    if flags & SHM_HUGETLB != 0 || bytes > memory_bytes {
        return Err(Errno::ENOMEM);
    }
    if state.by_id.len() as u64 >= limits.segments.get() {
        return Err(Errno::ENOSPC);
    }
    let id = state.next_id;
    state.next_id = (id + 1) & 0x7FFF_FFFF;
    let memory = AnonymousMemory::new(call.unix.pool, bytes, flags & SHM_NORESERVE != 0).map_err(errno_of)?;
    let name = try_text(format_args!("/SYSV{key:08x} (deleted)"))?;
    let pages = Arc::new(SegmentPages { memory, name, id, table: &call.unix.shm });
    let segment = Segment {
        pages: Arc::downgrade(&pages),
        kept: Some(pages),
        key,
        user: who.user,
        group: who.group,
        creator: (who.user, who.group),
        mode: flags & 0o777,
        bytes,
        attached_at: 0,
        detached_at: 0,
        changed_at: call.now().seconds,
        creator_pid: call.process().pid,
        last_pid: 0,
        locked: false,
    };
    // A segment that is refused goes when the table is not borrowed any more.
    let kept = segment.kept.clone();
    let inserted = state.by_id.try_insert(id, segment).map(drop);
    drop(state);
    drop(kept);
    inserted.map_err(|_| Errno::ENOMEM)?;
    Ok(id.into())
}

/// How and where a segment is to be shown.
struct Attachment {
    address: u64,
    placement: Placement,
    protection: Protection,
    /// Rights needed on the segment, as in one digit of a mode.
    wanted: u32,
}

/// Error: `EINVAL`.
fn attachment(address: u64, flags: u32) -> Result<Attachment, Errno> {
    const READ_ONLY: u32 = 0o10000;
    const ROUND: u32 = 0o20000;
    const REMAP: u32 = 0o40000;
    const EXECUTE: u32 = 0o100000;
    let mut address = address;
    if address & (PAGE - 1) != 0 {
        if flags & ROUND == 0 {
            return Err(Errno::EINVAL);
        }
        address &= !(PAGE - 1);
        if address == 0 && flags & REMAP != 0 {
            return Err(Errno::EINVAL);
        }
    }
    let placement = match (address, flags & REMAP != 0) {
        (0, true) => return Err(Errno::EINVAL),
        (0, false) => Placement::Anywhere,
        (_, true) => Placement::Fixed,
        (_, false) => Placement::FixedIfFree,
    };
    let (write, execute) = (flags & READ_ONLY == 0, flags & EXECUTE != 0);
    let protection = Protection { read: true, write, execute };
    Ok(Attachment { address, placement, protection, wanted: 4 | u32::from(write) << 1 | u32::from(execute) })
}

fn shmat(call: &Call<'_>, id: u64, address: u64, flags: u64) -> CallResult {
    if (id as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let how = attachment(address, flags as u32)?;
    let who = call.process().credentials.borrow().clone();
    let (pages, bytes) = call.unix.shm.with(id, |segment| {
        segment.permit(&who, how.wanted)?;
        Ok((segment.pages.upgrade().ok_or(Errno::EINVAL)?, segment.bytes))
    })?;
    let limit = Protection { read: true, write: how.wanted & 2 != 0, execute: true };
    let request = MapRequest {
        placement: how.placement,
        limit,
        address: how.address,
        ..MapRequest::anonymous(bytes, how.protection)
    };
    let kind = Kind::SharedAnonymous(View { backing: pages, first_page: 0 });
    let space = space(call)?;
    let mapped = space.borrow_mut().map(request.of(kind));
    let start = mapped.map_err(|error| match errno_of(error) {
        Errno::EEXIST => Errno::EINVAL,
        other => other,
    })?;
    crate::calls::parts::populate_locked(call, &space, start..start + bytes);
    let _ = call.unix.shm.with(id, |segment| {
        segment.attached_at = call.now().seconds;
        segment.last_pid = call.process().pid;
        Ok(())
    });
    Ok(start)
}

/// The segment that an area shows, if the area belongs to one that is attached at `address`.
fn segment_of(call: &Call<'_>, area: &AreaView<'_>, address: u64) -> Option<u32> {
    let AreaLabel::Backing(backing) = area.label else { return None };
    if area.start.checked_sub(area.offset_bytes) != Some(address) {
        return None;
    }
    let id = u32::try_from(backing.identity().inode).ok()?;
    let own = call.unix.shm.0.borrow().by_id.get(&id)?.pages.as_ptr().cast::<u8>();
    core::ptr::eq((backing as *const dyn Backing).cast::<u8>(), own).then_some(id)
}

/// Where the next area of a segment that is attached at `address` lies, as start and length.
fn next_area(call: &Call<'_>, space: &Space, address: u64) -> Option<(u32, u64, u64)> {
    space.areas().find_map(|area| segment_of(call, &area, address).map(|id| (id, area.start, area.end - area.start)))
}

fn shmdt(call: &Call<'_>, address: u64) -> CallResult {
    if address & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL);
    }
    let space = space(call)?;
    let mut found = None;
    loop {
        let next = next_area(call, &space.borrow(), address).filter(|next| found.is_none_or(|id| id == next.0));
        let Some((id, start, bytes)) = next else { break };
        found = Some(id);
        space.borrow_mut().unmap(start, bytes).map_err(errno_of)?;
    }
    let id = found.ok_or(Errno::EINVAL)?;
    // A segment that was removed may have gone with the area.
    let _ = call.unix.shm.with(id.into(), |segment| {
        segment.detached_at = call.now().seconds;
        segment.last_pid = call.process().pid;
        Ok(())
    });
    Ok(0)
}

impl Segment {
    /// What programs see: a segment that goes with its last area has no key any more.
    fn shown_key(&self) -> u32 {
        if self.kept.is_none() { 0 } else { self.key }
    }

    /// With what has become of the segment, above the rights.
    fn shown_mode(&self) -> u32 {
        const DESTROYED: u32 = 0o1000;
        const LOCKED: u32 = 0o2000;
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        self.mode | flag(self.kept.is_none(), DESTROYED) | flag(self.locked, LOCKED)
    }
}

/// What /proc/sysvipc/shm shows. Lines that fit are shown; a machine without memory shows fewer.
pub fn shown_segments(unix: &Unix) -> Vec<u8> {
    let mut text = Text::default();
    let _ = text.write_str(concat!(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid",
        "      atime      dtime      ctime                   rss                  swap\n"
    ));
    for (id, segment) in unix.shm.0.borrow().by_id.iter() {
        let (key, mode, bytes) = (segment.shown_key() as i32, segment.shown_mode(), segment.bytes);
        let (maker, last, attached) = (segment.creator_pid, segment.last_pid, segment.attached());
        let (user, group, (creator, creators)) = (segment.user, segment.group, segment.creator);
        let present = segment.pages.upgrade().map_or(0, |pages| pages.held().bytes);
        let times = [segment.attached_at, segment.detached_at, segment.changed_at];
        let _ = write!(text, "{key:10} {id:10}  {mode:4o} {bytes:21} {maker:5} {last:5}  {attached:5}");
        let _ = write!(text, " {user:5} {group:5} {creator:5} {creators:5}");
        let _ = writeln!(text, " {:10} {:10} {:10} {present:21} {:21}", times[0], times[1], times[2], 0);
    }
    text.0.into_bytes()
}

/// `struct shmid64_ds`, 112 bytes (`asm-generic/shmbuf.h`, `ipcbuf.h`).
fn status(segment: &Segment) -> [u8; 112] {
    let mut bytes = [0; 112];
    let (user, group) = segment.creator;
    let (key, mode) = (segment.shown_key(), segment.shown_mode());
    for (index, word) in [key, segment.user, segment.group, user, group, mode].into_iter().enumerate() {
        word.put(&mut bytes[index * 4..]);
    }
    segment.bytes.put(&mut bytes[48..]);
    segment.attached_at.put(&mut bytes[56..]);
    segment.detached_at.put(&mut bytes[64..]);
    segment.changed_at.put(&mut bytes[72..]);
    segment.creator_pid.put(&mut bytes[80..]);
    segment.last_pid.put(&mut bytes[84..]);
    segment.attached().put(&mut bytes[88..]);
    bytes
}

fn shmctl(call: &Call<'_>, id: u64, command: u64, address: u64) -> CallResult {
    const RMID: u32 = 0;
    const SET: u32 = 1;
    const STAT: u32 = 2;
    const IPC_INFO: u32 = 3;
    const LOCK: u32 = 11;
    const UNLOCK: u32 = 12;
    const SHM_STAT: u32 = 13;
    const SHM_INFO: u32 = 14;
    const STAT_ANY: u32 = 15;
    if (id as i32) < 0 || (command as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    match command as u32 {
        STAT => tell_status(call, id, address, 4).map(|_| 0),
        SHM_STAT => tell_status(call, index_to_id(call, id)?, address, 4),
        STAT_ANY => tell_status(call, index_to_id(call, id)?, address, 0),
        RMID => remove(call, id),
        SET => {
            let wanted: [u32; 12] = call.read(address)?;
            let changed_at = call.now().seconds;
            change(call, id, |segment| {
                (segment.user, segment.group, segment.mode) = (wanted[1], wanted[2], wanted[5] & 0o777);
                segment.changed_at = changed_at;
            })
        }
        LOCK => change(call, id, |segment| segment.locked = true),
        UNLOCK => change(call, id, |segment| segment.locked = false),
        IPC_INFO => tell_limits(call, address),
        SHM_INFO => tell_usage(call, address),
        _ => Err(Errno::EINVAL),
    }
}

fn change(call: &Call<'_>, id: u64, act: impl FnOnce(&mut Segment)) -> CallResult {
    let who = call.process().credentials.borrow().clone();
    call.unix.shm.with(id, |segment| {
        segment.check_owner(&who)?;
        act(segment);
        Ok(0)
    })
}

/// The table's own reference goes when the table is not borrowed any more.
fn remove(call: &Call<'_>, id: u64) -> CallResult {
    let mut own = None;
    change(call, id, |segment| own = segment.kept.take())
}

fn tell_status(call: &Call<'_>, id: u64, address: u64, wanted: u32) -> CallResult {
    let who = call.process().credentials.borrow().clone();
    let record = call.unix.shm.with(id, |segment| {
        segment.permit(&who, wanted)?;
        Ok(status(segment))
    })?;
    call.copy_out(address, &record)?;
    // The two forms that take an index return the number.
    Ok(id)
}

/// The number of the segment at an index of the table, counted from 0.
fn index_to_id(call: &Call<'_>, index: u64) -> Result<u64, Errno> {
    let state = call.unix.shm.0.borrow();
    state.by_id.iter().nth(index as usize).map(|(id, _)| u64::from(*id)).ok_or(Errno::EINVAL)
}

/// The highest index in use, 0 when there is none.
fn last_index(call: &Call<'_>) -> u64 {
    call.unix.shm.0.borrow().by_id.len().saturating_sub(1) as u64
}

/// `struct shminfo64`.
fn tell_limits(call: &Call<'_>, address: u64) -> CallResult {
    let mut words = [0u64; 9];
    let limits = &call.unix.families.tunables;
    let (bytes, segments, pages) = (limits.segment_bytes.get(), limits.segments.get(), limits.segment_pages.get());
    words[..5].copy_from_slice(&[bytes, 1, segments, segments, pages]);
    call.write(address, &words)?;
    Ok(last_index(call))
}

/// `struct shm_info`: segments, their pages, and the pages that are present.
fn tell_usage(call: &Call<'_>, address: u64) -> CallResult {
    let (count, pages) = {
        let state = call.unix.shm.0.borrow();
        (state.by_id.len() as u64, state.pages())
    };
    call.write(address, &[count, pages, pages, 0, 0, 0])?;
    Ok(last_index(call))
}

pub const CALLS: &[Entry] = &[
    (nr::SHMGET, |call, [a, b, c, ..]| shmget(call, a, b, c)),
    (nr::SHMAT, |call, [a, b, c, ..]| shmat(call, a, b, c)),
    (nr::SHMDT, |call, [a, ..]| shmdt(call, a)),
    (nr::SHMCTL, |call, [a, b, c, ..]| shmctl(call, a, b, c)),
];
