//! `epoll`: a set of open files that is kept between waits.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Bound;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use abi::Errno;
use abi::file::{O_CLOEXEC, O_RDWR};
use abi::nr;
use abi::poll::{
    EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP,
    EPOLLONESHOT, EPOLLWAKEUP, EpollEvent,
};
use kernel::charge::{Held, Kept};
use kernel::file::NodeKind;
use kernel::ready::instance::Looks;
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::stream::{Progress, Ready, Stream};
use machine::{KernelCell, KernelOnce, KernelValue, Nanos, NoMemory, Ordered, TryGrow, try_collect, try_to_vec};

use super::{PART, Waited, nesting, read_deadline, routines, wait};
use crate::call::{Call, CallResult};
use crate::calls::memory::exhaustion::admits;
use crate::calls::resume::with_signal_mask;
use crate::calls::times::timerfd::add_file;
use crate::files::memory::MemoryDevice;
use crate::files::open_file::OpenFile;
use crate::files::watchers::{Mark, Watcher};

/// Bits of an event that say how to report, not what.
pub const MODE_BITS: u32 = EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE;

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

/// Instances first; then descriptor and open file: closing the descriptor does not end the watch while a copy is open.
pub type Name = (Kind, u32, usize);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Instance,
    Other,
}

/// In the order of names no other comes before it.
pub const FIRST: Name = (Kind::Instance, 0, 0);
/// Nor before these, except instances.
pub const FIRST_OTHER: Name = (Kind::Other, 0, 0);

pub struct Epoll {
    me: Weak<Epoll>,
    /// The open file that this is, while somebody has it open.
    own: KernelOnce<Weak<OpenFile>>,
    items: KernelCell<Ordered<Name, Item>>,
    /// Who was reported last: who comes behind it is asked first, so that all get their turn.
    last: KernelValue<Option<Name>>,
    changed: WaitQueue,
    /// How often Rust has looked since the files changed, and what looks for it.
    looked: KernelValue<u8>,
    looks: KernelOnce<Looks>,
    /// Room for the events of a wait, while nobody waits.
    room: KernelCell<Vec<EpollEvent>>,
    /// What a walk over instances found here: see [`nesting`].
    mark: KernelValue<Mark>,
    /// What was answered last when another instance asked whether anything is ready.
    answer: KernelValue<(u64, bool)>,
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

/// Events whose room is kept.
const FEW: usize = 16;

/// While instances ask each other. One that many watch looks at its files once in a pass: the ways down to it are many, and each
/// would ask it.
struct Pass(bool);

static IS_ASKING: AtomicBool = AtomicBool::new(false);
static PASS: AtomicU64 = AtomicU64::new(0);

impl Pass {
    fn begin() -> Pass {
        let is_outermost = !IS_ASKING.swap(true, Relaxed);
        if is_outermost {
            PASS.fetch_add(1, Relaxed);
        }
        Pass(is_outermost)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.0 {
            IS_ASKING.store(false, Relaxed);
        }
    }
}

impl Epoll {
    fn new() -> Arc<Epoll> {
        Arc::new_cyclic(|me: &Weak<Epoll>| Epoll {
            me: me.clone(),
            own: KernelOnce::new(),
            items: KernelCell::default(),
            last: KernelValue::new(None),
            changed: WaitQueue::new(),
            looked: KernelValue::new(0),
            looks: KernelOnce::new(),
            room: KernelCell::new(Vec::new()),
            mark: KernelValue::default(),
            answer: KernelValue::default(),
        })
    }

    fn as_watcher(&self) -> Weak<dyn Watcher> {
        self.me.clone()
    }

    /// The watched files from a name on, at most so many; and where to go on, if there are more.
    pub fn some_files(&self, from: Name, most: usize, into: &mut Vec<Arc<OpenFile>>) -> Result<Option<Name>, NoMemory> {
        let items = self.items.borrow();
        let mut all = items.range(Bound::Included(&from));
        into.try_extend(all.by_ref().take(most).filter_map(|(_, item)| item.file.upgrade()))?;
        Ok(all.next().map(|(name, _)| *name))
    }

    pub fn files_between(&self, first: Name, end: Name) -> Result<Vec<Arc<OpenFile>>, NoMemory> {
        let items = self.items.borrow();
        let between = items.range(Bound::Included(&first)).take_while(|(name, _)| **name < end);
        try_collect(between.filter_map(|(_, item)| item.file.upgrade()))
    }

    /// How many files it watches.
    pub fn count(&self) -> usize {
        self.items.borrow().len()
    }

    /// Collects up to `most` events, and notes that they were reported. Many files are asked in parts.
    fn collect(&self, held: machine::Held<'_>, scheduler: &Scheduler, most: usize, events: &mut Vec<EpollEvent>) {
        let mut left = self.count();
        // Nobody has to wait for his turn behind himself.
        let mut from = self.last.get().filter(|_| left > 1);
        while left > 0 {
            let part = left.min(PART);
            from = self.collect_part(from, part, most, events);
            left -= part;
            if left == 0 || events.len() == most {
                break;
            }
            scheduler.breathe(held);
        }
    }

    /// Asks so many files behind `from`, and from the first on behind the last. Returns who was asked last.
    fn collect_part(
        &self,
        from: Option<Name>,
        count: usize,
        most: usize,
        events: &mut Vec<EpollEvent>,
    ) -> Option<Name> {
        let _pass = Pass::begin();
        let mut items = self.items.borrow_mut();
        let (mut asked, mut at) = (0, from);
        while asked < count {
            let behind = at;
            let behind = behind.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let before = asked;
            for (name, item) in items.range_mut(behind) {
                if asked == count || events.len() == most {
                    return at;
                }
                (asked, at) = (asked + 1, Some(*name));
                let Some(file) = item.file.upgrade() else { continue };
                let ready = item.ready(&file);
                if ready != 0 {
                    // What finds no room is reported the next time.
                    if events.try_push(EpollEvent::new(ready, item.data)).is_err() {
                        return at;
                    }
                    item.note(&file, ready);
                    self.last.set(at);
                }
            }
            if asked == before && at.is_none() {
                break;
            }
            at = None;
        }
        at
    }

    /// Other files are watched now, or otherwise.
    fn note_change(&self) {
        self.looked.set(0);
        if let Some(looks) = self.looks.get() {
            looks.forget();
        }
    }

    /// Rust looks once more at the same files; whether that was so often that they are worth code. It is said once.
    #[inline(always)]
    pub fn is_worth_look(&self, most: u8) -> bool {
        let times = self.looked.get();
        if times <= most {
            self.looked.set(times + 1);
        }
        times == most
    }

    /// Its code, made when it is first wanted.
    pub fn looks(&self, make: impl FnOnce() -> Option<Looks>) -> Option<&Looks> {
        if self.looks.get().is_none() {
            let _ = self.looks.set(make()?);
        }
        self.looks.get()
    }

    /// The files of which nothing counts but what they are ready for; what is asked of them, and what is told with it.
    pub fn plain_items(&self) -> Result<Vec<(Arc<OpenFile>, u32, u64)>, NoMemory> {
        const REMEMBERS: u32 = EPOLLET | EPOLLONESHOT;
        let items = self.items.borrow();
        let plain = items.iter().map(|(_, item)| item).filter(|item| item.events & REMEMBERS == 0);
        try_collect(plain.filter_map(|item| Some((item.file.upgrade()?, item.events, item.data))))
    }

    /// Keeps small room for the next wait.
    fn keep_room(&self, room: Vec<EpollEvent>) {
        if room.capacity() <= FEW {
            *self.room.borrow_mut() = room;
        }
    }

    fn is_any_ready(&self) -> bool {
        let _pass = Pass::begin();
        let pass = PASS.load(Relaxed);
        let (answered, answer) = self.answer.get();
        if answered == pass {
            return answer;
        }
        let items = self.items.borrow();
        let any = items.iter().any(|(_, item)| item.file.upgrade().is_some_and(|file| item.ready(&file) != 0));
        self.answer.set((pass, any));
        any
    }
}

impl Watcher for Epoll {
    fn forget(&self, descriptor: u32, file: usize) {
        let mut items = self.items.borrow_mut();
        for kind in [Kind::Other, Kind::Instance] {
            items.remove(&(kind, descriptor, file));
        }
        drop(items);
        self.note_change();
    }

    fn own_file(&self) -> Option<Arc<OpenFile>> {
        self.own.get()?.upgrade()
    }

    fn mark(&self) -> &KernelValue<Mark> {
        &self.mark
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        let watcher = self.as_watcher();
        for ((_, descriptor, _), item) in self.items.borrow().iter() {
            item.file.upgrade().iter().for_each(|file| file.watchers.remove(&watcher, *descriptor));
        }
    }
}

impl Stream for Epoll {
    fn held(&self) -> Held {
        let records = self.items.borrow().len() * size_of::<(Name, Item)>();
        Held::new(Kept::Epolls, size_of::<Epoll>() + records + self.room.borrow().capacity() * size_of::<EpollEvent>())
    }

    fn ready(&self) -> Ready {
        Ready::NONE.with_if(self.is_any_ready(), Ready::READABLE)
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
    let epoll = Epoll::new();
    let descriptor = add_file(call, OpenFile::stream(epoll.clone(), O_RDWR), flags & O_CLOEXEC != 0)?;
    let _ = epoll.own.set(Arc::downgrade(&call.file(descriptor)?));
    Ok(descriptor)
}

/// Whether nobody ever waits for a file: most memory devices know no waiting on Linux; /dev/random does.
fn is_always_ready(file: &OpenFile) -> bool {
    const WAITED_FOR: NodeKind = NodeKind::CharDevice(1, 8);
    file.stream_of::<MemoryDevice>().is_some() && file.node().is_none_or(|node| node.kind() != WAITED_FOR)
}

/// Errors: `EFAULT`, `EBADF`, `EPERM` for a file that is always ready, `EINVAL`, also for too many ways up from a file; `ELOOP`,
/// `EEXIST`, `ENOENT`, `ENOMEM`.
pub fn epoll_ctl(call: &Call<'_>, instance: u64, operation: u32, descriptor: u64, event: u64) -> CallResult {
    let event: EpollEvent = if operation == EPOLL_CTL_DEL { EpollEvent::zeroed() } else { call.read(event)? };
    let holder = call.file(instance)?;
    let file = call.file(descriptor)?;
    let stream = file.as_stream().filter(|_| !is_always_ready(&file)).ok_or(Errno::EPERM)?;
    let epoll = holder.stream_of::<Epoll>().filter(|_| !Arc::ptr_eq(&holder, &file)).ok_or(Errno::EINVAL)?;
    let inner = stream.as_any().downcast_ref::<Epoll>();
    if operation == EPOLL_CTL_ADD
        && let Some(inner) = inner
    {
        nesting::permit(&holder, epoll, inner)?;
    }
    if event.events & EPOLLEXCLUSIVE != 0 && (operation == EPOLL_CTL_MOD || inner.is_some()) {
        return Err(Errno::EINVAL);
    }
    let kind = if inner.is_some() { Kind::Instance } else { Kind::Other };
    let name = (kind, descriptor as u32, Arc::as_ptr(&file) as usize);
    match operation {
        EPOLL_CTL_ADD => add(call, &holder, epoll, name, &file, &event)?,
        EPOLL_CTL_MOD => {
            let mut items = epoll.items.borrow_mut();
            let item = items.get_mut(&name).ok_or(Errno::ENOENT)?;
            (item.events, item.data, item.reported, item.spent) = (event.events, event.data(), None, false);
            epoll.note_change();
        }
        EPOLL_CTL_DEL => epoll.remove(name, &file).ok_or(Errno::ENOENT)?,
        _ => return Err(Errno::EINVAL),
    }
    call.unix.scheduler.wake(&epoll.changed);
    Ok(0)
}

fn add(
    call: &Call<'_>,
    holder: &OpenFile,
    epoll: &Epoll,
    name: Name,
    file: &Arc<OpenFile>,
    event: &EpollEvent,
) -> Result<(), Errno> {
    // Only adding takes memory.
    if !admits(call, nr::EPOLL_CTL) {
        return Err(Errno::ENOMEM);
    }
    if epoll.items.borrow().get(&name).is_some() {
        return Err(Errno::EEXIST);
    }
    file.watchers.add(epoll.as_watcher(), name.1).map_err(|_| Errno::ENOMEM)?;
    let item =
        Item { file: Arc::downgrade(file), events: event.events, data: event.data(), reported: None, spent: false };
    let inserted = epoll.items.borrow_mut().try_insert(name, item);
    epoll.note_change();
    if inserted.is_err() {
        file.watchers.remove(&epoll.as_watcher(), name.1);
        return Err(Errno::ENOMEM);
    }
    // It is there first and counted then: counting lets others run.
    let counted = match file.stream_of::<Epoll>() {
        Some(inner) => nesting::count_ways_from_below(call.held, call.unix.scheduler, inner),
        None if !holder.watchers.is_empty() => nesting::count_ways(file),
        None => Ok(()),
    };
    counted.inspect_err(|_| _ = epoll.remove(name, file))
}

impl Epoll {
    fn remove(&self, name: Name, file: &OpenFile) -> Option<()> {
        let item = self.items.borrow_mut().remove(&name)?;
        self.note_change();
        file.watchers.remove(&self.as_watcher(), name.1);
        drop(item);
        Some(())
    }
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
    routines::waited(call, &holder, epoll);
    let mut events = core::mem::take(&mut *epoll.room.borrow_mut());
    events.room_for(1)?;
    let waited = wait(
        call,
        deadline,
        || try_to_vec(core::slice::from_ref(&holder)),
        || {
            events.clear();
            epoll.collect(call.held, call.unix.scheduler, room as usize, &mut events);
            Ok(events.len() as u64)
        },
    )?;
    if let Waited::Interrupted = waited {
        return Err(Errno::EINTR);
    }
    let mut given = 0;
    while let Some(event) = events.get(given) {
        match call.write(into + (given * EpollEvent::BYTES) as u64, event) {
            Ok(()) => given += 1,
            // What found its place is told of.
            Err(error) if given == 0 => return Err(error),
            Err(_) => break,
        }
    }
    epoll.keep_room(events);
    Ok(given as u64)
}

fn deadline_ms(call: &Call<'_>, timeout_ms: i32) -> Option<Nanos> {
    match timeout_ms {
        ..0 => None,
        0 => Some(Nanos(0)),
        ms => Some(crate::calls::times::sleeps::deadline_after(call, Nanos(ms as u64 * 1_000_000))),
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
