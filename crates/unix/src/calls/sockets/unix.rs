//! Local sockets as streams.
//!
//! ```text
//!   socket A ── peer ──► socket B       each owns what has come for it (inbox) and one waiting queue,
//!      ▲────── peer ───────┘            woken whenever anything about the socket changes
//! ```
//! Invariant: peers know each other weakly; the end of one tells the other.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

use abi::Errno;
use abi::socket::{SOCK_DGRAM, SOCK_STREAM};
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::stream::{Io, Progress, Ready, Stream, UserRange};
use machine::KernelCell;

use crate::limits::{CALL_FRAMES_MIN, PIECE_BYTES};

/// Bytes that wait for one receiver at most (Linux's default buffer); then senders sleep.
const INBOX_BYTES: usize = 212_992;
/// Datagrams that wait for one receiver at most, however small they are: with what Linux counts for the smallest, its default
/// buffer has room for so many.
const MESSAGES_MAX: usize = 278;

/// What has come and was not read. Datagrams keep their bounds.
#[derive(Default)]
struct Inbox {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
}

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
    scheduler: &'static Scheduler,
    inbox: KernelCell<Inbox>,
    pub standing: KernelCell<Standing>,
    peer: KernelCell<Weak<UnixSocket>>,
    /// Connected sockets that `accept` will give.
    pub waiting: KernelCell<VecDeque<Arc<UnixSocket>>>,
    /// The address, as the path bytes of `sockaddr_un`; empty without one.
    pub name: KernelCell<Vec<u8>>,
    /// The peer's address when they were connected; kept when the peer has gone.
    pub peer_name: KernelCell<Option<Vec<u8>>>,
    /// Process, user and group of whoever made the socket (`SO_PEERCRED`).
    pub owner: (u32, u32, u32),
    progress: KernelCell<Progress>,
    pub changed: WaitQueue,
}

impl UnixSocket {
    pub fn new(scheduler: &'static Scheduler, kind: u32, owner: (u32, u32, u32)) -> Arc<UnixSocket> {
        Arc::new_cyclic(|me| UnixSocket {
            me: me.clone(),
            kind,
            scheduler,
            inbox: KernelCell::new(Inbox::default()),
            standing: KernelCell::new(Standing::default()),
            peer: KernelCell::new(Weak::new()),
            waiting: KernelCell::new(VecDeque::new()),
            name: KernelCell::new(Vec::new()),
            peer_name: KernelCell::new(None),
            owner,
            progress: KernelCell::new(Progress::default()),
            changed: WaitQueue::new(),
        })
    }

    pub fn weak(&self) -> Weak<UnixSocket> {
        self.me.clone()
    }

    pub fn peer(&self) -> Option<Arc<UnixSocket>> {
        self.peer.borrow().upgrade()
    }

    pub fn is_stream(&self) -> bool {
        self.kind == SOCK_STREAM
    }

    /// Connects two sockets with each other.
    pub fn join(&self, other: &UnixSocket) {
        self.lead_to(other);
        other.lead_to(self);
    }

    /// What this socket sends goes to `other`.
    pub fn lead_to(&self, other: &UnixSocket) {
        *self.peer.borrow_mut() = other.weak();
        *self.peer_name.borrow_mut() = Some(other.name.borrow().clone());
        self.standing.borrow_mut().connected = true;
        self.scheduler.wake(&self.changed);
    }

    /// Ends reading, writing or both; the other side sees it.
    pub fn shut_down(&self, reads: bool, writes: bool) {
        let mut standing = self.standing.get();
        standing.reads_ended |= reads;
        standing.writes_ended |= writes;
        self.standing.set(standing);
        self.scheduler.wake(&self.changed);
        if let Some(peer) = self.peer().filter(|_| self.kind != SOCK_DGRAM) {
            let mut theirs = peer.standing.get();
            theirs.reads_ended |= writes;
            theirs.writes_ended |= reads;
            peer.standing.set(theirs);
            self.scheduler.wake(&peer.changed);
        }
    }

    /// Takes bytes out, or with `peek` looks at them; a datagram's rest is lost. Returns the bytes given and
    /// the datagram's true size.
    ///
    /// Errors: `EAGAIN`, `EINTR`, `EINVAL` and `ENOTCONN` for a socket without a peer, `ENOMEM`.
    pub fn receive(&self, io: &Io<'_>, room: usize, peek: bool) -> Result<(Vec<u8>, usize), Errno> {
        loop {
            if let Some(received) = self.take(room, peek)? {
                if !peek {
                    self.tell_of_room();
                }
                return Ok(received);
            }
            let standing = self.standing.get();
            if standing.reads_ended {
                return Ok((Vec::new(), 0));
            }
            if !standing.connected && self.kind != SOCK_DGRAM {
                return Err(if self.is_stream() { Errno::EINVAL } else { Errno::ENOTCONN });
            }
            io.wait(&self.changed)?;
        }
    }

    /// As `receive`, with `give` to bring the bytes to the program. A stream keeps what did not arrive; a datagram is gone, as on
    /// Linux. Returns the number of bytes given and the datagram's true size. Errors: also those of `give`.
    pub fn deliver(
        &self,
        io: &Io<'_>,
        room: usize,
        peek: bool,
        give: impl FnOnce(&[u8]) -> Result<(), Errno>,
    ) -> Result<(usize, usize), Errno> {
        let keeps = self.is_stream();
        let (bytes, size) = self.receive(io, room, peek || keeps)?;
        give(&bytes)?;
        if keeps && !peek {
            self.inbox.borrow_mut().drop_front(bytes.len());
            self.tell_of_room();
        }
        Ok((bytes.len(), size))
    }

    /// Bytes have been taken out.
    fn tell_of_room(&self) {
        if let Some(peer) = self.peer() {
            peer.progress.borrow_mut().departed += 1;
            self.scheduler.wake(&peer.changed);
        }
        self.scheduler.wake(&self.changed);
    }

    fn take(&self, room: usize, peek: bool) -> Result<Option<(Vec<u8>, usize)>, Errno> {
        let mut inbox = self.inbox.borrow_mut();
        let Some(first) = inbox.messages.front() else { return Ok(None) };
        if !self.is_stream() {
            let size = first.len();
            if peek {
                return Ok(Some((copy(&first[..size.min(room)])?, size)));
            }
            inbox.bytes -= size;
            let mut message = inbox.messages.pop_front().unwrap_or_default();
            message.truncate(room);
            return Ok(Some((message, size)));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(room.min(inbox.bytes)).map_err(|_| Errno::ENOMEM)?;
        for message in &inbox.messages {
            let part = message.len().min(room - bytes.len());
            bytes.extend_from_slice(&message[..part]);
        }
        if !peek {
            inbox.drop_front(bytes.len());
        }
        let size = bytes.len();
        Ok(Some((bytes, size)))
    }

    /// Sends to `to`, or to the peer; sleeps while there is no room.
    ///
    /// Errors: `ENOTCONN`, `EPIPE`, `ECONNREFUSED` for a datagram's receiver that has gone, `EMSGSIZE`, `EAGAIN`, `ENOMEM`.
    pub fn send(&self, io: &Io<'_>, bytes: &[u8], to: Option<&Arc<UnixSocket>>) -> Result<usize, Errno> {
        if !self.is_stream() && bytes.len() > INBOX_BYTES {
            return Err(Errno::EMSGSIZE);
        }
        let mut sent = 0;
        loop {
            let result = self.send_part(io, &bytes[sent..], to);
            match result {
                Ok(part) => sent += part,
                Err(error) => return if sent > 0 { Ok(sent) } else { Err(error) },
            }
            if sent == bytes.len() {
                return Ok(sent);
            }
        }
    }

    fn send_part(&self, io: &Io<'_>, bytes: &[u8], to: Option<&Arc<UnixSocket>>) -> Result<usize, Errno> {
        loop {
            let standing = self.standing.get();
            if standing.writes_ended {
                return Err(Errno::EPIPE);
            }
            if to.is_none() && !standing.connected {
                return Err(Errno::ENOTCONN);
            }
            let gone = if self.kind == SOCK_DGRAM { Errno::ECONNREFUSED } else { Errno::EPIPE };
            let receiver = to.cloned().or_else(|| self.peer()).ok_or(gone)?;
            if receiver.standing.get().reads_ended {
                return Err(Errno::EPIPE);
            }
            let room = INBOX_BYTES - receiver.inbox.borrow().bytes.min(INBOX_BYTES);
            let part = if self.is_stream() { bytes.len().min(room) } else { bytes.len() };
            if part <= room && (part > 0 || bytes.is_empty()) && !receiver.has_too_many() {
                if part > 0 || !self.is_stream() {
                    receiver.put(&bytes[..part])?;
                    io.scheduler.wake(&receiver.changed);
                }
                return Ok(part);
            }
            // A datagram's sender may wait for a receiver that does not know it: that one's queue is woken too.
            io.wait(if to.is_some() { &receiver.changed } else { &self.changed })?;
        }
    }

    /// More datagrams than may wait.
    fn has_too_many(&self) -> bool {
        !self.is_stream() && self.inbox.borrow().messages.len() >= MESSAGES_MAX
    }

    /// Error: `ENOMEM`; small writes must not take the kernel's last memory either.
    fn put(&self, bytes: &[u8]) -> Result<(), Errno> {
        let machine = self.scheduler.machine();
        let lacks = || machine.heap_pages() < CALL_FRAMES_MIN;
        if lacks() && (machine.reclaim() == 0 || lacks()) {
            return Err(Errno::ENOMEM);
        }
        self.inbox.borrow_mut().add(bytes, self.is_stream())?;
        self.progress.borrow_mut().arrived += 1;
        Ok(())
    }
}

/// Error: `ENOMEM`.
fn copy(bytes: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Errno::ENOMEM)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

impl Inbox {
    /// Bytes of a stream have no bounds: they join what came last. Error: `ENOMEM`.
    fn add(&mut self, bytes: &[u8], joins: bool) -> Result<(), Errno> {
        let last = self.messages.back_mut().filter(|last| joins && last.len() + bytes.len() <= PIECE_BYTES);
        if let Some(last) = last {
            last.try_reserve(bytes.len()).map_err(|_| Errno::ENOMEM)?;
            last.extend_from_slice(bytes);
        } else {
            self.messages.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            self.messages.push_back(copy(bytes)?);
        }
        self.bytes += bytes.len();
        Ok(())
    }

    fn drop_front(&mut self, mut bytes: usize) {
        self.bytes -= bytes;
        while let Some(front) = self.messages.front_mut() {
            if front.len() > bytes {
                front.drain(..bytes);
                return;
            }
            bytes -= front.len();
            self.messages.pop_front();
        }
    }
}

impl Stream for UnixSocket {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        if to.bytes == 0 {
            return Ok(0);
        }
        let give = |bytes: &[u8]| io.machine().copy_out(to.address, bytes).map_err(|_| Errno::EFAULT);
        self.deliver(io, to.bytes, false, give).map(|(bytes, _)| bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let whole = if self.is_stream() { PIECE_BYTES } else { INBOX_BYTES + 1 };
        let mut done = 0;
        loop {
            let rest = from.after(done);
            let mut piece = Vec::new();
            piece.try_reserve_exact(rest.bytes.min(whole)).map_err(|_| Errno::ENOMEM)?;
            piece.resize(rest.bytes.min(whole), 0);
            let copied = io.machine().copy_in(rest.address, &mut piece).map_err(|_| Errno::EFAULT);
            match copied.and_then(|()| self.send(io, &piece, None)) {
                Ok(part) => done += part,
                Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
            }
            if done >= from.bytes {
                return Ok(done);
            }
        }
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let (bytes, _) = self.receive(io, into.len(), false)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        self.send(io, from, None)
    }

    fn ready(&self) -> Ready {
        let standing = self.standing.get();
        if standing.backlog.is_some() {
            return Ready::NONE.with_if(!self.waiting.borrow().is_empty(), Ready::READABLE);
        }
        let unconnected = !standing.connected && self.kind != SOCK_DGRAM;
        let peer = self.peer();
        let full =
            peer.as_ref().is_some_and(|peer| peer.inbox.borrow().bytes >= INBOX_BYTES / 2 || peer.has_too_many());
        let has_data = !self.inbox.borrow().messages.is_empty();
        Ready::NONE
            .with_if(has_data || standing.reads_ended, Ready::READABLE)
            .with_if(standing.reads_ended, Ready::READ_HANG_UP)
            .with_if(!full, Ready::WRITABLE)
            .with_if(unconnected || standing.reads_ended && standing.writes_ended, Ready::HANG_UP)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.changed);
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.progress.get())
    }

    fn nameless(&self) -> kernel::stream::Nameless {
        kernel::stream::Nameless::Socket(self as *const UnixSocket as u64 >> 4 & 0xff_ffff)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        self.shut_down(true, true);
    }
}
