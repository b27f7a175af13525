//! How a stream is connected.

use alloc::sync::Arc;
use core::net::SocketAddr;

use ::net::{Claim, Phase, Tuple, share_of};
use abi::Errno;
use machine::TryQueue;

use super::super::address::meant;
use super::super::way::Way;
use super::super::{Network, nowhere, number_of};
use super::{Joined, State, Tcp, Told};
use crate::stream::Io;

impl Tcp {
    /// The connection did not come about, or is over by force.
    pub(super) fn give_up(&self, error: Errno) {
        *self.state.borrow_mut() = State::Over;
        self.events.fail(error);
    }

    /// Connects. Errors: `EISCONN`, `EALREADY`, `EINPROGRESS`, `ECONNREFUSED`, `ENETUNREACH`, `EHOSTUNREACH`, `ETIMEDOUT`,
    /// `EADDRNOTAVAIL`, `EINTR`.
    pub fn connect(&self, io: &Io<'_>, to: SocketAddr) -> Result<(), Errno> {
        match self.told.get() {
            Told::Connected => return Err(Errno::EISCONN),
            Told::InProgress if self.is_opening() && io.is_nonblocking() => return Err(Errno::EALREADY),
            Told::InProgress => {}
            Told::Nothing if self.is_listening() => return Err(Errno::EISCONN),
            Told::Nothing => {
                let begun = self.begin(SocketAddr::new(meant(to.ip()), to.port()));
                // Who does not wait is told later, also where it is known at once.
                match begun {
                    Err(Errno::ECONNREFUSED) if io.is_nonblocking() => {
                        self.told.set(Told::InProgress);
                        self.give_up(Errno::ECONNREFUSED);
                        return Err(Errno::EINPROGRESS);
                    }
                    other => other?,
                }
                self.told.set(Told::InProgress);
                if io.is_nonblocking() {
                    return Err(Errno::EINPROGRESS);
                }
            }
        }
        self.finish_connecting(io)
    }

    pub(super) fn is_opening(&self) -> bool {
        match &*self.state.borrow() {
            State::Pending => true,
            State::Far(id) => self.far(|stack, _| stack.phase(*id)) == Some(Phase::Opening),
            _ => false,
        }
    }

    fn finish_connecting(&self, io: &Io<'_>) -> Result<(), Errno> {
        let deadline = io.deadline(self.options.get().send_timeout);
        while self.is_opening() {
            io.wait_until(&self.events.readable, deadline)
                .map_err(|error| if error == Errno::EAGAIN { Errno::EINPROGRESS } else { error })?;
        }
        if let Some(error) = self.take_error() {
            self.leave();
            return Err(error);
        }
        let is_there = matches!(*self.state.borrow(), State::Joined(_) | State::Far(_));
        if !is_there {
            self.leave();
            return Err(Errno::ECONNABORTED);
        }
        self.told.set(Told::Connected);
        Ok(())
    }

    /// It may be connected anew.
    pub(super) fn leave(&self) {
        if let Some(id) = self.far_id() {
            self.far(|stack, now| stack.abort(id, now));
        }
        *self.state.borrow_mut() = State::Idle;
        self.told.set(Told::Nothing);
        self.remote.set(None);
        self.reads_ended.set(false);
        self.writes_ended.set(false);
        if !self.is_bound.get() {
            self.give_port_back();
            self.local.set(None);
        }
    }

    /// Ends a connection, so that another one may begin (`AF_UNSPEC`).
    pub fn disconnect(&self) {
        self.hang_up();
        self.leave();
    }

    fn begin(&self, to: SocketAddr) -> Result<(), Errno> {
        if to.ip().is_multicast() {
            return Err(Errno::ENETUNREACH);
        }
        let source = match self.local.get().map(|local| local.ip()).filter(|address| !address.is_unspecified()) {
            Some(address) => address,
            None => self.network.source_for(to.ip())?,
        };
        self.network.check_way(to.ip(), &self.options.get())?;
        if source.is_loopback() != to.ip().is_loopback() && !self.network.is_own(to.ip()) {
            return Err(Errno::EINVAL);
        }
        let is_new = self.binding.get().is_none();
        if is_new {
            self.take_port(SocketAddr::new(source, 0))?;
        }
        let port = self.local().port();
        self.local.set(Some(SocketAddr::new(source, port)));
        self.remote.set(Some(to));
        let begun = if self.network.is_own(to.ip()) { self.call_here(to) } else { self.call_far(to) };
        begun.inspect_err(|_| self.leave())
    }

    fn call_far(&self, to: SocketAddr) -> Result<(), Errno> {
        let tuple = Tuple { local: self.local(), remote: to };
        let events = self.events.clone();
        let manner = self.options.get().manner();
        let made = self.far(|stack, now| stack.connect(now, tuple, Some(events), &manner)).ok_or(Errno::ENETUNREACH)?;
        let id = made.map_err(|failure| match failure {
            ::net::Failure::Refused => Errno::EADDRNOTAVAIL,
            other => number_of(other),
        })?;
        *self.state.borrow_mut() = State::Far(id);
        Ok(())
    }

    /// Somebody on this machine shall answer. Error: `ECONNREFUSED`.
    fn call_here(&self, to: SocketAddr) -> Result<(), Errno> {
        let listener = self.network.listener_at(to, self.local()).ok_or(Errno::ECONNREFUSED)?;
        let has_room = match &mut *listener.state.borrow_mut() {
            State::Listening { backlog, ready, pending, .. } => {
                let has_room = ready.len() <= *backlog;
                if !has_room {
                    pending.retain(|client| client.strong_count() > 0);
                    pending.try_push_back(self.me.clone())?;
                }
                has_room
            }
            _ => return Err(Errno::ECONNREFUSED),
        };
        if has_room {
            return self.join(&listener);
        }
        *self.state.borrow_mut() = State::Pending;
        Ok(())
    }

    /// Joins this socket with a new one that `listener` will give.
    pub(super) fn join(&self, listener: &Tcp) -> Result<(), Errno> {
        let (local, remote) = (self.local(), self.remote.get().unwrap_or(nowhere(self.is_6)));
        let server = listener.heir(remote, local)?;
        let there = Way::new(&self.events, &server.events)?;
        let back = Way::new(&server.events, &self.events)?;
        match &mut *listener.state.borrow_mut() {
            State::Listening { ready, .. } => ready.try_push_back(server.clone())?,
            _ => return Err(Errno::ECONNREFUSED),
        }
        let ours = Joined { peer: server.me.clone(), inbound: back.clone(), outbound: there.clone() };
        *server.state.borrow_mut() = State::Joined(Joined { peer: self.me.clone(), inbound: there, outbound: back });
        if self.is_nonblocking.get() {
            ours.inbound.does_not_wait();
        }
        *self.state.borrow_mut() = State::Joined(ours);
        self.options_changed();
        server.options_changed();
        self.events.changed();
        listener.events.arrived();
        Ok(())
    }
}

impl Network {
    /// Who listens at this address: those that named it before those that hear all. Of several that share it each hears a part of those
    /// who call.
    fn listener_at(&self, at: SocketAddr, caller: SocketAddr) -> Option<Arc<Tcp>> {
        let streams = self.streams.borrow();
        let family = usize::from(at.is_ipv6());
        let hears = |claim: &Claim| match claim.address {
            Some(address) => address == at.ip(),
            None => claim.families[family],
        };
        let all = || {
            streams.at(at.port()).filter(|(claim, tcp)| claim.is_listening && hears(claim) && tcp.strong_count() > 0)
        };
        let is_named = all().any(|(claim, _)| claim.address.is_some());
        let fitting = || all().filter(|(claim, _)| claim.address.is_some() == is_named);
        let chosen = share_of(caller) as usize % fitting().count().max(1);
        fitting().nth(chosen)?.1.upgrade()
    }
}
