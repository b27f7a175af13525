//! Who listens at a port, and the connections that wait to be accepted there.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::IpAddr;
use core::ops::Bound;

use machine::{Nanos, NoMemory, TryQueue};

use crate::connection::ConnectionId;
use crate::manner::Manner;
use crate::ports::share_of;
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
    /// Of connections that come.
    pub manner: Manner,
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
        manner: &Manner,
    ) -> Result<ListenerId, NoMemory> {
        let (half_open, ready) = (VecDeque::new(), VecDeque::new());
        let listener =
            Listener { port, address, hears_4, hears_6, backlog, half_open, ready, watcher, manner: *manner };
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

    /// What its program has chosen, for connections that come from now on.
    pub fn set_listener_manner(&mut self, id: ListenerId, manner: &Manner) {
        if let Some(listener) = self.listeners.get_mut(id.0) {
            listener.manner = *manner;
        }
    }

    /// Who hears what comes for this address; those that named it before those that hear all. Of several that share it each hears a part
    /// of those who call.
    fn listener_at(&self, tuple: &Tuple) -> Option<ListenerId> {
        let at = tuple.local;
        let first = (at.port(), 0);
        let hears = |is_named: bool| {
            let of_port = self.by_port.range(Bound::Included(&first)).map(|(key, ())| *key);
            of_port.take_while(|(port, _)| *port == at.port()).map(|(_, number)| number).filter(move |number| {
                self.listeners
                    .get(*number)
                    .is_some_and(|listener| listener.hears(at.ip()) && listener.address.is_some() == is_named)
            })
        };
        let is_named = hears(true).next().is_some();
        let count = hears(is_named).count();
        let chosen = (count > 0).then(|| share_of(tuple.remote) as usize % count)?;
        hears(is_named).nth(chosen).map(ListenerId)
    }

    /// A first segment for these numbers: the connection that shall hear it, if somebody listens. Error: it is not to be answered now.
    pub(crate) fn begin(&mut self, tuple: Tuple, now: Nanos) -> Result<Option<u32>, ()> {
        let Some(id) = self.listener_at(&tuple) else { return Ok(None) };
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
