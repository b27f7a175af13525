//! Pages of a shared file, for maps: fetched when they are touched, kept as long as somebody maps the file, and put back.
//!
//! All maps of a file show the same pages, and calls that read and write meet them there, so that they agree inside of the machine.
//! A page that a map may write is dirty from the moment it is shown; it is put when the program asks for that, and when the last
//! such map goes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

use abi::Errno;
use machine::{KernelCell, KernelValue, NoMemory, Ordered, PAGE_BYTES, TryGrow};
use ninep::{Client, Failure, Fid};

use super::super::foreign::Opening;
use super::super::opened::{File, MappedFile};
use super::Share;
use super::post::{Errand, Post, Seat};
use crate::schedule::{Scheduler, WaitQueue};
use crate::space::{Arrival, BackingError, Coming, FramePool, Page, Supply};

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages that are fetched at a time.
const AHEAD: u64 = 16;

/// What is on its way to the server, for one file.
pub struct Puts {
    under_way: KernelValue<usize>,
    has_failed: KernelValue<bool>,
    waiting: WaitQueue,
}

impl Puts {
    pub fn new() -> Result<Arc<Puts>, NoMemory> {
        let under_way = KernelValue::new(0);
        machine::try_arc(Puts { under_way, has_failed: KernelValue::new(false), waiting: WaitQueue::new() })
    }

    /// Sleeps until nothing is under way: what is read afterwards is what maps have written.
    pub fn settle(&self) -> Result<(), Errno> {
        while self.under_way.get() > 0 {
            super::post::sleep(&self.waiting)
                .map_err(|failure| super::super::foreign::errno_of(super::refused(failure)))?;
        }
        Ok(())
    }

    fn ended(&self, has_failed: bool) {
        self.under_way.set(self.under_way.get() - 1);
        self.has_failed.set(self.has_failed.get() | has_failed);
        if let Some(scheduler) = Scheduler::the() {
            scheduler.wake(&self.waiting);
        }
    }
}

enum State {
    Coming(Coming, Page),
    Here { page: Page, is_dirty: bool },
}

/// The pages of a file.
pub struct Pages {
    share: &'static Share,
    pool: &'static FramePool,
    reader: Arc<Opening>,
    writer: KernelCell<Option<Arc<Opening>>>,
    /// Maps that may be written.
    writers: KernelValue<usize>,
    size_bytes: KernelValue<u64>,
    states: KernelCell<Ordered<u64, State>>,
    puts: Arc<Puts>,
}

/// Brings pages in a row.
struct Fetch {
    opening: Arc<Opening>,
    fid: Fid,
    first: u64,
    /// Bytes that the file had when they were asked for.
    size_bytes: u64,
    arrivals: Vec<Arrival>,
}

impl Errand for Fetch {
    fn write(&self, seat: &mut Seat<'_>) -> Result<usize, Failure> {
        let bytes = self.arrivals.len() * PAGE_BYTES;
        Client::<Post>::read_question(seat, self.fid, self.first * PAGE, bytes as u32).map(|(_, bytes)| bytes)
    }

    fn end(self: Box<Self>, answer: Option<(&mut Seat<'_>, usize)>) {
        let Fetch { opening, first, size_bytes, arrivals, .. } = *self;
        let asked = arrivals.len() * PAGE_BYTES;
        let data = answer.and_then(|(seat, came)| {
            let data = Client::<Post>::data_of(&mut *seat, asked, came).ok()?;
            Some((seat, data))
        });
        // Arrivals that are dropped without a word have failed.
        let Some((seat, (at, count))) = data else { return drop(opening) };
        // An answer that ends before the file does is no end.
        let is_cut = first * PAGE + (count as u64) < size_bytes.min(first * PAGE + asked as u64);
        for (index, arrival) in arrivals.into_iter().enumerate() {
            let from = index * PAGE_BYTES;
            let there = count.saturating_sub(from).min(PAGE_BYTES);
            if there == 0 || is_cut && there < PAGE_BYTES {
                continue;
            }
            copy(seat, at + from, arrival.page(), there);
            arrival.page().fill(there, PAGE_BYTES - there, 0);
            arrival.tell(Ok(()));
        }
        drop(opening);
    }
}

/// Has pages in a row filled, from page `first` of an open file on, for somebody who keeps them.
pub fn fetch(share: &Share, opening: Arc<Opening>, (first, size_bytes): (u64, u64), mut arrivals: Vec<Arrival>) {
    let most = (share.session.data_bytes_max() / PAGE_BYTES).max(1);
    let mut first = first;
    while !arrivals.is_empty() {
        let mut piece = Vec::new();
        if piece.room_for_exact(most.min(arrivals.len())).is_err() {
            return;
        }
        arrivals.drain(..most.min(arrivals.len())).for_each(|arrival| piece.put(arrival));
        let (pages, opening) = (piece.len() as u64, opening.clone());
        let fid = super::fid(opening.far().1);
        let Ok(errand) = machine::try_box(Fetch { opening, fid, first, size_bytes, arrivals: piece }) else { return };
        share.post().send(errand);
        first += pages;
    }
    // Before threads run nobody else takes the answers.
    share.post().look_until_idle();
}

fn copy(seat: &mut Seat<'_>, at: usize, page: &Page, bytes: usize) {
    use ninep::Sheet;
    let mut piece = [0; 512];
    for offset in (0..bytes).step_by(piece.len()) {
        let part = &mut piece[..(bytes - offset).min(512)];
        seat.read(at + offset, part);
        page.write(offset, part);
    }
}

/// Takes what a page holds to the server.
struct Put {
    /// Keeps the fid.
    opening: Arc<Opening>,
    fid: Fid,
    position: u64,
    bytes: usize,
    page: Page,
    puts: Arc<Puts>,
}

impl Errand for Put {
    fn write(&self, seat: &mut Seat<'_>) -> Result<usize, Failure> {
        let page = |offset, piece: &mut [u8]| self.page.read(offset, piece);
        Client::<Post>::write_question_of(seat, self.fid, self.position, self.bytes, page).map(|(_, bytes)| bytes)
    }

    fn end(self: Box<Self>, answer: Option<(&mut Seat<'_>, usize)>) {
        let written = answer.and_then(|(seat, came)| Client::<Post>::written_of(seat, self.bytes, came).ok());
        self.puts.ended(written != Some(self.bytes));
        drop(self.opening);
    }
}

impl Pages {
    /// The pages of the file behind an opening that can be read.
    pub fn new(share: &'static Share, reader: &Arc<Opening>, puts: Arc<Puts>) -> Result<Arc<Pages>, NoMemory> {
        let pages = machine::try_arc(Pages {
            share,
            pool: reader.node().volume().pool(),
            reader: reader.clone(),
            writer: KernelCell::new(None),
            writers: KernelValue::new(0),
            size_bytes: KernelValue::new(reader.size()),
            states: KernelCell::new(Ordered::new()),
            puts,
        })?;
        share.show(&pages).map(|()| pages)
    }

    /// A map of them; one that may be written puts by `opening`.
    pub fn show(self: &Arc<Pages>, opening: &Arc<Opening>, is_writable: bool) -> Result<Arc<dyn MappedFile>, NoMemory> {
        let map = machine::try_arc(Map { pages: self.clone(), is_writable })?;
        if is_writable {
            self.writers.set(self.writers.get() + 1);
            *self.writer.borrow_mut() = Some(opening.clone());
        }
        Ok(map)
    }

    /// The file is known to have so many bytes.
    pub fn note_size(&self, bytes: u64) {
        self.size_bytes.set(bytes);
    }

    /// Lays what the pages hold over `bytes`, which were read at `position`.
    pub fn lay_over(&self, position: u64, bytes: &mut [u8]) {
        self.meet(position, bytes.len(), |page, offset, range| page.read(offset, &mut bytes[range]));
    }

    /// `bytes` were written at `position`: the pages hold them, too.
    pub fn take_over(&self, position: u64, bytes: &[u8]) {
        self.meet(position, bytes.len(), |page, offset, range| page.write(offset, &bytes[range]));
        // Those on their way may come with what was there before; who waits for one asks again.
        let range = position / PAGE..(position + bytes.len() as u64).div_ceil(PAGE);
        self.forget(range, |state| matches!(state, State::Coming(..)));
        self.size_bytes.set(self.size_bytes.get().max(position + bytes.len() as u64));
    }

    /// The file has so many bytes from now on.
    pub fn cut(&self, bytes: u64) {
        self.forget(bytes.div_ceil(PAGE)..u64::MAX, |_| true);
        let within = (bytes % PAGE) as usize;
        if within != 0
            && let Some(State::Here { page, .. }) = self.states.borrow().get(&(bytes / PAGE))
        {
            page.fill(within, PAGE_BYTES - within, 0);
        }
        self.size_bytes.set(bytes);
    }

    fn forget(&self, range: Range<u64>, is_meant: impl Fn(&State) -> bool) {
        let mut from = range.start;
        loop {
            let next = {
                let states = self.states.borrow();
                let mut found = states.range(Bound::Included(&from));
                found.find(|(_, state)| is_meant(state)).map(|(index, _)| *index)
            };
            let Some(index) = next.filter(|index| *index < range.end) else { return };
            let removed = self.states.borrow_mut().remove(&index);
            drop(removed);
            from = index + 1;
        }
    }

    /// Shows the parts of pages that are here and hold bytes of `position..position + bytes`: page, offset, and which of the bytes.
    fn meet(&self, position: u64, bytes: usize, mut each: impl FnMut(&Page, usize, Range<usize>)) {
        let end = position + bytes as u64;
        let states = self.states.borrow();
        for (index, state) in states.range(Bound::Included(&(position / PAGE))) {
            let start = index * PAGE;
            if start >= end {
                break;
            }
            if let State::Here { page, .. } = state {
                let (from, to) = (start.max(position), (start + PAGE).min(end));
                each(page, (from - start) as usize, (from - position) as usize..(to - position) as usize);
            }
        }
    }

    fn page(&self, index: u64, is_writable: bool) -> Result<Supply, BackingError> {
        self.settle_coming(index);
        if is_writable {
            let dirty = self.states.borrow().len() + 1;
            self.share.post().reserve(dirty).map_err(|_: NoMemory| BackingError::OutOfMemory)?;
        }
        match self.states.borrow_mut().get_mut(&index) {
            Some(State::Here { page, is_dirty }) => {
                *is_dirty |= is_writable;
                return Ok(Supply::Now(page.clone()));
            }
            Some(State::Coming(coming, _)) => return Ok(Supply::Wait(coming.clone())),
            None => {}
        }
        self.fetch(index)
    }

    /// A page that has come is here; one that has not come is asked for anew.
    fn settle_coming(&self, index: u64) {
        let mut states = self.states.borrow_mut();
        let Some(state) = states.get_mut(&index) else { return };
        if let State::Coming(coming, page) = state {
            match coming.outcome() {
                None => {}
                Some(Ok(())) => *state = State::Here { page: page.clone(), is_dirty: false },
                Some(Err(_)) => drop(states.remove(&index)),
            }
        }
    }

    /// Asks for page `index`, and for those behind it that are not here. One behind the end is asked for alone: it may be there by now.
    fn fetch(&self, index: u64) -> Result<Supply, BackingError> {
        let lost = |_: NoMemory| BackingError::OutOfMemory;
        let most = self.share.session.data_bytes_max() as u64 / PAGE;
        let pages = self.size_bytes.get().div_ceil(PAGE).saturating_sub(index).clamp(1, AHEAD.min(most));
        let mut arrivals = Vec::new();
        arrivals.room_for_exact(pages as usize).map_err(lost)?;
        let mut first = None;
        for next in index..index + pages {
            if self.states.borrow().get(&next).is_some() {
                break;
            }
            let Some(page) = self.pool.allocate_for_file() else { break };
            let Ok((coming, arrival)) = Coming::new(page.clone()) else { break };
            if self.states.borrow_mut().try_insert(next, State::Coming(coming.clone(), page)).is_err() {
                break;
            }
            first.get_or_insert(coming);
            arrivals.put(arrival);
        }
        let coming = first.ok_or(BackingError::OutOfMemory)?;
        let (opening, size_bytes) = (self.reader.clone(), self.size_bytes.get());
        let fid = super::fid(opening.far().1);
        let fetch = machine::try_box(Fetch { opening, fid, first: index, size_bytes, arrivals }).map_err(lost)?;
        self.share.post().send(fetch);
        if self.share.post().look_until(&|| coming.outcome().is_some()) {
            self.settle_coming(index);
            let found = self.states.borrow().get(&index).map(|state| match state {
                State::Here { page, .. } | State::Coming(_, page) => page.clone(),
            });
            return found.map(Supply::Now).ok_or(BackingError::Failed);
        }
        Ok(Supply::Wait(coming))
    }

    /// Has all dirty pages put. They stay dirty while a map may write them unseen.
    pub(super) fn put_all(self: &Arc<Pages>) {
        let Some(opening) = self.writer.borrow().clone() else { return };
        let stays = self.writers.get() > 0;
        let mut from = 0;
        loop {
            let next = self.next_dirty(from, stays);
            let Some((index, page)) = next else { break };
            from = index + 1;
            let position = index * PAGE;
            let bytes = self.size_bytes.get().saturating_sub(position).min(PAGE) as usize;
            if bytes == 0 {
                continue;
            }
            let fid = super::fid(opening.far().1);
            let put = Put { opening: opening.clone(), fid, position, bytes, page, puts: self.puts.clone() };
            self.puts.under_way.set(self.puts.under_way.get() + 1);
            match machine::try_box(put) {
                Ok(put) => self.share.post().send(put),
                Err(_) => {
                    self.puts.ended(true);
                    self.mark_dirty(index);
                }
            }
        }
        if !stays {
            *self.writer.borrow_mut() = None;
        }
    }

    fn next_dirty(&self, from: u64, stays: bool) -> Option<(u64, Page)> {
        let mut states = self.states.borrow_mut();
        for (index, state) in states.range_mut(Bound::Included(&from)) {
            if let State::Here { page, is_dirty } = state
                && *is_dirty
            {
                *is_dirty = stays;
                return Some((*index, page.clone()));
            }
        }
        None
    }

    fn mark_dirty(&self, index: u64) {
        if let Some(State::Here { is_dirty, .. }) = self.states.borrow_mut().get_mut(&index) {
            *is_dirty = true;
        }
    }

    /// What maps have written is at the server when this returns. Error: `EIO` if some of it is not.
    pub fn put_and_wait(self: &Arc<Pages>) -> Result<(), Errno> {
        self.put_all();
        self.puts.settle()?;
        if self.puts.has_failed.replace(false) { Err(Errno::EIO) } else { Ok(()) }
    }
}

/// A map of a file.
struct Map {
    pages: Arc<Pages>,
    is_writable: bool,
}

impl MappedFile for Map {
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        self.pages.page(index, self.is_writable)
    }

    /// A page that a map may write is shown by a fault of its own, so that it is known to be dirty.
    fn visit(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        if self.is_writable {
            return;
        }
        let states = self.pages.states.borrow();
        for (index, state) in states.range(Bound::Included(&range.start)) {
            match state {
                _ if *index >= range.end => break,
                State::Here { page, .. } => show(*index, page),
                State::Coming(coming, page) if coming.outcome() == Some(Ok(())) => show(*index, page),
                State::Coming(..) => {}
            }
        }
    }

    fn sync(&self) -> Result<(), Errno> {
        if self.is_writable { self.pages.put_and_wait() } else { Ok(()) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.is_writable {
            self.pages.writers.set(self.pages.writers.get() - 1);
            if self.pages.writers.get() == 0 {
                self.pages.put_all();
            }
        }
    }
}
