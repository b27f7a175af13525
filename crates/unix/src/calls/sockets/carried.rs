//! What somebody holds in flight: files in the messages of sockets that it can reach, as deep as they are sent.

use alloc::sync::Arc;

use kernel::charge::Bill;

use super::flight::{Flight, Rights, socket};
use super::garbage::Chain;
use super::parcel::Message;
use super::unix::UnixSocket;
use crate::files::open_file::OpenFile;

/// One walk over what can be received through some files. It asks for no memory: the sockets are linked through their places.
pub struct Carried {
    walk: u32,
    sockets: Chain,
}

impl Carried {
    pub fn new(flight: &Flight) -> Carried {
        Carried { walk: flight.next_walk(), sockets: Chain::default() }
    }

    /// Whoever holds one of `holders` parts of this file can receive what has come for it.
    pub fn add(&mut self, file: &OpenFile, holders: usize) {
        let Some(socket) = socket(file).filter(|socket| socket.holds_rights()) else { return };
        let (last_walk, _) = socket.flight.carried.get();
        if let Some(counted) = socket.counted().filter(|_| last_walk != self.walk) {
            socket.flight.carried.set((self.walk, holders));
            self.sockets.push(counted);
        }
    }

    /// Adds all of it to a bill; each socket is looked into once.
    pub fn charge(mut self, owner: u64, bill: &mut Bill) {
        while let Some(socket) = self.sockets.pop() {
            let (_, parts) = socket.flight.carried.get();
            socket.each_right(&mut |file| {
                let holders = parts.saturating_mul(Arc::strong_count(file));
                file.charge(owner, holders, bill);
                self.add(file, holders);
            });
        }
    }
}

/// The files that go along with what was sent.
impl UnixSocket {
    /// The open files that wait here, or in connections that nobody has accepted.
    pub fn each_right(&self, visit: &mut dyn FnMut(&Arc<OpenFile>)) {
        for message in &self.inbox.borrow().messages {
            message.parcel.rights.iter().flat_map(Rights::files).for_each(&mut *visit);
        }
        self.waiting.borrow().iter().for_each(|connection| connection.each_right(visit));
    }

    /// Whether open files wait here, or in connections that nobody has accepted.
    pub fn holds_rights(&self) -> bool {
        let holds = |message: &Message| message.parcel.rights.is_some();
        self.inbox.borrow().messages.iter().any(holds)
            || self.waiting.borrow().iter().any(|connection| connection.holds_rights())
    }

    /// Nobody will ever receive what waits here.
    pub fn lose_rights(&self) {
        let mut place = 0;
        loop {
            let lost = self.inbox.borrow_mut().take_rights(&mut place);
            if lost.is_none() {
                break;
            }
        }
        self.waiting.borrow().iter().for_each(|connection| connection.lose_rights());
    }
}
