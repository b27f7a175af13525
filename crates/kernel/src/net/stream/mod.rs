//! A stream of the internet families, as it stands to its program.

mod bytes;
mod connecting;
mod cork;

pub use cork::Corks;

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::SocketAddr;

use ::net::{Binding, Claim, ConnectionId, ListenerId, Phase};
use abi::Errno;
use machine::{KernelCell, KernelValue, Nanos, NoMemory, TryQueue, try_arc_cyclic};

use super::events::Events;
use super::options::Options;
use super::way::Way;
use super::{Network, nowhere, number_of, number_of_port};
use crate::stream::{Io, SocketRecord};

/// Connections that may wait to be accepted at most (Linux's `somaxconn`).
const BACKLOG_MOST: usize = 4096;

/// A connection with somebody on this machine: what comes, and what goes.
#[derive(Clone)]
struct Joined {
    peer: Weak<Tcp>,
    inbound: Arc<Way>,
    outbound: Arc<Way>,
}

enum State {
    Idle,
    Listening {
        backlog: usize,
        ready: VecDeque<Arc<Tcp>>,
        pending: VecDeque<Weak<Tcp>>,
        far: Option<ListenerId>,
    },
    /// It waits until somebody who listens on this machine has room for it.
    Pending,
    Joined(Joined),
    Far(ConnectionId),
    /// The connection is over.
    Over,
}

/// What a program has heard of its call `connect`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    /// That it goes on without the program.
    InProgress,
    Connected,
}

/// What is shown of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Linux's number.
    pub state: u8,
    pub unsent: usize,
    pub unread: usize,
    pub user: u32,
    pub number: u64,
}

pub struct Tcp {
    me: Weak<Tcp>,
    network: &'static Network,
    /// Of which family it was made.
    is_6: bool,
    state: KernelCell<State>,
    told: KernelValue<Told>,
    local: KernelValue<Option<SocketAddr>>,
    remote: KernelValue<Option<SocketAddr>>,
    binding: KernelValue<Option<Binding>>,
    /// The program chose the port.
    is_bound: KernelValue<bool>,
    pub options: KernelValue<Options>,
    pub events: Arc<Events>,
    reads_ended: KernelValue<bool>,
    writes_ended: KernelValue<bool>,
    is_nonblocking: KernelValue<bool>,
    /// What was received and did not find room at the program: it comes before all else.
    kept: KernelCell<Vec<u8>>,
    /// What was written and waits for more, or for the end of its time.
    corked: KernelCell<Vec<u8>>,
    corked_until: KernelValue<Nanos>,
    record: SocketRecord,
}

impl Tcp {
    pub fn new(network: &'static Network, is_6: bool, user: u32, group: u32) -> Result<Arc<Tcp>, NoMemory> {
        let events = Events::new(network.scheduler)?;
        let options = Options { user, ..Options::default() };
        try_arc_cyclic(|me| Tcp {
            me: me.clone(),
            network,
            is_6,
            state: KernelCell::new(State::Idle),
            told: KernelValue::new(Told::Nothing),
            local: KernelValue::new(None),
            remote: KernelValue::new(None),
            binding: KernelValue::new(None),
            is_bound: KernelValue::new(false),
            options: KernelValue::new(options),
            events,
            reads_ended: KernelValue::new(false),
            writes_ended: KernelValue::new(false),
            is_nonblocking: KernelValue::new(false),
            kept: KernelCell::new(Vec::new()),
            corked: KernelCell::new(Vec::new()),
            corked_until: KernelValue::new(Nanos(0)),
            record: SocketRecord::new(user, group),
        })
    }

    pub fn counted(&self) -> Option<Arc<Tcp>> {
        self.me.upgrade()
    }

    pub fn is_6(&self) -> bool {
        self.is_6
    }

    pub fn local(&self) -> SocketAddr {
        self.local.get().unwrap_or(nowhere(self.is_6))
    }

    /// Whom it is connected to.
    pub fn remote(&self) -> Option<SocketAddr> {
        let is_connected = match &*self.state.borrow() {
            State::Joined(_) => true,
            State::Far(id) => self.far(|stack, _| stack.phase(*id)) == Some(Phase::Open),
            _ => false,
        };
        self.remote.get().filter(|_| is_connected)
    }

    /// The program knows that it is connected.
    pub fn is_connected(&self) -> bool {
        self.told.get() == Told::Connected
    }

    /// Who has connected, also where the connection is over.
    pub fn caller(&self) -> SocketAddr {
        self.remote.get().unwrap_or(nowhere(self.is_6))
    }

    pub fn is_listening(&self) -> bool {
        matches!(*self.state.borrow(), State::Listening { .. })
    }

    /// Does something with the link's stack.
    fn far<R>(&self, act: impl FnOnce(&mut ::net::Stack, Nanos) -> R) -> Option<R> {
        self.network.uplink().map(|uplink| uplink.with_stack(act))
    }

    fn far_id(&self) -> Option<ConnectionId> {
        match &*self.state.borrow() {
            State::Far(id) => Some(*id),
            _ => None,
        }
    }

    fn joined(&self) -> Option<Joined> {
        match &*self.state.borrow() {
            State::Joined(joined) => Some(joined.clone()),
            _ => None,
        }
    }

    /// Takes an address and a port. Errors: `EINVAL` for one that has one, `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn bind(&self, at: SocketAddr) -> Result<(), Errno> {
        let options = self.options.get();
        self.network.check_bindable(at.ip(), &options)?;
        if self.local.get().is_some() || !matches!(*self.state.borrow(), State::Idle) {
            return Err(Errno::EINVAL);
        }
        if at.port() == 0 && options.binds_no_port {
            self.local.set(Some(at));
        } else {
            self.take_port(at)?;
        }
        self.is_bound.set(true);
        Ok(())
    }

    fn take_port(&self, at: SocketAddr) -> Result<(), Errno> {
        let bound = self.network.streams.borrow_mut().bind(
            self.options.get().claim(at),
            self.network.random(),
            self.me.clone(),
        );
        let binding = bound.map_err(number_of_port)?;
        self.binding.set(Some(binding));
        self.local.set(Some(SocketAddr::new(at.ip(), binding.port)));
        Ok(())
    }

    fn give_port_back(&self) {
        if let Some(binding) = self.binding.take() {
            drop(self.network.streams.borrow_mut().release(binding));
        }
    }

    /// What was said before of options stays true when they change.
    pub fn options_changed(&self) {
        let options = self.options.get();
        if let Some(binding) = self.binding.get() {
            self.network.streams.borrow_mut().amend(binding, |claim| options.amend(claim));
        }
        let listener = match &*self.state.borrow() {
            State::Listening { far, .. } => *far,
            _ => None,
        };
        self.far_listener(listener, |stack, id| stack.set_listener_manner(id, &options.manner()));
        if let Some(id) = self.far_id() {
            self.far(|stack, now| stack.set_manner(id, now, &options.manner()));
        }
        if let Some(joined) = self.joined() {
            joined.outbound.set_room(self.options.get().send_buffer);
            joined.inbound.set_reader_room(self.options.get().receive_buffer);
        }
        self.leave_to_rust();
        // Being quick sends what waits, and not what comes later (tcp(7)).
        if !options.is_corked || options.is_quick {
            self.uncork();
        }
    }

    /// The routines of the rings know neither times nor amounts to wait for.
    pub(super) fn leave_to_rust(&self) {
        let Some(joined) = self.joined() else { return };
        let options = self.options.get();
        let is_kept = !self.kept.borrow().is_empty();
        joined
            .inbound
            .hold_reads(self.reads_ended.get() || is_kept || options.receive_timeout.0 > 0 || options.low_water > 1);
        joined.outbound.hold_writes(options.is_corked || options.send_timeout.0 > 0);
    }

    /// Errors: `EINVAL` for one that is connected, `EADDRINUSE`.
    pub fn listen(&self, backlog: usize) -> Result<(), Errno> {
        let backlog = backlog.min(BACKLOG_MOST);
        match &mut *self.state.borrow_mut() {
            State::Listening { backlog: old, far, .. } => {
                *old = backlog;
                let far = *far;
                self.far_listener(far, |stack, id| stack.set_backlog(id, backlog));
                return Ok(());
            }
            State::Idle => {}
            _ => return Err(Errno::EINVAL),
        }
        if self.binding.get().is_none() {
            self.take_port(self.local())?;
        }
        let Some(binding) = self.binding.get() else { return Err(Errno::EINVAL) };
        self.network.streams.borrow_mut().listen(binding).map_err(number_of_port)?;
        let local = self.local();
        let address = Some(local.ip()).filter(|address| !address.is_unspecified());
        let is_reached = address.is_none_or(|address| !address.is_loopback());
        let options = self.options.get();
        let Claim { families, .. } = options.claim(local);
        let manner = options.manner();
        let far = if is_reached {
            self.far(|stack, _| stack.listen(address, local.port(), families, backlog, self.events.clone(), &manner))
        } else {
            None
        };
        let far = far.transpose()?;
        let (ready, pending) = (VecDeque::new(), VecDeque::new());
        *self.state.borrow_mut() = State::Listening { backlog, ready, pending, far };
        self.events.changed();
        Ok(())
    }

    fn far_listener<R>(
        &self,
        id: Option<ListenerId>,
        act: impl FnOnce(&mut ::net::Stack, ListenerId) -> R,
    ) -> Option<R> {
        let id = id?;
        self.far(|stack, _| act(stack, id))
    }

    /// The connection that has waited longest; it waits until [`Tcp::accepted`]. Errors: `EINVAL`, `EAGAIN`, `EINTR`, `ENOMEM`.
    pub fn next_connection(&self, io: &Io<'_>) -> Result<Arc<Tcp>, Errno> {
        let deadline = io.deadline(self.options.get().receive_timeout);
        loop {
            if let Some(connection) = self.first_ready()? {
                return Ok(connection);
            }
            io.wait_until(&self.events.readable, deadline)?;
        }
    }

    fn first_ready(&self) -> Result<Option<Arc<Tcp>>, Errno> {
        let far = match &*self.state.borrow() {
            State::Listening { ready, far, .. } => match ready.front() {
                Some(first) => return Ok(Some(first.clone())),
                None => *far,
            },
            _ => return Err(Errno::EINVAL),
        };
        let Some(id) = self.far_listener(far, |stack, id| stack.first_ready(id)).flatten() else { return Ok(None) };
        let Some([local, remote]) = self.network.uplink().and_then(|uplink| uplink.tuple(id)) else { return Ok(None) };
        let connection = self.heir(local, remote)?;
        if let State::Listening { ready, .. } = &mut *self.state.borrow_mut() {
            TryQueue::room_for(ready, 1)?;
            ready.put_back(connection.clone());
        }
        self.far_listener(far, |stack, listener| stack.accept(listener));
        self.far(|stack, _| stack.watch(id, connection.events.clone()));
        *connection.state.borrow_mut() = State::Far(id);
        connection.options_changed();
        Ok(Some(connection))
    }

    /// A socket for a connection that is accepted here.
    fn heir(&self, local: SocketAddr, remote: SocketAddr) -> Result<Arc<Tcp>, NoMemory> {
        let (_, user, group) = self.record.ownership.get();
        let heir = Tcp::new(self.network, self.is_6, user, group)?;
        heir.options.set(self.options.get());
        heir.local.set(Some(local));
        heir.remote.set(Some(remote));
        heir.told.set(Told::Connected);
        Ok(heir)
    }

    /// The connection has a descriptor; one that waits for room here has it now.
    pub fn accepted(&self) {
        let next = match &mut *self.state.borrow_mut() {
            State::Listening { ready, pending, .. } => {
                drop(ready.pop_front());
                pending.pop_front()
            }
            _ => None,
        };
        if let Some(client) = next.and_then(|client| client.upgrade())
            && matches!(*client.state.borrow(), State::Pending)
            && client.join(self).is_err()
        {
            client.give_up(Errno::ECONNREFUSED);
        }
    }

    /// What the next call finds (`SO_ERROR`); it does not any more.
    pub fn take_error(&self) -> Option<Errno> {
        let far = self.far_id().and_then(|id| self.far(|stack, _| stack.take_failure(id)).flatten());
        self.events.error.take().or(far.map(number_of))
    }

    fn has_error(&self) -> bool {
        let far = || self.far_id().is_some_and(|id| self.far(|stack, _| stack.failure(id)).flatten().is_some());
        self.events.error.get().is_some() || far()
    }

    /// Ends reading, writing or both. Error: `ENOTCONN`.
    pub fn shut_down(&self, reads: bool, writes: bool) -> Result<(), Errno> {
        if reads && self.is_listening() {
            self.stop_listening();
            return Ok(());
        }
        match &*self.state.borrow() {
            State::Joined(_) | State::Far(_) => {}
            _ => {
                // It is noted all the same, as on Linux.
                self.reads_ended.set(self.reads_ended.get() || reads);
                self.writes_ended.set(self.writes_ended.get() || writes);
                return Err(Errno::ENOTCONN);
            }
        }
        if reads {
            self.reads_ended.set(true);
            self.leave_to_rust();
        }
        if writes && !self.writes_ended.get() {
            self.uncork();
            self.writes_ended.set(true);
            if let Some(joined) = self.joined() {
                joined.outbound.end();
            } else if let Some(id) = self.far_id() {
                self.far(|stack, now| stack.end_writes(id, now));
            }
        }
        self.events.changed();
        Ok(())
    }

    fn stop_listening(&self) {
        let state = core::mem::replace(&mut *self.state.borrow_mut(), State::Idle);
        let State::Listening { ready, pending, far, .. } = state else { return };
        if let Some(binding) = self.binding.get() {
            self.network.streams.borrow_mut().amend(binding, |claim| claim.is_listening = false);
        }
        if let Some(far) = far {
            self.far(|stack, now| stack.unlisten(far, now));
        }
        for connection in &ready {
            // Nobody has accepted it, and nobody will.
            if let Some(peer) = connection.joined().and_then(|joined| joined.peer.upgrade()) {
                peer.reset_by_peer();
            }
        }
        for client in pending.iter().filter_map(Weak::upgrade) {
            client.give_up(Errno::ECONNREFUSED);
        }
        self.events.changed();
    }

    /// The other side has forgotten the connection.
    fn reset_by_peer(&self) {
        if let Some(joined) = self.joined() {
            joined.inbound.end();
            joined.outbound.deafen();
            // What has come can still be read; then the error is found.
            if joined.inbound.fill() == 0 {
                *self.state.borrow_mut() = State::Over;
            }
            self.events.fail(Errno::ECONNRESET);
        }
    }

    /// The program leaves its connection.
    fn hang_up(&self) {
        let is_abrupt = self.options.get().linger == Some(0) || !self.kept.borrow().is_empty();
        self.kept.borrow_mut().clear();
        if !is_abrupt {
            self.uncork();
        }
        if self.is_listening() {
            self.stop_listening();
        }
        if let Some(id) = self.far_id() {
            self.far(|stack, now| if is_abrupt { stack.abort(id, now) } else { stack.close(id, now) });
        }
        let Some(joined) = self.joined() else { return };
        *self.state.borrow_mut() = State::Over;
        let is_unread = joined.inbound.fill() > 0;
        joined.inbound.deafen();
        match joined.peer.upgrade() {
            Some(peer) if is_abrupt || is_unread => peer.reset_by_peer(),
            _ => joined.outbound.end(),
        }
    }

    pub fn show(&self) -> Show {
        let state = match &*self.state.borrow() {
            State::Listening { .. } => 10,
            State::Joined(joined) => match (joined.inbound.is_ended(), self.writes_ended.get()) {
                (false, false) => 1,
                (false, true) => 5,
                (true, false) => 8,
                (true, true) => 6,
            },
            State::Pending => 2,
            State::Far(id) => self.far(|stack, _| stack.state_number(*id)).unwrap_or(7),
            State::Idle | State::Over => 7,
        };
        let (_, user, _) = self.record.ownership.get();
        let remote = self.remote.get().unwrap_or(nowhere(self.is_6));
        let (unsent, unread) = (self.unsent(), self.unread());
        Show { local: self.local(), remote, state, unsent, unread, user, number: self.record.number }
    }

    /// Room to write.
    fn has_room(&self) -> bool {
        match &*self.state.borrow() {
            State::Joined(joined) => joined.outbound.is_deaf() || joined.outbound.has_much_room(),
            State::Far(id) => self
                .far(|stack, _| stack.room(*id))
                .flatten()
                .is_none_or(|room| room > room_least(self.options.get().send_buffer)),
            State::Pending => false,
            _ => true,
        }
    }
}

/// Bytes of room from which on one that is far away is written to.
fn room_least(send_buffer: Option<u32>) -> usize {
    send_buffer.map_or(2048, |bytes| bytes as usize / 6).min(2048)
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.hang_up();
        self.give_port_back();
    }
}
