//! Local sockets as streams.
//!
//! ```text
//!   socket A ── peer ──► socket B       each owns what has come for it (inbox), a waiting queue for who reads,
//!      ▲────── peer ───────┘            accepts or connects, and one for who writes
//! ```
//! Invariant: peers know each other weakly; the end of one tells the other.
//!
//! A stream that is used gets a ring for each direction, and its ends the pipe's routines (`flow.rs`).

mod stream;

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{SOCK_DGRAM, SOCK_STREAM, Ucred};
use kernel::file::Node;
use kernel::net::Options;
use kernel::pipe::CAPACITY_DEFAULT;
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Progress, SocketRecord};
use machine::{KernelCell, KernelValue, Nanos, NoMemory, TryGrow, TryQueue, try_arc, try_arc_cyclic, try_to_vec};

use super::flight::FlightPlace;
use super::flow::Flow;
use super::parcel::{Inbox, Message, Parcel, Received, sender};
use crate::emulator::Unix;
use crate::limits::CALL_FRAMES_MIN;

/// What one message takes of its sender's buffer beside its bytes.
const MESSAGE_COST: usize = 32;
/// Datagrams that wait for one receiver at most, however small they are: with what Linux counts for the smallest, its default
/// buffer has room for so many.
const MESSAGES_MAX: usize = 278;

/// Where a socket stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    pub connected: bool,
    /// Connections that may wait for `accept`; `None` for a socket that does not listen.
    pub backlog: Option<usize>,
    pub reads_ended: bool,
    pub writes_ended: bool,
}

pub struct UnixSocket {
    me: Weak<UnixSocket>,
    /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
    pub kind: u32,
    unix: &'static Unix,
    pub(super) inbox: KernelCell<Inbox>,
    pub standing: KernelCell<Standing>,
    peer: KernelCell<Weak<UnixSocket>>,
    /// Connected sockets that `accept` will give.
    pub waiting: KernelCell<VecDeque<Arc<UnixSocket>>>,
    /// The address, as the path bytes of `sockaddr_un`; empty without one.
    pub name: KernelCell<Vec<u8>>,
    /// What its path stands for. A place outside of the machine is the same node only as long as somebody keeps it.
    pub place: KernelCell<Option<Arc<Node>>>,
    /// The peer's address when they were connected; kept when the peer has gone.
    pub peer_name: KernelCell<Option<Vec<u8>>>,
    /// Whoever made the socket, or made it listen.
    pub owner: KernelCell<Ucred>,
    /// Its peer's owner when they were connected (`SO_PEERCRED`).
    pub peer_owner: KernelCell<Option<Ucred>>,
    /// Its receiver is told who sends (`SO_PASSCRED`).
    pub passes_credentials: KernelValue<bool>,
    /// What programs have set of it.
    pub options: KernelValue<Options>,
    /// What the next call finds (`SO_ERROR`).
    pub error: KernelValue<Option<Errno>>,
    progress: KernelCell<Progress>,
    /// Woken when something has come; also who waits for a connection sleeps here.
    pub readable: Arc<WaitQueue>,
    /// Woken when there is room again; also who waits to be connected sleeps here.
    pub writable: Arc<WaitQueue>,
    flow: Flow,
    pub flight: FlightPlace,
    /// No other socket or pipe has it (`socket:[N]`, `st_ino`).
    record: SocketRecord,
}

impl UnixSocket {
    /// Error: `NoMemory`.
    pub fn new(unix: &'static Unix, kind: u32, owner: Ucred) -> Result<Arc<UnixSocket>, NoMemory> {
        let (readable, writable) = (try_arc(WaitQueue::new())?, try_arc(WaitQueue::new())?);
        try_arc_cyclic(|me| UnixSocket {
            me: me.clone(),
            kind,
            unix,
            inbox: KernelCell::new(Inbox::default()),
            standing: KernelCell::new(Standing::default()),
            peer: KernelCell::new(Weak::new()),
            waiting: KernelCell::new(VecDeque::new()),
            name: KernelCell::new(Vec::new()),
            place: KernelCell::new(None),
            peer_name: KernelCell::new(None),
            owner: KernelCell::new(owner),
            peer_owner: KernelCell::new(None),
            passes_credentials: KernelValue::new(false),
            options: KernelValue::new(Options::default()),
            error: KernelValue::new(None),
            progress: KernelCell::new(Progress::default()),
            readable,
            writable,
            flow: Flow::default(),
            flight: FlightPlace::default(),
            record: SocketRecord::new(owner.uid, owner.gid),
        })
    }

    pub fn weak(&self) -> Weak<UnixSocket> {
        self.me.clone()
    }

    /// The socket itself, kept.
    pub fn counted(&self) -> Option<Arc<UnixSocket>> {
        self.me.upgrade()
    }

    pub fn peer(&self) -> Option<Arc<UnixSocket>> {
        self.peer.borrow().upgrade()
    }

    pub fn is_stream(&self) -> bool {
        self.kind == SOCK_STREAM
    }

    /// Connects two sockets with each other, or leaves both as they were. Error: `NoMemory`.
    pub fn join(&self, other: &UnixSocket) -> Result<(), NoMemory> {
        let (name, others) = (try_to_vec(&self.name.borrow())?, try_to_vec(&other.name.borrow())?);
        self.lead_to(other, others);
        other.lead_to(self, name);
        self.peer_owner.set(Some(other.owner.get()));
        other.peer_owner.set(Some(self.owner.get()));
        Ok(())
    }

    /// What this socket sends goes to `other`, of whose name this is a copy.
    pub fn lead_to(&self, other: &UnixSocket, name: Vec<u8>) {
        *self.peer.borrow_mut() = other.weak();
        *self.peer_name.borrow_mut() = Some(name);
        self.standing.borrow_mut().connected = true;
        self.changed();
    }

    /// Something about the socket has changed, which is news to whoever asks for news.
    pub fn changed(&self) {
        let mut progress = self.progress.get();
        (progress.arrived, progress.departed) = (progress.arrived + 1, progress.departed + 1);
        self.progress.set(progress);
        self.unix.scheduler.wake(&self.readable);
        self.unix.scheduler.wake(&self.writable);
    }

    /// A datagram socket has no peer any more. What waits for it is lost, and a peer that leads here is told.
    pub fn lead_nowhere(&self) {
        let peer = core::mem::take(&mut *self.peer.borrow_mut());
        *self.peer_name.borrow_mut() = None;
        self.standing.borrow_mut().connected = false;
        let Some(peer) = peer.upgrade() else { return };
        let lost = core::mem::take(&mut *self.inbox.borrow_mut());
        if !lost.messages.is_empty() && peer.peer().is_some_and(|back| core::ptr::eq(&*back, self)) {
            peer.error.set(Some(Errno::ECONNRESET));
            peer.changed();
        }
    }

    /// Ends reading, writing or both; the other side sees it.
    pub fn shut_down(&self, reads: bool, writes: bool) {
        let mut standing = self.standing.get();
        standing.reads_ended |= reads;
        standing.writes_ended |= writes;
        self.standing.set(standing);
        self.gate();
        self.changed();
        if let Some(peer) = self.peer().filter(|_| self.kind != SOCK_DGRAM) {
            let mut theirs = peer.standing.get();
            theirs.reads_ended |= writes;
            theirs.writes_ended |= reads;
            peer.standing.set(theirs);
            peer.gate();
            peer.changed();
        }
    }

    /// Takes out what has come, or with `peek` looks at it; a datagram's rest is lost.
    ///
    /// Errors: `EAGAIN`, `EINTR`, `ECONNRESET`, `EINVAL` and `ENOTCONN` for a socket without a peer, `ENOMEM`.
    pub fn receive(&self, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno> {
        let options = self.options.get();
        let deadline = io.deadline(options.receive_timeout);
        let mut received = self.receive_some(io, room, peek, deadline)?;
        let least = room.min(options.low_water as usize);
        if self.is_stream() && !peek && received.bytes.len() < least {
            let more = |room| self.receive_some(io, room, false, deadline);
            received.fill_up([least, room], self.passes_credentials.get(), more, |more| self.keep(more));
        }
        Ok(received)
    }

    fn receive_some(&self, io: &Io<'_>, room: usize, peek: bool, deadline: Option<Nanos>) -> Result<Received, Errno> {
        loop {
            if !self.is_stream()
                && let Some(error) = self.error.take()
            {
                return Err(error);
            }
            if let Some(received) = self.take(room, peek)? {
                if !peek {
                    self.tell_of_room();
                }
                return Ok(received);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let standing = self.standing.get();
            if standing.reads_ended {
                return Ok(Received::default());
            }
            if !standing.connected && self.kind != SOCK_DGRAM {
                return Err(if self.is_stream() { Errno::EINVAL } else { Errno::ENOTCONN });
            }
            io.wait_until(&self.readable, deadline)?;
        }
    }

    /// Bytes have been taken out. Who sends a stream is woken when most have been: as on Linux, senders and receiver do not take turns
    /// at a full buffer.
    fn tell_of_room(&self) {
        if let Some(peer) = self.peer() {
            peer.progress.borrow_mut().departed += 1;
            if !self.is_stream() || self.has_much_room(&peer) {
                self.unix.scheduler.wake(&peer.writable);
            }
        }
        self.unix.scheduler.wake(&self.writable);
    }

    /// The program's buffer did not take what was received: a stream keeps it; a datagram is gone, as on Linux.
    pub fn keep(&self, received: Received) {
        if self.is_stream() {
            self.inbox.borrow_mut().keep(&self.flow, received);
            self.gate();
        }
    }

    fn take(&self, room: usize, peek: bool) -> Result<Option<Received>, Errno> {
        if !self.is_stream() {
            return self.inbox.borrow_mut().take(room, peek);
        }
        if !peek && self.messages_go_on() {
            self.gate();
        }
        let taken = self.inbox.borrow_mut().take_stream(&self.flow, room, peek, self.passes_credentials.get());
        if !peek && self.has_no_messages() {
            self.gate();
        }
        taken
    }

    /// What waits flows through the ring from now on, if it may and fits: nobody hears of it anew. Between two calls of the receiver, for
    /// what one of them cannot take stands as it was sent.
    fn messages_go_on(&self) -> bool {
        if self.has_no_messages() || !self.may_flow() {
            return false;
        }
        let poured = self.inbox.borrow_mut().pour(&self.flow);
        let progress = &mut *self.progress.borrow_mut();
        progress.arrived = progress.arrived.wrapping_sub(poured as u64);
        poured > 0
    }

    /// Lets what comes flow through the ring, if it may now, or no longer.
    pub fn gate(&self) {
        if self.flow.has_ring() {
            self.flow.open(self.may_flow() && self.has_no_messages());
        }
    }

    /// Somebody sends, nothing is told of who does, and nobody has set how long one waits or for how much.
    fn may_flow(&self) -> bool {
        let (standing, options) = (self.standing.get(), self.options.get());
        let waits_plainly = !self.passes_credentials.get() && options.receive_timeout.0 == 0 && options.low_water == 1;
        let sends_plainly = |peer: Arc<UnixSocket>| {
            let theirs = peer.options.get();
            let has_room = theirs.send_bytes() >= CAPACITY_DEFAULT;
            !peer.passes_credentials.get() && theirs.send_timeout.0 == 0 && has_room
        };
        standing.connected && !standing.reads_ended && waits_plainly && self.peer().is_some_and(sends_plainly)
    }

    /// Rust has sent something to `receiver`: perhaps code shall from now on.
    fn consider_ring(&self, receiver: &UnixSocket) {
        if self.is_stream()
            && self.flow.is_worth_a_ring()
            && let Some(makers) = self.unix.makers()
        {
            self.flow.make_ring(makers, &receiver.flow, [&receiver.readable, &self.writable]);
        }
        receiver.gate();
    }

    /// Bytes that one `read` could give now.
    fn readable_now(&self) -> usize {
        let inbox = self.inbox.borrow();
        if self.is_stream() {
            inbox.bytes + self.flow.fill()
        } else {
            inbox.messages.front().map_or(0, |first| first.bytes.len())
        }
    }

    /// Bytes that the socket and its messages take.
    fn held_bytes(&self) -> usize {
        size_of::<UnixSocket>() + self.inbox.borrow().held_bytes() + self.flow.held_bytes()
    }

    /// Sends to `to`, or to the peer; sleeps while there is no room. What goes beside a stream's bytes goes with the first.
    ///
    /// Errors: `ENOTCONN`, `EPIPE`, `ECONNREFUSED` for a datagram's receiver that has gone, `EPERM` for one that listens to
    /// somebody else, `EMSGSIZE`, `EAGAIN`, `ENOMEM`.
    pub fn send(
        &self,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<&Arc<UnixSocket>>,
        mut parcel: Parcel,
    ) -> Result<usize, Errno> {
        if !self.is_stream() && bytes.len() > self.message_bytes_max() {
            return Err(Errno::EMSGSIZE);
        }
        let mut sent = 0;
        loop {
            let result = self.send_part(io, &bytes[sent..], to, &mut parcel);
            match result {
                Ok(part) => sent += part,
                Err(error) => return if sent > 0 { Ok(sent) } else { Err(error) },
            }
            if sent == bytes.len() {
                return Ok(sent);
            }
        }
    }

    fn send_part(
        &self,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<&Arc<UnixSocket>>,
        parcel: &mut Parcel,
    ) -> Result<usize, Errno> {
        let options = self.options.get();
        let deadline = io.deadline(options.send_timeout);
        loop {
            if !self.is_stream()
                && let Some(error) = self.error.take()
            {
                return Err(error);
            }
            let standing = self.standing.get();
            if standing.writes_ended {
                return Err(Errno::EPIPE);
            }
            if to.is_none() && !standing.connected {
                return Err(Errno::ENOTCONN);
            }
            let Some(receiver) = to.cloned().or_else(|| self.peer()) else {
                if self.kind != SOCK_DGRAM {
                    return Err(Errno::EPIPE);
                }
                self.lead_nowhere();
                return Err(Errno::ECONNREFUSED);
            };
            if receiver.standing.get().reads_ended {
                return Err(Errno::EPIPE);
            }
            if self.kind == SOCK_DGRAM && !receiver.hears(self) {
                return Err(Errno::EPERM);
            }
            if let Some(part) = self.send_by_ring(io, bytes, parcel) {
                return Ok(part);
            }
            let room = options.send_bytes().saturating_sub(receiver.unread_bytes());
            let part = if self.is_stream() { bytes.len().min(room) } else { bytes.len() };
            if part <= room && (part > 0 || bytes.is_empty()) && !receiver.has_too_many() {
                if part > 0 || !self.is_stream() {
                    let is_told = self.passes_credentials.get() || receiver.passes_credentials.get();
                    if is_told && parcel.credentials.is_none() {
                        parcel.credentials = Some(sender(&self.unix.current().process));
                    }
                    receiver.put(&bytes[..part], self, parcel)?;
                    io.scheduler.wake(&receiver.readable);
                    self.consider_ring(&receiver);
                }
                return Ok(part);
            }
            // A datagram's sender may wait for a receiver that does not know it: that one's queue is woken too.
            io.wait_until(if to.is_some() { &receiver.writable } else { &self.writable }, deadline)?;
        }
    }

    /// Before bytes are fetched: one that is connected to nobody who hears says so first. Errors: `EPIPE`, `ENOTCONN`.
    pub fn check_writable(&self) -> Result<(), Errno> {
        let standing = self.standing.get();
        match self.peer() {
            _ if self.kind == SOCK_DGRAM => Ok(()),
            _ if standing.writes_ended => Err(Errno::EPIPE),
            None if !standing.connected => Err(Errno::ENOTCONN),
            None => Err(Errno::EPIPE),
            Some(peer) if peer.standing.get().reads_ended => Err(Errno::EPIPE),
            Some(_) => Ok(()),
        }
    }

    /// `sender`, which was told that there is no room here, is told that there is.
    fn has_much_room(&self, sender: &UnixSocket) -> bool {
        self.unread_bytes() < sender.options.get().send_bytes() / if self.is_stream() { 4 } else { 2 }
    }

    /// Bytes of the longest message that fits into what may wait for the receiver.
    fn message_bytes_max(&self) -> usize {
        self.options.get().send_bytes() - MESSAGE_COST
    }

    /// Bytes that have come and were not taken.
    fn unread_bytes(&self) -> usize {
        self.inbox.borrow().bytes + self.flow.fill()
    }

    /// Nothing waits that only Rust can give.
    fn has_no_messages(&self) -> bool {
        self.inbox.borrow().messages.is_empty()
    }

    fn send_by_ring(&self, io: &Io<'_>, bytes: &[u8], parcel: &Parcel) -> Option<usize> {
        if parcel.rights.is_none() { self.flow.send(io, bytes) } else { None }
    }

    /// A connected datagram socket hears its peer alone.
    pub fn hears(&self, sender: &UnixSocket) -> bool {
        !self.standing.get().connected || self.peer().is_some_and(|peer| core::ptr::eq(&*peer, sender))
    }

    /// More messages than may wait. A stream's are joined where nothing goes with them.
    fn has_too_many(&self) -> bool {
        self.inbox.borrow().messages.len() >= MESSAGES_MAX
    }

    /// Error: `ENOMEM`; small writes must not take the kernel's last memory either.
    fn put(&self, bytes: &[u8], sender: &UnixSocket, parcel: &mut Parcel) -> Result<(), Errno> {
        let machine = self.unix.machine;
        let lacks = || machine.heap_pages() < CALL_FRAMES_MIN;
        if lacks() && (machine.reclaim() == 0 || lacks()) {
            return Err(Errno::ENOMEM);
        }
        let mut inbox = self.inbox.borrow_mut();
        let joins = self.is_stream() && parcel.rights.is_none();
        let last = inbox.messages.back_mut().filter(|last| joins && last.takes(bytes.len(), parcel));
        if let Some(last) = last {
            last.bytes.try_extend_from_slice(bytes)?;
        } else {
            let name = sender.name.borrow();
            let from = if self.is_stream() { Vec::new() } else { try_to_vec(&name)? };
            // One more for `keep`: what was received is not lost.
            inbox.messages.room_for(2)?;
            let bytes = try_to_vec(bytes)?;
            inbox.messages.try_push_back(Message { bytes, start: 0, from, parcel: parcel.part(false)? })?;
        }
        inbox.bytes += bytes.len();
        self.progress.borrow_mut().arrived += 1;
        Ok(())
    }
}
