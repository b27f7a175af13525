//! Questions to the server of a shared folder and their answers: several are under way at a time, each on a slot.
//!
//! ```text
//!   a thread: Sheet ── slot ── the device ── answer ── wakes the thread
//!   an errand (a page, what is written of a map, a fid given back): the same, and nobody waits; more of them than slots stand in a row
//! ```
//! A thread that is to end leaves its slot behind; the slot is free again when the answer has come.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::{Courier, KernelCell, KernelValue, Nanos, NoMemory, TryGrow, TryQueue, try_collect, try_filled};
use ninep::{Failure, Fid, Sheet, Wire};

use crate::schedule::{Scheduler, WaitQueue};

/// Who knows whether the running thread is to end, so that it waits no longer.
pub trait Sleeper: Send + Sync {
    fn is_ending(&self) -> bool;
}

/// Set when programs run. Until then nobody can sleep, and answers are looked for.
static SLEEPER: KernelCell<Option<&'static dyn Sleeper>> = KernelCell::new(None);

/// From now on threads ask, and sleep meanwhile.
pub fn let_sleep(sleeper: &'static dyn Sleeper) {
    SLEEPER.set(Some(sleeper));
}

/// A kernel boots: nobody can sleep yet.
pub(super) fn begin() {
    SLEEPER.set(None);
}

/// Sleeps until `queue` is woken, as far as the running thread can sleep. What calls a store does not say that it may leave for another
/// thread: the machine proves that the lock is held, and nobody who asks a store borrows anything.
///
/// Errors: the thread is to end, or cannot sleep.
pub(super) fn sleep(queue: &WaitQueue) -> Result<(), Failure> {
    let scheduler = Scheduler::the().ok_or(Failure::Broken)?;
    let machine = scheduler.machine();
    let sleeper = SLEEPER.get().ok_or(Failure::Broken)?;
    if machine.current_tte() == scheduler.idle().id() {
        return Err(Failure::Broken);
    }
    if sleeper.is_ending() {
        return Err(Failure::GivenUp);
    }
    let look_again = machine.must_poll().then(|| machine.now().saturating_add(LOOK_AGAIN));
    let mut can_sleep = false;
    machine.with_lock(&mut |held| {
        can_sleep = true;
        scheduler.sleep(held, &[queue], look_again);
    });
    if look_again.is_some() {
        super::look_at_all();
    }
    if can_sleep { Ok(()) } else { Err(Failure::Broken) }
}

/// How long boot, and the end of the machine, wait for an answer.
const PATIENCE: Nanos = Nanos(5_000_000_000);
/// How often it is looked on a machine whose devices do not interrupt.
const LOOK_AGAIN: Nanos = Nanos(200_000);

/// Something that is asked while nobody waits.
pub(super) trait Errand: Send + Sync {
    /// Writes the question: how many bytes it has.
    fn write(&self, seat: &mut Seat<'_>) -> Result<usize, Failure>;
    /// The answer has come; `None`: there will be none.
    fn end(self: Box<Self>, answer: Option<(&mut Seat<'_>, usize)>);
}

/// What a slot is used for.
enum Use {
    Free,
    /// A thread has it. With its answer: how many bytes.
    Held(Option<usize>),
    /// Nobody waits for its answer any more.
    Left,
    Errand(Box<dyn Errand>),
}

pub(super) struct Post {
    courier: &'static dyn Courier,
    uses: KernelCell<Vec<Use>>,
    /// Who waits for the answer on a slot.
    waiting: Box<[WaitQueue]>,
    /// Who waits for a slot.
    for_slot: WaitQueue,
    row: KernelCell<VecDeque<Box<dyn Errand>>>,
    /// The device is used no more.
    is_lost: KernelValue<bool>,
    /// Fids that a question may have made for which nobody waited.
    doubtful: KernelCell<Vec<Fid>>,
}

/// A slot that somebody writes on or reads from.
pub(super) struct Seat<'a> {
    post: &'a Post,
    slot: usize,
    is_held: bool,
}

impl Post {
    pub fn new(courier: &'static dyn Courier) -> Result<Post, NoMemory> {
        let mut uses = Vec::new();
        uses.try_resize_with(courier.slots(), || Use::Free)?;
        Ok(Post {
            courier,
            uses: KernelCell::new(uses),
            waiting: try_collect((0..courier.slots()).map(|_| WaitQueue::new()))?.into_boxed_slice(),
            for_slot: WaitQueue::new(),
            row: KernelCell::new(VecDeque::new()),
            is_lost: KernelValue::new(false),
            doubtful: KernelCell::new(Vec::new()),
        })
    }

    /// Sleeps until `queue` is woken, or looks whether answers have come where nobody can sleep.
    fn wait(&self, queue: &WaitQueue, until: Option<Nanos>) -> Result<(), Failure> {
        let machine = Scheduler::the().ok_or(Failure::Broken)?.machine();
        if SLEEPER.get().is_none() {
            self.collect();
            return if until.is_none_or(|until| machine.now() < until) { Ok(()) } else { Err(Failure::Broken) };
        }
        sleep(queue)
    }

    /// Where nobody can sleep yet: looks for answers until `is_done`, or patience ends. False: the caller can sleep.
    pub fn look_until(&self, is_done: &dyn Fn() -> bool) -> bool {
        let Some(until) = Post::deadline() else { return false };
        let now = || Scheduler::the().map_or(until, |scheduler| scheduler.machine().now());
        while !is_done() && now() < until {
            self.collect();
        }
        true
    }

    /// When who cannot sleep gives up.
    fn deadline() -> Option<Nanos> {
        let is_boot = SLEEPER.get().is_none();
        let now = Scheduler::the().map_or(Nanos(0), |scheduler| scheduler.machine().now());
        is_boot.then(|| now.saturating_add(PATIENCE))
    }

    fn take_slot(&self) -> Option<usize> {
        let mut uses = self.uses.borrow_mut();
        let slot = uses.iter().position(|use_| matches!(use_, Use::Free))?;
        uses[slot] = Use::Held(None);
        Some(slot)
    }

    fn give_slot(&self, slot: usize) {
        self.uses.borrow_mut()[slot] = Use::Free;
        self.run_errands();
        if let Some(scheduler) = Scheduler::the() {
            scheduler.wake(&self.for_slot);
        }
    }

    /// Has an errand done, some time.
    pub fn send(&self, errand: Box<dyn Errand>) {
        let mut row = self.row.borrow_mut();
        if row.room_for(1).is_err() {
            drop(row);
            errand.end(None);
            return;
        }
        row.put_back(errand);
        drop(row);
        self.run_errands();
    }

    /// Room for so many more errands, which then cannot fail for want of it.
    pub fn reserve(&self, errands: usize) -> Result<(), NoMemory> {
        self.row.borrow_mut().room_for(errands)
    }

    /// Gives slots to errands as long as there are both.
    fn run_errands(&self) {
        while !self.row.borrow().is_empty() {
            if self.is_lost.get() {
                let row = core::mem::take(&mut *self.row.borrow_mut());
                row.into_iter().for_each(|errand| errand.end(None));
                return;
            }
            let Some(slot) = self.take_slot() else { return };
            let next = self.row.borrow_mut().pop_front();
            let Some(errand) = next else {
                self.uses.borrow_mut()[slot] = Use::Free;
                return;
            };
            let mut seat = Seat { post: self, slot, is_held: false };
            match errand.write(&mut seat).and_then(|bytes| self.start(slot, bytes)) {
                Ok(()) => self.uses.borrow_mut()[slot] = Use::Errand(errand),
                Err(_) => {
                    self.uses.borrow_mut()[slot] = Use::Free;
                    errand.end(None);
                }
            }
        }
    }

    fn start(&self, slot: usize, bytes: usize) -> Result<(), Failure> {
        if self.is_lost.get() {
            return Err(Failure::Broken);
        }
        self.courier.send(slot, bytes).map_err(|_| {
            self.lose();
            Failure::Broken
        })
    }

    /// Takes the answers that have come. Called between interrupts, too: it does not sleep.
    pub fn collect(&self) {
        loop {
            match self.courier.next_answer() {
                Ok(Some((slot, bytes))) => self.answered(slot, bytes),
                Ok(None) => return,
                Err(_) => return self.lose(),
            }
        }
    }

    fn answered(&self, slot: usize, bytes: usize) {
        let mut uses = self.uses.borrow_mut();
        match core::mem::replace(&mut uses[slot], Use::Held(Some(bytes))) {
            Use::Held(_) => {
                drop(uses);
                if let Some(scheduler) = Scheduler::the() {
                    scheduler.wake(&self.waiting[slot]);
                }
            }
            Use::Errand(errand) => {
                drop(uses);
                let mut seat = Seat { post: self, slot, is_held: false };
                errand.end(Some((&mut seat, bytes)));
                self.give_slot(slot);
            }
            Use::Left | Use::Free => {
                drop(uses);
                self.give_slot(slot);
            }
        }
    }

    /// The device is gone: everybody is told, and nobody asks it any more.
    #[cold]
    fn lose(&self) {
        if self.is_lost.get() {
            return;
        }
        self.is_lost.set(true);
        for slot in 0..self.waiting.len() {
            let before = {
                let mut uses = self.uses.borrow_mut();
                // The device may still write where it was told to: no slot is given out again.
                match &mut uses[slot] {
                    Use::Errand(_) => core::mem::replace(&mut uses[slot], Use::Left),
                    _ => Use::Left,
                }
            };
            if let Use::Errand(errand) = before {
                errand.end(None);
            }
        }
        self.run_errands();
        if let Some(scheduler) = Scheduler::the() {
            self.waiting.iter().chain([&self.for_slot]).for_each(|queue| scheduler.wake(queue));
        }
    }

    /// A question about `fid` was left: the fid may stand for something when its answer has come.
    pub fn doubt(&self, fid: Fid) {
        // Without memory the server keeps it.
        let _ = self.doubtful.borrow_mut().try_push(fid);
    }

    /// The fids of questions that were left, when all those have been answered.
    pub fn settled_doubts(&self) -> Vec<Fid> {
        let has_left = self.uses.borrow().iter().any(|use_| matches!(use_, Use::Left));
        if has_left { Vec::new() } else { core::mem::take(&mut *self.doubtful.borrow_mut()) }
    }

    fn is_busy(&self) -> bool {
        let under_way = self.uses.borrow().iter().any(|use_| matches!(use_, Use::Errand(_)));
        (under_way || !self.row.borrow().is_empty()) && !self.is_lost.get()
    }

    /// Where nobody can sleep yet: no errand is left afterwards.
    pub fn look_until_idle(&self) {
        self.look_until(&|| !self.is_busy());
    }

    /// Waits until no errand is left, as long as patience lasts: the machine is going to end.
    pub fn finish(&self, machine: &dyn machine::Machine) {
        let until = machine.now().saturating_add(PATIENCE);
        while self.is_busy() && machine.now() < until {
            self.collect();
            self.run_errands();
        }
    }
}

impl Wire for Post {
    type Sheet<'a> = Seat<'a>;

    fn sheet(&self) -> Result<Seat<'_>, Failure> {
        let until = Post::deadline();
        loop {
            if self.is_lost.get() {
                return Err(Failure::Broken);
            }
            if let Some(slot) = self.take_slot() {
                return Ok(Seat { post: self, slot, is_held: true });
            }
            self.wait(&self.for_slot, until)?;
        }
    }
}

impl Sheet for Seat<'_> {
    fn room(&self) -> usize {
        self.post.courier.room()
    }

    fn tag(&self) -> u16 {
        self.slot as u16
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.post.courier.write(self.slot, offset, bytes);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.post.courier.read(self.slot, offset, into);
    }

    fn exchange(&mut self, bytes: usize) -> Result<usize, Failure> {
        let (post, slot, until) = (self.post, self.slot, Post::deadline());
        post.start(slot, bytes)?;
        loop {
            if let Use::Held(Some(came)) = post.uses.borrow()[slot] {
                return Ok(came);
            }
            let waited = if post.is_lost.get() { Err(Failure::Broken) } else { post.wait(&post.waiting[slot], until) };
            if let Err(failure) = waited {
                // The answer may have come with the signal.
                let mut uses = post.uses.borrow_mut();
                if !matches!(uses[slot], Use::Held(Some(_))) {
                    uses[slot] = Use::Left;
                    self.is_held = false;
                }
                return Err(failure);
            }
        }
    }
}

impl Sheet for &mut Seat<'_> {
    fn room(&self) -> usize {
        (**self).room()
    }

    fn tag(&self) -> u16 {
        (**self).tag()
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        (**self).write(offset, bytes);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        (**self).read(offset, into);
    }

    fn exchange(&mut self, _: usize) -> Result<usize, Failure> {
        Err(Failure::Broken)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.post.give_slot(self.slot);
        }
    }
}

/// A buffer for data on its way, as large as there is memory for.
pub(in crate::file) fn buffer(most: usize) -> Result<Vec<u8>, NoMemory> {
    try_filled(0, most).or_else(|_| try_filled(0, most.min(16_384))).or_else(|_| try_filled(0, most.min(4096)))
}
