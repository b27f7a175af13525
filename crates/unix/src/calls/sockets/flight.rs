//! Open files in flight: sent over a socket and not yet received.
//!
//! A socket may be sent over a socket, and so be kept by nothing but a message that only it could receive:
//!
//! ```text
//!   socket A ── inbox ──► message ──► open file of B
//!      ▲                                    │
//!   open file of A ◄── message ◄── inbox ── socket B
//! ```
//! Counted references cannot see that such a ring is garbage. So the sockets in flight are counted here, and when a socket
//! ends while others fly, those that nobody can receive any more lose what they hold (as Linux's `net/unix/garbage.c`).
//!
//! Files that fall are dropped one after the other and never inside another's end: a chain of sockets, each in the
//! inbox of the next, may be longer than the kernel's stack is deep.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use machine::{KernelCell, Sorted};

use super::unix::UnixSocket;
use crate::emulator::Unix;
use crate::files::OpenFile;

/// What flies, and what falls.
pub struct Flight(KernelCell<State>);

struct State {
    /// Sockets in flight by the address of their open file, and in how many messages they are.
    sockets: Sorted<usize, (Weak<OpenFile>, usize)>,
    /// Files in flight by the user who sent them.
    users: Sorted<u32, usize>,
    /// What is to be dropped.
    falling: Vec<Arc<OpenFile>>,
    /// Somebody drops it.
    is_emptied: bool,
    /// A socket has ended since garbage was looked for.
    is_stale: bool,
}

/// The open files of one message, counted while they fly.
pub struct Rights {
    files: Vec<Arc<OpenFile>>,
    sender: u32,
    unix: &'static Unix,
}

fn name(file: &Arc<OpenFile>) -> usize {
    Arc::as_ptr(file) as usize
}

fn socket(file: &OpenFile) -> Option<&UnixSocket> {
    file.stream_of()
}

impl Flight {
    pub const fn new() -> Flight {
        Flight(KernelCell::new(State {
            sockets: Sorted::new(),
            users: Sorted::new(),
            falling: Vec::new(),
            is_emptied: false,
            is_stale: false,
        }))
    }

    /// Files that a user has in flight.
    pub fn of_user(&self, user: u32) -> usize {
        self.0.borrow().users.get(&user).copied().unwrap_or(0)
    }

    /// A socket has ended: others may be garbage now.
    pub fn socket_ended(&self) {
        self.0.borrow_mut().is_stale = true;
        self.empty();
    }

    /// Drops what falls, unless somebody further up the stack does.
    fn empty(&self) {
        if core::mem::replace(&mut self.0.borrow_mut().is_emptied, true) {
            return;
        }
        loop {
            let next = self.0.borrow_mut().falling.pop();
            if next.is_none() && !self.collect() {
                break;
            }
            drop(next);
        }
        self.0.borrow_mut().is_emptied = false;
    }

    /// Lets all fall that only sockets hold which nobody can reach; true if there may be something.
    fn collect(&self) -> bool {
        let mut state = self.0.borrow_mut();
        if !core::mem::take(&mut state.is_stale) || state.sockets.entries().is_empty() {
            return false;
        }
        let held = state.sockets.entries().iter().filter(|(_, (file, count))| file.strong_count() == *count);
        let suspect = |(name, (file, count)): &(usize, (Weak<OpenFile>, usize))| {
            Some(Suspect { name: *name, file: file.upgrade()?, outside: *count, is_reached: false })
        };
        let mut suspects: Vec<Suspect> = held.filter_map(suspect).collect();
        drop(state);
        let place_of = |suspects: &[Suspect], name| suspects.binary_search_by_key(&name, |suspect| suspect.name).ok();
        for place in 0..suspects.len() {
            for name in suspects[place].flying() {
                if let Some(inner) = place_of(&suspects, name) {
                    suspects[inner].outside -= 1;
                }
            }
        }
        let mut reached: Vec<usize> = (0..suspects.len()).filter(|place| suspects[*place].outside > 0).collect();
        while let Some(place) = reached.pop() {
            if !core::mem::replace(&mut suspects[place].is_reached, true) {
                for name in suspects[place].flying() {
                    reached.extend(place_of(&suspects, name));
                }
            }
        }
        let garbage = suspects.iter().filter(|suspect| !suspect.is_reached);
        garbage.filter_map(|suspect| socket(&suspect.file)).for_each(UnixSocket::lose_rights);
        true
    }
}

/// A socket that only messages hold.
struct Suspect {
    name: usize,
    file: Arc<OpenFile>,
    /// Messages that hold it and are not in a suspect.
    outside: usize,
    is_reached: bool,
}

impl Suspect {
    /// The sockets in its messages.
    #[inline(never)]
    fn flying(&self) -> Vec<usize> {
        let mut names = Vec::new();
        if let Some(socket) = socket(&self.file) {
            socket.each_right(&mut |file| names.push(name(file)));
        }
        names
    }
}

impl Rights {
    /// Sends files off. Error: `ETOOMANYREFS` when the user has more in flight than descriptors.
    pub fn new(unix: &'static Unix, files: Vec<Arc<OpenFile>>, sender: u32, most: u64) -> Result<Rights, Errno> {
        if unix.flight.of_user(sender) as u64 > most {
            return Err(Errno::ETOOMANYREFS);
        }
        let mut state = unix.flight.0.borrow_mut();
        *state.users.get_or_insert(sender, || 0) += files.len();
        for file in files.iter().filter(|file| socket(file).is_some()) {
            state.sockets.get_or_insert(name(file), || (Arc::downgrade(file), 0)).1 += 1;
        }
        Ok(Rights { files, sender, unix })
    }

    /// The same once more, for whoever only peeks.
    pub fn duplicate(&self) -> Option<Rights> {
        Rights::new(self.unix, self.files.clone(), self.sender, u64::MAX).ok()
    }

    pub fn files(&self) -> &[Arc<OpenFile>] {
        &self.files
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let flight = &self.unix.flight;
        let mut state = flight.0.borrow_mut();
        for file in self.files.iter().filter(|file| socket(file).is_some()) {
            let is_last = state.sockets.get_mut(&name(file)).is_none_or(|(_, count)| {
                *count -= 1;
                *count == 0
            });
            if is_last {
                state.sockets.remove(&name(file));
            }
        }
        let is_last = state.users.get_mut(&self.sender).is_none_or(|count| {
            *count -= self.files.len();
            *count == 0
        });
        if is_last {
            state.users.remove(&self.sender);
        }
        state.falling.append(&mut self.files);
        drop(state);
        flight.empty();
    }
}
