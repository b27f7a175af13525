//! Who listens at a port, and the connections that wait to be accepted there.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};
use core::ops::Bound;

use machine::{Nanos, NoMemory, TryQueue};

use crate::connection::ConnectionId;
use crate::stack::Stack;
use crate::{News, Tuple, Watcher};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerId(pub(crate) u32);

/// Connections of one listener at most that have begun and are not established. Of more the oldest is forgotten.
const HALF_OPEN_MOST: usize = 256;

pub(crate) struct Listener {
    port: u16,
    /// `None`: at all addresses of its families.
    address: Option<IpAddr>,
    hears_4: bool,
    hears_6: bool,
    backlog: usize,
    half_open: VecDeque<u32>,
    ready: VecDeque<u32>,
    watcher: Arc<dyn Watcher>,
}

impl Listener {
    fn hears(&self, at: IpAddr) -> bool {
        let family = if at.is_ipv4() { self.hears_4 } else { self.hears_6 };
        family && self.address.is_none_or(|own| own == at)
    }
}

impl Stack {
    /// Listens at a port, at one address or all; `[4, 6]` says which families.
    pub fn listen(
        &mut self,
        address: Option<IpAddr>,
        port: u16,
        [hears_4, hears_6]: [bool; 2],
        backlog: usize,
        watcher: Arc<dyn Watcher>,
    ) -> Result<ListenerId, NoMemory> {
        let (half_open, ready) = (VecDeque::new(), VecDeque::new());
        let listener = Listener { port, address, hears_4, hears_6, backlog, half_open, ready, watcher };
        let number = self.listeners.add(listener)?;
        if let Err(error) = self.by_port.try_insert((port, number), ()) {
            self.listeners.remove(number);
            return Err(error);
        }
        Ok(ListenerId(number))
    }

    pub fn set_backlog(&mut self, id: ListenerId, backlog: usize) {
        if let Some(listener) = self.listeners.get_mut(id.0) {
            listener.backlog = backlog;
        }
    }

    /// Who hears what comes for this address; one that named it before one that hears all.
    fn listener_at(&self, at: SocketAddr) -> Option<ListenerId> {
        let first = (at.port(), 0);
        let of_port = self.by_port.range(Bound::Included(&first)).map(|(key, ())| *key);
        let hears = of_port.take_while(|(port, _)| *port == at.port()).filter_map(|(_, number)| {
            let listener = self.listeners.get(number).filter(|listener| listener.hears(at.ip()))?;
            Some((listener.address.is_some(), number))
        });
        hears.max_by_key(|(is_named, _)| *is_named).map(|(_, number)| ListenerId(number))
    }

    /// A first segment for these numbers: the connection that shall hear it, if somebody listens. Error: it is not to be answered now.
    pub(crate) fn begin(&mut self, tuple: Tuple, now: Nanos) -> Result<Option<u32>, ()> {
        let Some(id) = self.listener_at(tuple.local) else { return Ok(None) };
        let Some(listener) = self.listeners.get_mut(id.0) else { return Ok(None) };
        if listener.ready.len() > listener.backlog
            || listener.half_open.room_for(1).is_err()
            || listener.ready.room_for(HALF_OPEN_MOST.min(listener.half_open.len() + 1)).is_err()
        {
            return Err(());
        }
        let oldest = if listener.half_open.len() < HALF_OPEN_MOST { None } else { listener.half_open.front().copied() };
        if let Some(oldest) = oldest {
            self.drop_connection(oldest);
        }
        let number = self.open_for(id, tuple, now).map_err(|_| ())?;
        if let Some(listener) = self.listeners.get_mut(id.0) {
            listener.half_open.put_back(number);
        }
        Ok(Some(number))
    }

    /// A connection that had begun has ended.
    pub(crate) fn half_open_ended(&mut self, id: ListenerId, number: u32) {
        if let Some(listener) = self.listeners.get_mut(id.0) {
            listener.half_open.retain(|other| *other != number);
        }
    }

    /// A connection waits to be accepted.
    pub(crate) fn established(&mut self, number: u32) {
        let Some(id) = self.connections.get_mut(number).and_then(|connection| connection.listener.take()) else {
            return;
        };
        self.half_open_ended(id, number);
        let Some(listener) = self.listeners.get_mut(id.0) else { return };
        // There was asked for room when it began.
        if listener.ready.try_push_back(number).is_ok() {
            listener.watcher.changed(News { arrived: true, departed: false });
        }
    }

    /// The connection that has waited longest, without taking it.
    pub fn first_ready(&self, id: ListenerId) -> Option<ConnectionId> {
        self.listeners.get(id.0)?.ready.front().copied().map(ConnectionId)
    }

    /// Takes it.
    pub fn accept(&mut self, id: ListenerId) -> Option<ConnectionId> {
        self.listeners.get_mut(id.0)?.ready.pop_front().map(ConnectionId)
    }

    /// Nobody listens any more: those that wait are told.
    pub fn unlisten(&mut self, id: ListenerId, now: Nanos) {
        let Some(listener) = self.listeners.remove(id.0) else { return };
        self.by_port.remove(&(listener.port, id.0));
        for number in listener.half_open.into_iter().chain(listener.ready) {
            self.abort(ConnectionId(number), now);
        }
    }
}
