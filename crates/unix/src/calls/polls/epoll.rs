//! `epoll`: a set of open files that is kept between waits.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::Cell;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_RDWR};
use abi::nr;
use abi::poll::{
    EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP,
    EPOLLONESHOT, EPOLLWAKEUP, EpollEvent,
};
use kernel::file::NodeKind;
use kernel::schedule::WaitQueue;
use kernel::stream::{Progress, Ready, Stream};
use machine::{KernelCell, Nanos, Sorted};

use super::{Waited, read_deadline, wait};
use crate::call::{Call, CallResult};
use crate::calls::memory::admits;
use crate::calls::resume::with_signal_mask;
use crate::calls::times::{self, add_file};
use crate::files::{MemoryDevice, OpenFile};

/// How deep instances may watch each other; deeper is `ELOOP`, as on Linux.
const DEPTH_MAX: usize = 5;

/// Bits of an event that say how to report, not what.
const MODE_BITS: u32 = EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE;

/// One watched file. The set does not keep it open.
struct Item {
    file: Weak<OpenFile>,
    events: u32,
    data: u64,
    /// What was reported last, for edge-triggered items.
    reported: Option<(u32, Progress)>,
    /// Reported once and to be armed again (`EPOLLONESHOT`).
    spent: bool,
}

/// Descriptor and open file: closing the descriptor does not end the watch while a copy is open.
type Name = (u32, usize);

pub struct Epoll {
    items: KernelCell<Sorted<Name, Item>>,
    /// Place of who is asked first, behind who was reported last: all get their turn.
    first: Cell<usize>,
    changed: WaitQueue,
    /// Room for the events of a wait, while nobody waits.
    room: KernelCell<Vec<EpollEvent>>,
}

impl Item {
    fn ready(&self, file: &OpenFile) -> u32 {
        if self.spent {
            return 0;
        }
        let ready = file.ready().0 & (self.events | EPOLLERR | EPOLLHUP) & !MODE_BITS;
        if ready != 0 && self.events & EPOLLET != 0 && !self.is_news(file, ready) { 0 } else { ready }
    }

    /// Whether an edge-triggered file has something new: other bits, or more of the same. A file that does not
    /// count its progress always has.
    fn is_news(&self, file: &OpenFile, ready: u32) -> bool {
        let (Some((bits, before)), Some(progress)) = (self.reported, progress(file)) else { return true };
        let readable = ready & Ready::READABLE.0 != 0 && progress.arrived != before.arrived;
        let writable = ready & Ready::WRITABLE.0 != 0 && progress.departed != before.departed;
        ready & !bits != 0 || readable || writable
    }

    fn note(&mut self, file: &OpenFile, ready: u32) {
        self.spent |= self.events & EPOLLONESHOT != 0;
        if self.events & EPOLLET != 0 {
            self.reported = progress(file).map(|progress| (ready, progress));
        }
    }
}

fn progress(file: &OpenFile) -> Option<Progress> {
    file.as_stream()?.progress()
}

/// The files and, for each epoll instance among them, what it watches.
pub fn with_inner(mut files: Vec<Arc<OpenFile>>) -> Vec<Arc<OpenFile>> {
    let mut at = 0;
    while at < files.len() {
        let inner = files[at].stream_of::<Epoll>().map(Epoll::files);
        for file in inner.into_iter().flatten() {
            if !files.iter().any(|other| Arc::ptr_eq(other, &file)) {
                files.push(file);
            }
        }
        at += 1;
    }
    files
}

/// Events whose room is kept.
const FEW: usize = 16;

impl Epoll {
    fn files(&self) -> Vec<Arc<OpenFile>> {
        self.items.borrow().entries().iter().filter_map(|(_, item)| item.file.upgrade()).collect()
    }

    /// How many instances lie below each other from here on.
    fn depth(&self, budget: usize) -> usize {
        if budget == 0 {
            return 1;
        }
        let inner = self.files();
        1 + inner.iter().filter_map(|file| file.stream_of::<Epoll>()).map(|it| it.depth(budget - 1)).max().unwrap_or(0)
    }

    fn reaches(&self, other: &Epoll, budget: usize) -> bool {
        core::ptr::eq(self, other)
            || budget > 0
                && self
                    .files()
                    .iter()
                    .filter_map(|file| file.stream_of::<Epoll>())
                    .any(|it| it.reaches(other, budget - 1))
    }

    /// Collects up to `most` events, and notes that they were reported.
    fn collect(&self, most: usize, events: &mut Vec<EpollEvent>) {
        let mut items = self.items.borrow_mut();
        let mut has_dead = false;
        let count = items.entries().len();
        let mut place = self.first.get();
        for _ in 0..count {
            if events.len() == most {
                break;
            }
            place = if place < count { place } else { 0 };
            let Some(item) = items.at_mut(place) else { break };
            place += 1;
            let Some(file) = item.file.upgrade() else {
                has_dead = true;
                continue;
            };
            let ready = item.ready(&file);
            if ready != 0 {
                item.note(&file, ready);
                events.push(EpollEvent::new(ready, item.data));
                self.first.set(place);
            }
        }
        if has_dead {
            items.retain(|item| item.file.strong_count() > 0);
        }
    }

    /// Keeps small room for the next wait.
    fn keep_room(&self, room: Vec<EpollEvent>) {
        if room.capacity() <= FEW {
            *self.room.borrow_mut() = room;
        }
    }
}

impl Stream for Epoll {
    fn ready(&self) -> Ready {
        let items = self.items.borrow();
        let any =
            items.entries().iter().any(|(_, item)| item.file.upgrade().is_some_and(|file| item.ready(&file) != 0));
        Ready::NONE.with_if(any, Ready::READABLE)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.changed);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub fn epoll_create(call: &Call<'_>, size: i32) -> CallResult {
    if size <= 0 { Err(Errno::EINVAL) } else { epoll_create1(call, 0) }
}

pub fn epoll_create1(call: &Call<'_>, flags: u32) -> CallResult {
    if flags & !EPOLL_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    let epoll = Epoll {
        items: KernelCell::new(Sorted::new()),
        first: Cell::new(0),
        changed: WaitQueue::new(),
        room: KernelCell::new(Vec::new()),
    };
    add_file(call, OpenFile::stream(Arc::new(epoll), O_RDWR), flags & O_CLOEXEC != 0)
}

/// Whether nobody ever waits for a file: most memory devices know no waiting on Linux; /dev/random does.
fn is_always_ready(file: &OpenFile) -> bool {
    const WAITED_FOR: NodeKind = NodeKind::CharDevice(1, 8);
    file.stream_of::<MemoryDevice>().is_some() && file.node().is_none_or(|node| node.kind() != WAITED_FOR)
}

/// Errors: `EFAULT`, `EBADF`, `EPERM` for a file that is always ready, `EINVAL`, `ELOOP`, `EEXIST`, `ENOENT`.
pub fn epoll_ctl(call: &Call<'_>, instance: u64, operation: u32, descriptor: u64, event: u64) -> CallResult {
    let event: EpollEvent = if operation == EPOLL_CTL_DEL { EpollEvent::zeroed() } else { call.read(event)? };
    let holder = call.file(instance)?;
    let file = call.file(descriptor)?;
    let stream = file.as_stream().filter(|_| !is_always_ready(&file)).ok_or(Errno::EPERM)?;
    let epoll = holder.stream_of::<Epoll>().filter(|_| !Arc::ptr_eq(&holder, &file)).ok_or(Errno::EINVAL)?;
    let inner = stream.as_any().downcast_ref::<Epoll>();
    if operation == EPOLL_CTL_ADD
        && let Some(inner) = inner
        && (inner.reaches(epoll, DEPTH_MAX) || inner.depth(DEPTH_MAX) >= DEPTH_MAX)
    {
        return Err(Errno::ELOOP);
    }
    if event.events & EPOLLEXCLUSIVE != 0 && (operation == EPOLL_CTL_MOD || inner.is_some()) {
        return Err(Errno::EINVAL);
    }
    let name = (descriptor as u32, Arc::as_ptr(&file) as usize);
    // Only adding takes memory.
    if operation == EPOLL_CTL_ADD && !admits(call, nr::EPOLL_CTL) {
        return Err(Errno::ENOMEM);
    }
    let mut items = epoll.items.borrow_mut();
    match operation {
        EPOLL_CTL_ADD if items.get(&name).is_some() => return Err(Errno::EEXIST),
        EPOLL_CTL_ADD => {
            // The item keeps the file's place in memory, so no other file has a dead item's name.
            items.retain(|item| item.file.strong_count() > 0);
            let file = Arc::downgrade(&file);
            items.insert(name, Item { file, events: event.events, data: event.data(), reported: None, spent: false });
        }
        EPOLL_CTL_MOD => {
            let item = items.get_mut(&name).ok_or(Errno::ENOENT)?;
            (item.events, item.data, item.reported, item.spent) = (event.events, event.data(), None, false);
        }
        EPOLL_CTL_DEL => drop(items.remove(&name).ok_or(Errno::ENOENT)?),
        _ => return Err(Errno::EINVAL),
    }
    drop(items);
    call.unix.scheduler.wake(&epoll.changed);
    Ok(0)
}

/// Errors: `EINVAL` for no room or no instance, `EFAULT`, `EBADF`, `EINTR`.
fn wait_until(call: &Call<'_>, instance: u64, into: u64, room: i32, deadline: Option<Nanos>) -> CallResult {
    const ROOM_MAX: i32 = i32::MAX / EpollEvent::BYTES as i32;
    if !(1..=ROOM_MAX).contains(&room) {
        return Err(Errno::EINVAL);
    }
    if into.checked_add(room as u64 * EpollEvent::BYTES as u64).is_none_or(|end| end > kernel::space::USER_LIMIT) {
        return Err(Errno::EFAULT);
    }
    let holder = call.file(instance)?;
    let epoll = holder.stream_of::<Epoll>().ok_or(Errno::EINVAL)?;
    let mut events = core::mem::take(&mut *epoll.room.borrow_mut());
    let waited = wait(
        call,
        deadline,
        || Vec::from([holder.clone()]),
        || {
            events.clear();
            epoll.collect(room as usize, &mut events);
            Ok(events.len() as u64)
        },
    )?;
    if let Waited::Interrupted = waited {
        return Err(Errno::EINTR);
    }
    for (index, event) in events.iter().enumerate() {
        call.write(into + (index * EpollEvent::BYTES) as u64, event)?;
    }
    let count = events.len() as u64;
    epoll.keep_room(events);
    Ok(count)
}

fn deadline_ms(call: &Call<'_>, timeout_ms: i32) -> Option<Nanos> {
    match timeout_ms {
        ..0 => None,
        0 => Some(Nanos(0)),
        ms => Some(times::deadline_after(call, Nanos(ms as u64 * 1_000_000))),
    }
}

pub fn epoll_wait(call: &Call<'_>, instance: u64, into: u64, room: i32, timeout_ms: i32) -> CallResult {
    wait_until(call, instance, into, room, deadline_ms(call, timeout_ms))
}

pub fn epoll_pwait(call: &Call<'_>, [instance, into, room, timeout, mask, mask_bytes]: [u64; 6]) -> CallResult {
    let deadline = deadline_ms(call, timeout as i32);
    with_signal_mask(call, mask, mask_bytes, |call| wait_until(call, instance, into, room as i32, deadline))
}

pub fn epoll_pwait2(call: &Call<'_>, [instance, into, room, time, mask, mask_bytes]: [u64; 6]) -> CallResult {
    let deadline = read_deadline(call, time)?;
    with_signal_mask(call, mask, mask_bytes, |call| wait_until(call, instance, into, room as i32, deadline))
}
