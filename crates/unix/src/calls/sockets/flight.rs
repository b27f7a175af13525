//! Open files in flight: sent over a socket and not yet received.
//!
//! A socket may be sent over a socket, and so be kept by nothing but a message that only it could receive:
//!
//! ```text
//!   socket A ── inbox ──► message ──► open file of B
//!      ▲                                    │
//!   open file of A ◄── message ◄── inbox ── socket B
//! ```
//! Counted references cannot see that such a ring is garbage. So the sockets in flight stand in a list here, and when one
//! loses a descriptor or a message that held it, those that nobody can receive any more lose what they hold
//! (`garbage.rs`). Garbage is looked for at once while there are few files in flight, and else so seldom that the search
//! adds a constant to each loss; when there are twice as many sockets in flight as were left by the last search, too.
//!
//! Files that fall are dropped one after the other and never inside another's end: a chain of sockets, each in the
//! inbox of the next, may be longer than the kernel's stack is deep. Nothing here asks for memory but `Rights::new`.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use machine::{Held, KernelCell, KernelValue, Sorted, try_box, try_to_vec};

use super::garbage;
use super::unix::UnixSocket;
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;

/// Files in flight below which every loss starts a search: as many as an ordinary user may have there.
const FEW_FILES: usize = 1024;

/// Sockets in flight below which sending another one never starts a search.
const FEW_SOCKETS: usize = 64;

/// What flies, and what falls.
pub struct Flight(KernelCell<State>);

struct State {
    /// The first socket in flight.
    first: Weak<UnixSocket>,
    /// Sockets in flight.
    sockets: usize,
    /// Files in flight.
    files: usize,
    /// Files in flight by the user who sent them.
    users: Sorted<u32, usize>,
    /// Sockets in flight after the last search.
    survivors: usize,
    /// What could have made garbage since the last search.
    losses: usize,
    /// Garbage shall be looked for.
    is_stale: bool,
    /// What is to be dropped.
    falling: Option<Box<Flown>>,
    /// Somebody drops it.
    is_emptied: bool,
    /// Walks of `Carried` so far.
    walks: u32,
}

/// A socket's place among those in flight, and the notes of the search.
#[derive(Default)]
pub struct FlightPlace {
    file: KernelCell<Weak<OpenFile>>,
    before: KernelCell<Weak<UnixSocket>>,
    pub after: KernelCell<Weak<UnixSocket>>,
    /// Messages that hold it and lie in no suspect.
    pub outside: KernelValue<usize>,
    pub standing: KernelValue<garbage::Standing>,
    /// Which walk of a `Carried` has seen it last, and of how many parts what it holds is one there.
    pub carried: KernelValue<(u32, usize)>,
    /// The next in the list on which the search has put it.
    pub next: KernelCell<Option<Arc<UnixSocket>>>,
}

impl FlightPlace {
    /// Its open file, and in how many messages that is.
    pub fn file(&self) -> Option<Arc<OpenFile>> {
        self.file.borrow().upgrade()
    }
}

/// The open files of one message.
struct Flown {
    files: Vec<Arc<OpenFile>>,
    sender: u32,
    unix: &'static Unix,
    /// The next to be dropped.
    next: Option<Box<Flown>>,
}

/// The open files of one message, counted while they fly.
pub struct Rights(Option<Box<Flown>>);

/// The socket that an open file is.
pub fn socket(file: &OpenFile) -> Option<&UnixSocket> {
    file.stream_of()
}

impl Flight {
    pub const fn new() -> Flight {
        Flight(KernelCell::new(State {
            first: Weak::new(),
            sockets: 0,
            files: 0,
            users: Sorted::new(),
            survivors: 0,
            losses: 0,
            is_stale: false,
            falling: None,
            is_emptied: false,
            walks: 0,
        }))
    }

    /// A number that no walk before has had, but for those of four thousand million walks ago.
    pub fn next_walk(&self) -> u32 {
        let mut state = self.0.borrow_mut();
        state.walks = state.walks.wrapping_add(1);
        state.walks
    }

    /// Files that a user has in flight.
    pub fn of_user(&self, user: u32) -> usize {
        self.0.borrow().users.get(&user).copied().unwrap_or(0)
    }

    /// The first socket in flight; its place leads to the next.
    pub fn first(&self) -> Option<Arc<UnixSocket>> {
        self.0.borrow().first.upgrade()
    }

    /// A descriptor of the socket goes away, and messages hold it: who is in its own inbox can nobody reach.
    pub fn descriptor_lost(&self, unix: &Unix, socket: &UnixSocket) {
        let is_last = |file: &Arc<OpenFile>| Arc::strong_count(file) == file.in_flight() + LOST + 1;
        if socket.holds_rights() && socket.flight.file().as_ref().is_some_and(is_last) {
            self.0.borrow_mut().count_loss();
            self.empty(unix, Some(socket));
        }
    }

    /// A socket has ended: somebody who waited in it may have held another one.
    pub fn socket_ended(&self, unix: &Unix) {
        self.0.borrow_mut().count_loss();
        self.empty(unix, None);
    }

    /// Drops what falls, unless somebody further up the stack does. If it is much, a program's thread does the rest on its way back to
    /// the program, with safe points in between ([`Flight::go_on`]).
    fn empty(&self, unix: &Unix, losing: Option<&UnixSocket>) {
        if core::mem::replace(&mut self.0.borrow_mut().is_emptied, true) {
            return;
        }
        let mut is_done = self.empty_some(losing);
        if !is_done && let Some(task) = unix.tasks.of_thread(unix.machine.current_tte()) {
            task.call_attention();
            is_done = true;
        }
        while !is_done {
            is_done = self.empty_some(losing);
        }
        self.0.borrow_mut().is_emptied = false;
    }

    /// True: nothing falls any more, and nothing that does has to be looked for.
    fn empty_some(&self, losing: Option<&UnixSocket>) -> bool {
        for _ in 0..DROPPED {
            let next = self.0.borrow_mut().take_falling();
            if next.is_none() && !self.collect(losing) {
                return true;
            }
            drop(next);
        }
        false
    }

    /// Drops what calls have left to be dropped. Nothing is borrowed.
    pub fn go_on(&self, held: Held<'_>, unix: &Unix) {
        while self.0.borrow().is_anything_left() {
            self.empty(unix, None);
            unix.scheduler.breathe(held);
        }
    }

    /// Lets all fall that only sockets hold which nobody can reach; true if it was looked for.
    fn collect(&self, losing: Option<&UnixSocket>) -> bool {
        let mut state = self.0.borrow_mut();
        if !core::mem::take(&mut state.is_stale) {
            return false;
        }
        state.losses = 0;
        drop(state);
        garbage::let_fall(self, losing);
        let mut state = self.0.borrow_mut();
        state.survivors = state.sockets;
        true
    }
}

/// References to an open file that a descriptor which goes away still has.
pub const LOST: usize = 1;

/// Messages whose files are dropped, or searches for garbage, between two safe points.
const DROPPED: usize = 16;

impl State {
    /// Not while somebody is at it: then it is his.
    fn is_anything_left(&self) -> bool {
        !self.is_emptied && (self.falling.is_some() || self.is_stale)
    }

    fn count_loss(&mut self) {
        self.losses += 1;
        self.is_stale |= self.sockets > 0 && self.losses * FEW_FILES >= self.files;
    }

    fn take_falling(&mut self) -> Option<Box<Flown>> {
        let mut first = self.falling.take()?;
        self.falling = first.next.take();
        Some(first)
    }

    fn launch(&mut self, file: &Arc<OpenFile>) {
        self.files += 1;
        file.count_flights(1);
        if let Some(socket) = socket(file).filter(|_| file.in_flight() == 1) {
            let place = &socket.flight;
            *place.file.borrow_mut() = Arc::downgrade(file);
            if let Some(first) = self.first.upgrade() {
                *first.flight.before.borrow_mut() = socket.weak();
            }
            *place.after.borrow_mut() = core::mem::replace(&mut self.first, socket.weak());
            self.sockets += 1;
            self.is_stale |= self.sockets > FEW_SOCKETS + 2 * self.survivors;
        }
    }

    fn land(&mut self, file: &Arc<OpenFile>) {
        self.files -= 1;
        file.count_flights(-1);
        let Some(socket) = socket(file) else { return };
        if file.in_flight() > 0 {
            self.count_loss();
            return;
        }
        let place = &socket.flight;
        let before = core::mem::take(&mut *place.before.borrow_mut());
        let after = core::mem::take(&mut *place.after.borrow_mut());
        if let Some(after) = after.upgrade() {
            *after.flight.before.borrow_mut() = before.clone();
        }
        match before.upgrade() {
            Some(before) => *before.flight.after.borrow_mut() = after,
            None => self.first = after,
        }
        *place.file.borrow_mut() = Weak::new();
        self.sockets -= 1;
    }

    /// So many files less of a user.
    fn discount(&mut self, user: u32, files: usize) {
        let is_last = self.users.get_mut(&user).is_none_or(|count| {
            *count -= files;
            *count == 0
        });
        if is_last {
            self.users.remove(&user);
        }
    }
}

impl Rights {
    /// Sends files off. Errors: `ETOOMANYREFS` when the user has more in flight than descriptors; `ENOMEM`.
    pub fn new(unix: &'static Unix, files: Vec<Arc<OpenFile>>, sender: u32, most: u64) -> Result<Rights, Errno> {
        if unix.flight.of_user(sender) as u64 > most {
            return Err(Errno::ETOOMANYREFS);
        }
        let flown = try_box(Flown { files, sender, unix, next: None })?;
        let mut state = unix.flight.0.borrow_mut();
        *state.users.try_get_or_insert(sender, || 0)? += flown.files.len();
        flown.files.iter().for_each(|file| state.launch(file));
        drop(state);
        unix.flight.empty(unix, None);
        Ok(Rights(Some(flown)))
    }

    /// The same once more, for whoever only peeks. Error: `ENOMEM`.
    pub fn duplicate(&self) -> Result<Option<Rights>, Errno> {
        let Some(flown) = &self.0 else { return Ok(None) };
        Rights::new(flown.unix, try_to_vec(&flown.files)?, flown.sender, u64::MAX).map(Some)
    }

    pub fn files(&self) -> &[Arc<OpenFile>] {
        self.0.as_ref().map_or(&[], |flown| &flown.files)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let Some(mut flown) = self.0.take() else { return };
        let unix = flown.unix;
        let flight = &unix.flight;
        let mut state = flight.0.borrow_mut();
        flown.files.iter().for_each(|file| state.land(file));
        state.discount(flown.sender, flown.files.len());
        flown.next = state.falling.take();
        state.falling = Some(flown);
        drop(state);
        flight.empty(unix, None);
    }
}
