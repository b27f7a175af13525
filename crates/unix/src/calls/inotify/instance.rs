//! An inotify instance: what it watches, and what it has to tell.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

use abi::Errno;
use abi::poll::{IN_EXCL_UNLINK, IN_MASK_ADD, IN_ONESHOT, InotifyEvent};
use kernel::charge::{Held, Kept};
use kernel::file::{ENDED, Happened, Node, OVERFLOWED, Watch, Watcher};
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Nameless, Progress, Ready, Stream, UserRange};
use machine::{KernelCell, KernelValue, TryGrow, TryQueue};

use super::{EVENTS, IN_MASK_CREATE};
use crate::call::Call;
use crate::emulator::Unix;
use crate::limits::CALL_FRAMES_MIN;

/// Names are filled up with NULs to a multiple of this.
const NAME_UNIT: usize = InotifyEvent::BYTES;

/// What has happened and has not been read.
struct Event {
    number: i32,
    mask: u32,
    cookie: u32,
    /// Without its NULs.
    name: Vec<u8>,
}

impl Event {
    /// Bytes of the name with its NULs.
    fn name_bytes(&self) -> usize {
        if self.name.is_empty() { 0 } else { (self.name.len() + 1).next_multiple_of(NAME_UNIT) }
    }

    fn bytes(&self) -> usize {
        InotifyEvent::BYTES + self.name_bytes()
    }
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// Bytes that a read of all of them gives.
    bytes: usize,
}

pub struct Inotify {
    unix: &'static Unix,
    /// Whose it is.
    user: u32,
    itself: Weak<Inotify>,
    /// By number, which rises.
    watches: KernelCell<Vec<Arc<Watch>>>,
    last_number: KernelValue<i32>,
    queue: KernelCell<Queue>,
    progress: KernelCell<Progress>,
    arrived: WaitQueue,
}

impl Inotify {
    /// Error: `EMFILE`.
    pub fn new(call: &Call<'_>) -> Result<Arc<Inotify>, Errno> {
        let unix = call.unix;
        let user = call.process().user_ids.get().real;
        unix.families.inotify.add_instance(user, unix.families.tunables.inotify_instances.get())?;
        Ok(Arc::new_cyclic(|itself| Inotify {
            unix,
            user,
            itself: itself.clone(),
            watches: KernelCell::new(Vec::new()),
            last_number: KernelValue::new(0),
            queue: KernelCell::new(Queue::default()),
            progress: KernelCell::new(Progress::default()),
            arrived: WaitQueue::new(),
        }))
    }

    pub fn shared(&self) -> Option<Arc<Inotify>> {
        self.itself.upgrade()
    }

    fn found(&self, node: &Node) -> Option<Arc<Watch>> {
        let itself: Weak<dyn Watcher> = self.itself.clone();
        Watch::find(node, &itself)
    }

    /// Watches a node, or changes what is told of it. Errors: `EEXIST`, `ENOSPC`, `ENOMEM`.
    pub fn watch(&self, node: &Arc<Node>, mask: u32, how: u32) -> Result<i32, Errno> {
        if let Some(watch) = self.found(node) {
            if how & IN_MASK_CREATE != 0 {
                return Err(Errno::EEXIST);
            }
            watch.set_mask(node, if how & IN_MASK_ADD != 0 { watch.mask() | mask } else { mask })?;
            return Ok(watch.number);
        }
        let families = &self.unix.families;
        families.inotify.add_watch(self.user, families.tunables.inotify_watches.get())?;
        self.start(node, mask).inspect_err(|_| families.inotify.remove_watch(self.user))
    }

    fn start(&self, node: &Arc<Node>, mask: u32) -> Result<i32, Errno> {
        let (place, number) = self.free_number();
        self.watches.borrow_mut().room_for(1).map_err(|_| Errno::ENOMEM)?;
        let itself: Weak<dyn Watcher> = self.itself.clone();
        let watch = Watch::start(node, itself, number, mask)?;
        self.watches.borrow_mut().put_at(place, watch);
        self.last_number.set(number);
        Ok(number)
    }

    /// The number behind the last one, and its place among the watches. Numbers come again only when all were used.
    fn free_number(&self) -> (usize, i32) {
        let watches = self.watches.borrow();
        let mut number = self.last_number.get();
        loop {
            number = if number == i32::MAX { 1 } else { number + 1 };
            if let Err(place) = watches.binary_search_by_key(&number, |watch| watch.number) {
                return (place, number);
            }
        }
    }

    /// Error: `EINVAL` for a number that no watch has.
    pub fn unwatch(&self, number: i32) -> Result<(), Errno> {
        let found = {
            let watches = self.watches.borrow();
            let place = watches.binary_search_by_key(&number, |watch| watch.number).map_err(|_| Errno::EINVAL)?;
            watches[place].clone()
        };
        found.stop();
        self.ended(&found);
        Ok(())
    }

    /// Bytes that a read of everything would give.
    pub fn waiting_bytes(&self) -> usize {
        self.unix.families.inotify.pull();
        self.queue.borrow().bytes
    }

    /// Shows number, device, inode and mask of each watch.
    pub fn each_watch(&self, mut show: impl FnMut(i32, ((u32, u32), u64), u32)) {
        for watch in self.watches.borrow().iter() {
            show(watch.number, watch.place(), watch.mask() & (EVENTS | IN_ONESHOT | IN_EXCL_UNLINK));
        }
    }

    fn put(&self, number: i32, happened: &Happened<'_>) {
        let mut queue = self.queue.borrow_mut();
        if queue.events.back().is_some_and(|last| is_the_same(last, number, happened)) {
            return;
        }
        let most = self.unix.families.tunables.inotify_queued.get() as usize;
        let name = Vec::new();
        let is_full = queue.events.len() >= most || self.unix.pool.free_frames() < CALL_FRAMES_MIN;
        let mut event = Event { number, mask: happened.mask, cookie: happened.cookie, name };
        let fits =
            !is_full && event.name.room_for_exact(happened.name.len()).is_ok() && queue.events.room_for(1).is_ok();
        if fits {
            happened.name.iter().for_each(|byte| event.name.put(*byte));
        } else {
            // The last place, which is always there, says that something is missing.
            if queue.events.back().is_some_and(|last| last.mask == OVERFLOWED) || queue.events.room_for(1).is_err() {
                return;
            }
            event = Event { number: -1, mask: OVERFLOWED, cookie: 0, name: Vec::new() };
        }
        queue.bytes += event.bytes();
        queue.events.put_back(event);
        drop(queue);
        self.progress.borrow_mut().arrived += 1;
        self.unix.scheduler.wake(&self.arrived);
    }

    /// Takes the first event if it fits into `room` bytes. Error: `EINVAL` if it does not.
    fn take(&self, room: usize) -> Result<Option<Event>, Errno> {
        let mut queue = self.queue.borrow_mut();
        let Some(first) = queue.events.front() else { return Ok(None) };
        if first.bytes() > room {
            return Err(Errno::EINVAL);
        }
        let event = queue.events.pop_front();
        queue.bytes -= event.as_ref().map_or(0, Event::bytes);
        if queue.events.is_empty() {
            // A queue that was long once is not kept for good.
            queue.events = VecDeque::new();
        }
        Ok(event)
    }

    /// Hands events out as long as they fit. `give` gets the place of each in what is read.
    fn read_events(
        &self,
        io: &Io<'_>,
        room: usize,
        mut give: impl FnMut(usize, &[u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let (mut done, mut events) = (0, 0);
        loop {
            if done == 0 {
                self.unix.families.inotify.pull();
            }
            match self.take(room - done) {
                Ok(Some(event)) => {
                    done = give_event(&event, done, &mut give)?;
                    events += 1;
                    if events % PART == 0 {
                        io.breathe();
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Ok(None) if done == 0 => io.wait(&self.arrived)?,
                _ => return Ok(done),
            }
        }
    }
}

/// Events that are read between two safe points.
const PART: usize = 32;

/// The record, then the name with its NULs; returns where the next event goes.
fn give_event(
    event: &Event,
    at: usize,
    give: &mut impl FnMut(usize, &[u8]) -> Result<(), Errno>,
) -> Result<usize, Errno> {
    const NULS: [u8; NAME_UNIT] = [0; NAME_UNIT];
    let len = event.name_bytes();
    let record = InotifyEvent { wd: event.number, mask: event.mask, cookie: event.cookie, len: len as u32 };
    give(at, &record.to_bytes())?;
    let name = at + InotifyEvent::BYTES;
    give(name, &event.name)?;
    give(name + event.name.len(), &NULS[..len - event.name.len()])?;
    Ok(name + len)
}

/// Linux leaves out what it has just said.
fn is_the_same(last: &Event, number: i32, happened: &Happened<'_>) -> bool {
    last.mask & ENDED == 0 && last.mask == happened.mask && last.number == number && last.name == happened.name
}

impl Watcher for Inotify {
    fn tell(&self, watch: &Watch, happened: &Happened<'_>) {
        let number = if happened.mask & OVERFLOWED != 0 { -1 } else { watch.number };
        self.put(number, happened);
    }

    fn ended(&self, watch: &Watch) {
        let gone = {
            let mut watches = self.watches.borrow_mut();
            let place = watches.binary_search_by_key(&watch.number, |other| other.number);
            place.ok().map(|place| watches.remove(place))
        };
        if gone.is_some() {
            self.put(watch.number, &Happened { mask: ENDED, cookie: 0, name: &[] });
            self.unix.families.inotify.remove_watch(self.user);
        }
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        for watch in self.watches.borrow_mut().drain(..) {
            watch.stop();
            self.unix.families.inotify.remove_watch(self.user);
        }
        self.unix.families.inotify.remove_instance(self.user);
    }
}

impl Stream for Inotify {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.waiting_bytes())
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        self.read_events(io, to.bytes, |at, bytes| io.copy_out(to.after(at).address, bytes))
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        self.read_events(io, into.len(), |at, bytes| {
            into[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn held(&self) -> Held {
        let (watches, events) = (self.watches.borrow(), &self.queue.borrow().events);
        let records = watches.capacity() * (size_of::<Arc<Watch>>() + size_of::<Watch>())
            + events.capacity() * size_of::<Event>();
        let names: usize = events.iter().map(|event| event.name.capacity()).sum();
        Held::new(Kept::Watches, size_of::<Inotify>() + records + names)
    }

    fn ready(&self) -> Ready {
        self.unix.families.inotify.pull();
        Ready::NONE.with_if(!self.queue.borrow().events.is_empty(), Ready::READABLE)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.arrived);
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.progress.get())
    }

    fn nameless(&self) -> Nameless {
        Nameless::Anonymous("inotify")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
