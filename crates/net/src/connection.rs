//! A connection: smoltcp's socket in a set of its own, so that a frame is shown to it alone.

use alloc::sync::Arc;

use machine::{Nanos, NoMemory, TryGrow, TryQueue, try_filled};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Duration;
use smoltcp::wire::{IpEndpoint, IpListenEndpoint, TcpSeqNumber};

use crate::listener::ListenerId;
use crate::manner::{KeepAlive, Manner};
use crate::port::Port;
use crate::stack::Stack;
use crate::timers::Who;
use crate::{Failure, News, Tuple, Watcher};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionId(pub(crate) u32);

/// How far a connection is, for who has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Opening,
    Open,
    Closed,
}

/// So many connections have large buffers, and so many middle ones; those beyond have small ones.
const LARGE_MOST: usize = 128;
const MIDDLE_MOST: usize = 1024;
const LARGE_BYTES: usize = 65_536;
const MIDDLE_BYTES: usize = 16_384;
const SMALL_BYTES: usize = 4096;
/// Buffers that programs choose are no smaller and no larger.
const LEAST_BYTES: usize = 2048;
const MOST_BYTES: usize = 4 << 20;

/// How long nobody may answer (Linux's 15 repetitions, and 6 of one that its program has left).
const ENDING_TIMEOUT: Duration = Duration::from_secs(127);
const SENDING_TIMEOUT: Duration = Duration::from_secs(924);
/// How long it is asked who has an address.
const NEIGHBOUR_PATIENCE: Nanos = Nanos(3_000_000_000);
/// Connections that wait whether their last word has come. A repeated word for one of those that were before them is answered by a reset.
const ENDED_MOST: usize = 32;
/// Segments sent at once.
const BURST: usize = 64;

/// What was last told about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    state: State,
    received: usize,
    room: usize,
}

/// Whose doing it is that a connection has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    Frame,
    Time,
    Program,
}

pub(crate) struct Connection {
    pub tuple: Tuple,
    pub sockets: SocketSet<'static>,
    handle: SocketHandle,
    pub watcher: Option<Arc<dyn Watcher>>,
    pub at: Option<Nanos>,
    /// As long as it is not established for who listens.
    pub listener: Option<ListenerId>,
    failure: Option<Failure>,
    seen: Seen,
    /// Behind the last number that was sent.
    pub sent_to: Option<TcpSeqNumber>,
    opened: Nanos,
    has_sent: bool,
    /// Its program has left it, and until when it may go on.
    left_until: Option<Nanos>,
    pub is_stalled: bool,
    pub manner: Manner,
    heard: Nanos,
}

impl Connection {
    pub fn socket(&self) -> &Socket<'static> {
        self.sockets.get(self.handle)
    }

    pub fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    /// Only its time has still to pass, and its program has not read all: smoltcp would forget what was not read.
    fn must_be_read(&self) -> bool {
        let socket = self.socket();
        socket.state() == State::TimeWait && socket.recv_queue() > 0 && self.left_until.is_none()
    }

    /// Only the word that it sends no more is not acknowledged, and an acknowledgement up to `number` does not acknowledge it. smoltcp
    /// must not hear that three times: it would put its timer away for a repetition of bytes that there are none of.
    pub fn waits_for_last(&self, number: TcpSeqNumber) -> bool {
        let socket = self.socket();
        let has_ended = matches!(socket.state(), State::FinWait1 | State::Closing | State::LastAck);
        has_ended && socket.send_queue() == 0 && self.sent_to.is_some_and(|behind| number < behind)
    }

    /// Before anything is sent: how long silence may last.
    fn set_patience(&mut self, now: Nanos) {
        let (manner, heard) = (self.manner, self.heard);
        let is_left = self.left_until.is_some();
        let user_timeout = manner.sending_timeout();
        let socket = self.socket_mut();
        let waits = socket.send_queue() > 0;
        let timeout = match socket.state() {
            State::SynSent | State::SynReceived => Some(user_timeout.unwrap_or(manner.opening_timeout())),
            State::FinWait1 | State::Closing | State::LastAck => {
                Some(user_timeout.unwrap_or(if is_left { ENDING_TIMEOUT } else { SENDING_TIMEOUT }))
            }
            _ if waits => Some(user_timeout.unwrap_or(SENDING_TIMEOUT)),
            _ => manner.keep_alive.map(KeepAlive::whole),
        };
        socket.set_timeout(timeout);
        if let Some(keep_alive) = manner.keep_alive {
            socket.set_keep_alive(Some(keep_alive.next(heard, now)));
        }
    }

    /// A frame is going to be shown to it.
    pub fn hears(&mut self, now: Nanos) {
        self.heard = now;
        if let Some(keep_alive) = self.manner.keep_alive {
            self.socket_mut().set_keep_alive(Some(keep_alive.next(now, now)));
        }
    }
}

fn buffer(bytes: usize) -> Result<SocketBuffer<'static>, NoMemory> {
    Ok(SocketBuffer::new(try_filled(0, bytes)?))
}

impl Stack {
    /// A connection that is closed yet.
    fn make_connection(&mut self, tuple: Tuple, now: Nanos, manner: &Manner) -> Result<Connection, NoMemory> {
        let bytes = match self.connections.len() {
            ..LARGE_MOST => LARGE_BYTES,
            LARGE_MOST..MIDDLE_MOST => MIDDLE_BYTES,
            _ => SMALL_BYTES,
        };
        let [receive, send] = [manner.receive_bytes, manner.send_bytes].map(|chosen| match chosen {
            Some(chosen) => (chosen as usize).clamp(LEAST_BYTES, MOST_BYTES),
            None => bytes,
        });
        let mut socket = Socket::new(buffer(receive)?, buffer(send)?);
        manner.apply(&mut socket);
        socket.set_congestion_control(CongestionControl::Reno);
        let mut storage = alloc::vec::Vec::new();
        storage.room_for_exact(1)?;
        storage.put(SocketStorage::EMPTY);
        let mut sockets = SocketSet::new(storage);
        let handle = sockets.add(socket);
        let seen = Seen { state: State::Closed, received: 0, room: 0 };
        Ok(Connection {
            tuple,
            sockets,
            handle,
            watcher: None,
            at: None,
            listener: None,
            failure: None,
            seen,
            sent_to: None,
            opened: now,
            has_sent: false,
            left_until: None,
            is_stalled: false,
            manner: *manner,
            heard: now,
        })
    }

    fn add_connection(&mut self, connection: Connection) -> Result<u32, NoMemory> {
        let tuple = connection.tuple;
        self.make_room_to_stall()?;
        let number = self.connections.add(connection)?;
        if let Err(error) = self.by_tuple.try_insert(tuple, number) {
            self.connections.remove(number);
            return Err(error);
        }
        Ok(number)
    }

    /// Whether these four numbers name a connection that is there.
    pub fn has_connection(&self, tuple: &Tuple) -> bool {
        self.by_tuple.get(tuple).is_some()
    }

    /// Begins to connect. Errors: `Refused` stands for numbers that are taken; `NetUnreachable`, `NoMemory`.
    pub fn connect(
        &mut self,
        now: Nanos,
        tuple: Tuple,
        watcher: Option<Arc<dyn Watcher>>,
        manner: &Manner,
    ) -> Result<ConnectionId, Failure> {
        if !self.reaches(tuple.remote.ip()) {
            return Err(Failure::NetUnreachable);
        }
        if self.has_connection(&tuple) {
            return Err(Failure::Refused);
        }
        let mut connection = self.make_connection(tuple, now, manner).map_err(|_| Failure::NoMemory)?;
        connection.watcher = watcher;
        let (remote, local) = (IpEndpoint::from(tuple.remote), IpListenEndpoint::from(tuple.local));
        let context = self.interface.context();
        connection.socket_mut().connect(context, remote, local).map_err(|_| Failure::NetUnreachable)?;
        let number = self.add_connection(connection).map_err(|_| Failure::NoMemory)?;
        self.settle(number, now, Cause::Program);
        Ok(ConnectionId(number))
    }

    /// A first segment has come for a listener: a new connection hears it.
    pub(crate) fn open_for(&mut self, listener: ListenerId, tuple: Tuple, now: Nanos) -> Result<u32, NoMemory> {
        let manner = self.listeners.get(listener.0).map(|listener| listener.manner).unwrap_or_default();
        let mut connection = self.make_connection(tuple, now, &manner)?;
        connection.listener = Some(listener);
        // It has a port, and nobody has listened with it.
        let _ = connection.socket_mut().listen(IpListenEndpoint::from(tuple.local));
        self.add_connection(connection)
    }

    /// Has the connection send what it may, sets its time, and tells who waits.
    pub(crate) fn settle(&mut self, number: u32, now: Nanos, cause: Cause) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        if connection.must_be_read() {
            self.set_time(Who::Connection(number), None);
            self.tell(number, cause);
            return;
        }
        connection.set_patience(now);
        let mut port = Port::new(self.link, &mut self.scratch);
        port.marks = connection.manner.marks;
        port.sent_to = Some(&mut connection.sent_to);
        let sent = Stack::flush(&mut self.interface, port, &mut connection.sockets, now, BURST);
        self.has_sent |= sent.frames > 0;
        connection.has_sent |= sent.count > 0;
        let state = connection.socket().state();
        let is_lost = !connection.has_sent && now.0.saturating_sub(connection.opened.0) >= NEIGHBOUR_PATIENCE.0;
        let is_left_too_long = connection.left_until.is_some_and(|until| now >= until) && state == State::FinWait2;
        if state != State::Closed && (is_lost || is_left_too_long) {
            connection.socket_mut().abort();
            connection.failure = is_lost.then_some(Failure::HostUnreachable);
        }
        let mut next = sent.next;
        if !connection.has_sent {
            let patience = Nanos(connection.opened.0.saturating_add(NEIGHBOUR_PATIENCE.0));
            next = Some(next.map_or(patience, |next| next.min(patience)));
        }
        if let Some(until) = connection.left_until.filter(|_| state == State::FinWait2) {
            next = Some(next.map_or(until, |next| next.min(until)));
        }
        if sent.is_full && !connection.is_stalled {
            connection.is_stalled = true;
            self.note_stalled(Who::Connection(number));
        }
        self.set_time(Who::Connection(number), next);
        self.tell(number, cause);
    }

    /// Tells who waits what has changed; a connection that is over and nobody's goes.
    fn tell(&mut self, number: u32, cause: Cause) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let socket = connection.socket();
        let state = socket.state();
        let room = if socket.may_send() { socket.send_capacity() - socket.send_queue() } else { 0 };
        let seen = Seen { state, received: socket.recv_queue(), room };
        let before = core::mem::replace(&mut connection.seen, seen);
        if before == seen && state != State::Closed {
            return;
        }
        if state == State::Closed && before.state != State::Closed && connection.failure.is_none() {
            connection.failure = failure(before.state, cause);
        }
        let is_other = before.state != state;
        let news =
            News { arrived: is_other || seen.received > before.received, departed: is_other || room > before.room };
        if let Some(watcher) = connection.watcher.as_ref().filter(|_| news != News::default()) {
            watcher.changed(news);
        }
        let (is_left, is_half) = (connection.left_until.is_some(), connection.listener.is_some());
        match state {
            State::Closed => self.forget(number, is_left || is_half),
            // Its beginning was taken back.
            State::Listen => self.forget(number, true),
            State::SynReceived | State::SynSent => {}
            _ if is_half => self.established(number),
            State::TimeWait if is_left && is_other => self.note_ended(number),
            _ => {}
        }
    }

    /// It has no numbers any more, and perhaps it goes.
    fn forget(&mut self, number: u32, goes: bool) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let (tuple, listener) = (connection.tuple, connection.listener.take());
        let was_stalled = core::mem::take(&mut connection.is_stalled);
        if self.by_tuple.get(&tuple) == Some(&number) {
            self.by_tuple.remove(&tuple);
        }
        if let Some(listener) = listener {
            self.half_open_ended(listener, number);
        }
        self.set_time(Who::Connection(number), None);
        if was_stalled {
            self.no_longer_stalled(Who::Connection(number));
        }
        if goes {
            self.connections.remove(number);
        }
    }

    /// Without a word to the other side.
    pub(crate) fn drop_connection(&mut self, number: u32) {
        self.forget(number, true);
    }

    fn note_ended(&mut self, number: u32) {
        if self.ended.len() >= ENDED_MOST
            && let Some(first) = self.ended.pop_front()
            && let Some(connection) = self.connections.get(first)
            && connection.left_until.is_some()
            && connection.socket().state() == State::TimeWait
        {
            self.drop_connection(first);
        }
        self.ended.put_back(number);
    }

    /// Whether its last segment was sent and acknowledged, and only the time is waited for.
    pub(crate) fn is_over(&self, number: u32) -> bool {
        self.connections.get(number).is_some_and(|connection| connection.socket().state() == State::TimeWait)
    }

    fn get(&self, id: ConnectionId) -> Option<&Socket<'static>> {
        self.connections.get(id.0).map(|connection| connection.socket())
    }

    pub fn tuple(&self, id: ConnectionId) -> Option<Tuple> {
        self.connections.get(id.0).map(|connection| connection.tuple)
    }

    pub fn watch(&mut self, id: ConnectionId, watcher: Arc<dyn Watcher>) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.watcher = Some(watcher);
        }
    }

    pub fn phase(&self, id: ConnectionId) -> Phase {
        match self.get(id).map(Socket::state) {
            None | Some(State::Closed) => Phase::Closed,
            Some(State::SynSent | State::SynReceived | State::Listen) => Phase::Opening,
            Some(_) => Phase::Open,
        }
    }

    /// Linux's number of its state (`tcp(7)`, `TCP_INFO`).
    pub fn state_number(&self, id: ConnectionId) -> u8 {
        match self.get(id).map_or(State::Closed, Socket::state) {
            State::Established => 1,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait => 6,
            State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Listen => 10,
            State::Closing => 11,
        }
    }

    /// Takes the reason why it ended, if it did not end as it should.
    pub fn take_failure(&mut self, id: ConnectionId) -> Option<Failure> {
        self.connections.get_mut(id.0)?.failure.take()
    }

    pub fn failure(&self, id: ConnectionId) -> Option<Failure> {
        self.connections.get(id.0)?.failure
    }

    /// Bytes that can be read now.
    pub fn readable(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, Socket::recv_queue)
    }

    /// Nothing will come any more behind what can be read.
    pub fn has_end(&self, id: ConnectionId) -> bool {
        self.get(id).is_none_or(|socket| {
            !matches!(
                socket.state(),
                State::SynSent | State::SynReceived | State::Established | State::FinWait1 | State::FinWait2
            )
        })
    }

    /// Bytes that can be written now; `None`: it cannot be written to any more.
    pub fn room(&self, id: ConnectionId) -> Option<usize> {
        let socket = self.get(id)?;
        socket.may_send().then(|| socket.send_capacity() - socket.send_queue())
    }

    pub fn unsent(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, Socket::send_queue)
    }

    /// Has `fill` write what shall be sent: it is given room, and says how much of it it used, or why it used none.
    pub fn send<E>(
        &mut self,
        id: ConnectionId,
        now: Nanos,
        mut fill: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let mut sent = 0;
        let mut result = Ok(0);
        // The room may go around the end of the buffer.
        for _ in 0..2 {
            let Some(connection) = self.connections.get_mut(id.0) else { break };
            let socket = connection.socket_mut();
            if !socket.can_send() {
                break;
            }
            let mut is_whole = false;
            let part = socket.send(|room| {
                let (most, filled) = (room.len(), fill(room));
                let count = *filled.as_ref().unwrap_or(&0);
                is_whole = count == most && most > 0;
                (count.min(most), filled)
            });
            match part {
                Ok(Ok(count)) => sent += count,
                Ok(Err(error)) => result = Err(error),
                Err(_) => break,
            }
            if !is_whole {
                break;
            }
        }
        self.settle(id.0, now, Cause::Program);
        if sent > 0 { Ok(sent) } else { result }
    }

    /// Shows `take` what has come, in its order: it says how much of it it took, or why none.
    pub fn receive<E>(
        &mut self,
        id: ConnectionId,
        now: Nanos,
        mut take: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let mut taken = 0;
        let mut result = Ok(0);
        for _ in 0..2 {
            let Some(connection) = self.connections.get_mut(id.0) else { break };
            let socket = connection.socket_mut();
            if !socket.can_recv() {
                break;
            }
            let mut is_whole = false;
            let part = socket.recv(|bytes| {
                let (most, took) = (bytes.len(), take(bytes));
                let count = *took.as_ref().unwrap_or(&0);
                is_whole = count == most && most > 0;
                (count.min(most), took)
            });
            match part {
                Ok(Ok(count)) => taken += count,
                Ok(Err(error)) => result = Err(error),
                Err(_) => break,
            }
            if !is_whole {
                break;
            }
        }
        if taken > 0 {
            // The window may be worth a word.
            self.settle(id.0, now, Cause::Program);
        }
        if taken > 0 { Ok(taken) } else { result }
    }

    /// Copies what has come and leaves it there.
    pub fn peek(&mut self, id: ConnectionId, into: &mut [u8]) -> usize {
        let connection = self.connections.get_mut(id.0);
        connection.and_then(|connection| connection.socket_mut().peek_slice(into).ok()).unwrap_or(0)
    }

    /// No more is sent behind what was.
    pub fn end_writes(&mut self, id: ConnectionId, now: Nanos) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.socket_mut().close();
            self.settle(id.0, now, Cause::Program);
        }
    }

    /// The program has left it: what was sent goes still, and what comes is refused.
    pub fn close(&mut self, id: ConnectionId, now: Nanos) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.watcher = None;
        let patience = Nanos(u64::from(connection.manner.left_seconds) * Nanos::PER_SECOND);
        connection.left_until = Some(now.saturating_add(patience));
        let socket = connection.socket_mut();
        // What was not read was lost on the way: the other side must know (RFC 2525, 2.17).
        if socket.recv_queue() > 0 {
            socket.abort()
        } else {
            socket.close()
        }
        let is_over = socket.state() == State::TimeWait;
        self.settle(id.0, now, Cause::Program);
        if is_over {
            self.note_ended(id.0);
        }
    }

    /// The program has left it, and the other side is told so.
    pub fn abort(&mut self, id: ConnectionId, now: Nanos) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.watcher = None;
        connection.left_until = Some(now);
        connection.socket_mut().abort();
        self.settle(id.0, now, Cause::Program);
    }

    /// Something has come for a connection that nobody has: whoever sends it is told.
    pub(crate) fn refuse_late(&mut self, number: u32) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        if connection.left_until.is_some() && connection.socket().recv_queue() > 0 {
            connection.socket_mut().abort();
        }
    }

    /// What its program has chosen, from now on. Buffers stay as they were made.
    pub fn set_manner(&mut self, id: ConnectionId, now: Nanos, manner: &Manner) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.manner = *manner;
            manner.apply(connection.socket_mut());
            self.settle(id.0, now, Cause::Program);
        }
    }

    /// Whether all that was sent has got there, its end included, or never will.
    pub fn is_delivered(&self, id: ConnectionId) -> bool {
        self.get(id).is_none_or(|socket| {
            let waits = matches!(socket.state(), State::FinWait1 | State::Closing | State::LastAck);
            socket.send_queue() == 0 && !waits || socket.state() == State::Closed
        })
    }

    /// A packet of a connection came back.
    pub(crate) fn came_back(&mut self, tuple: &Tuple, failure: Failure, now: Nanos) {
        let Some(number) = self.by_tuple.get(tuple).copied() else { return };
        let Some(connection) = self.connections.get_mut(number) else { return };
        // Only one that is not there yet ends: the others go on trying (RFC 1122, 4.2.3.9).
        if connection.socket().state() == State::SynSent && failure != Failure::TooLong {
            connection.failure = Some(failure);
            connection.socket_mut().abort();
            self.settle(number, now, Cause::Frame);
        }
    }

    /// Each connection, for who shows them.
    pub fn each_connection(&self, mut visit: impl FnMut(Tuple, u8, usize, usize)) {
        for (number, connection) in self.connections.iter() {
            let socket = connection.socket();
            let state = self.state_number(ConnectionId(number));
            visit(connection.tuple, state, socket.send_queue(), socket.recv_queue());
        }
    }
}

/// Why a connection is closed that was in `state`.
fn failure(state: State, cause: Cause) -> Option<Failure> {
    match (state, cause) {
        (State::TimeWait | State::LastAck | State::Closing | State::Closed | State::Listen, _) => None,
        (_, Cause::Program) => None,
        (_, Cause::Time) => Some(Failure::TimedOut),
        (State::SynSent, Cause::Frame) => Some(Failure::Refused),
        (State::CloseWait, Cause::Frame) => Some(Failure::Broken),
        (_, Cause::Frame) => Some(Failure::Reset),
    }
}
