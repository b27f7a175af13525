//! The local family, as the calls see it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{AF_UNIX, AF_UNSPEC, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, Ucred};
use kernel::net::Options;
use kernel::stream::Io;
use machine::{KernelValue, TryGrow, TryQueue, try_to_vec};

use super::family::{Family, Socket};
use super::inet::beside::stamp;
use super::names::{address_of, bind, name_in, name_itself, named};
use super::parcel::{Parcel, Received};
use super::unix::UnixSocket;
use crate::call::Call;

pub const FAMILY: Family = Family {
    number: AF_UNIX,
    make: |call, kind, protocol| Ok(make(call, kind, protocol)?),
    make_pair: |call, kind, protocol| {
        let (one, other) = (make(call, kind, protocol)?, make(call, kind, protocol)?);
        one.join(&other)?;
        Ok([one, other])
    },
    of: |stream| Some(stream.as_any().downcast_ref::<UnixSocket>()?.counted()?),
};

fn make(call: &Call<'_>, kind: u32, protocol: u32) -> Result<Arc<UnixSocket>, Errno> {
    if protocol != 0 && protocol != AF_UNIX.into() {
        return Err(Errno::EPROTONOSUPPORT);
    }
    let kind = match kind {
        SOCK_STREAM | SOCK_DGRAM | SOCK_SEQPACKET => kind,
        3 => SOCK_DGRAM, // Linux takes SOCK_RAW for datagrams here.
        _ => return Err(Errno::ESOCKTNOSUPPORT),
    };
    Ok(UnixSocket::new(call.unix, kind, owner(call))?)
}

fn owner(call: &Call<'_>) -> Ucred {
    let process = call.process();
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    Ucred { pid: process.pid as i32, uid: user.effective, gid: group.effective }
}

impl Socket for UnixSocket {
    fn domain(&self) -> u16 {
        AF_UNIX
    }

    fn kind(&self) -> u32 {
        self.kind
    }

    fn bind(&self, call: &Call<'_>, address: &[u8]) -> Result<(), Errno> {
        bind(call, self, name_in(address)?)
    }

    fn connect(&self, call: &Call<'_>, address: &[u8], nonblocking: bool) -> Result<(), Errno> {
        let is_unspecified = address.first_chunk().is_some_and(|family| u16::from_le_bytes(*family) == AF_UNSPEC);
        if self.kind == SOCK_DGRAM && is_unspecified {
            self.lead_nowhere();
            return Ok(());
        }
        let name = name_in(address)?;
        if self.passes_credentials.get() {
            name_itself(call, self)?;
        }
        let other = named(call, &name)?;
        if other.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if self.kind == SOCK_DGRAM { self.lead(&other) } else { self.connect_to(call, &other, nonblocking) }
    }

    fn listen(&self, call: &Call<'_>, backlog: usize) -> Result<(), Errno> {
        if self.kind == SOCK_DGRAM {
            return Err(Errno::ENOTSUP);
        }
        if self.name.borrow().is_empty() || self.standing.get().connected {
            return Err(Errno::EINVAL);
        }
        self.owner.set(owner(call));
        self.standing.borrow_mut().backlog = Some(backlog);
        Ok(())
    }

    fn is_listening(&self) -> bool {
        self.standing.get().backlog.is_some()
    }

    fn next_connection(&self, call: &Call<'_>, nonblocking: bool) -> Result<Arc<dyn Socket>, Errno> {
        if self.kind == SOCK_DGRAM {
            return Err(Errno::ENOTSUP);
        }
        if !self.is_listening() {
            return Err(Errno::EINVAL);
        }
        call.with_io(nonblocking, |io| self.await_connection(io)).map(|connection| connection as Arc<dyn Socket>)
    }

    fn accepted(&self, _call: &Call<'_>) {
        drop(self.waiting.borrow_mut().pop_front());
        self.changed();
    }

    fn check_writable(&self) -> Result<(), Errno> {
        self.check_writable()
    }

    fn send_to(
        &self,
        call: &Call<'_>,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<&[u8]>,
        parcel: Parcel,
    ) -> Result<usize, Errno> {
        let to = match to {
            Some(_) if self.kind != SOCK_DGRAM => {
                return Err(if self.standing.get().connected { Errno::EISCONN } else { Errno::ENOTSUP });
            }
            Some(address) => Some(named(call, &name_in(address)?)?),
            None => None,
        };
        if self.passes_credentials.get() {
            name_itself(call, self)?;
        }
        self.send(io, bytes, to.as_ref(), parcel)
    }

    /// A message is told to have come when it is received, as on Linux, which does not look at the clock before.
    fn receive(&self, call: &Call<'_>, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno> {
        let mut received = self.receive(io, room, peek)?;
        if !self.is_stream()
            && let Some(stamp) = stamp(call, &self.options.get(), io.machine().now())
        {
            received.beside.try_push(stamp)?;
        }
        Ok(received)
    }

    fn keep(&self, received: Received) {
        self.keep(received);
    }

    fn shut_down(&self, reads: bool, writes: bool) -> Result<(), Errno> {
        self.shut_down(reads, writes);
        Ok(())
    }

    fn address(&self) -> Result<Vec<u8>, Errno> {
        address_of(&self.name.borrow())
    }

    fn peer_address(&self) -> Result<Vec<u8>, Errno> {
        address_of(self.peer_name.borrow().as_ref().ok_or(Errno::ENOTCONN)?)
    }

    fn sender_of(&self, received: &Received) -> Result<Vec<u8>, Errno> {
        let peer = self.peer_name.borrow();
        let peer = if self.is_stream() { peer.as_deref() } else { None };
        match peer.unwrap_or(&received.from) {
            [] => Ok(Vec::new()),
            name => address_of(name),
        }
    }

    fn take_error(&self) -> Option<Errno> {
        self.error.take()
    }

    fn passes_credentials(&self) -> bool {
        self.passes_credentials.get()
    }

    fn pass_credentials(&self, passes: bool) -> Result<(), Errno> {
        self.passes_credentials.set(passes);
        self.options_changed();
        Ok(())
    }

    fn options(&self) -> &KernelValue<Options> {
        &self.options
    }

    /// Which bytes code may carry depends on both ends.
    fn options_changed(&self) {
        self.gate();
        if let Some(peer) = self.peer() {
            peer.gate();
        }
    }

    fn peer_owner(&self) -> Option<Ucred> {
        self.peer_owner.get()
    }
}

impl UnixSocket {
    /// Datagrams go to `other` from now on. Errors: `EPERM`, `ENOMEM`.
    fn lead(&self, other: &UnixSocket) -> Result<(), Errno> {
        if !other.hears(self) {
            return Err(Errno::EPERM);
        }
        // All that needs memory comes before the old peer is left.
        let name = try_to_vec(&other.name.borrow())?;
        self.lead_nowhere();
        self.lead_to(other, name);
        Ok(())
    }

    /// The connection that has waited longest. Errors: `EAGAIN`, `EINTR`.
    fn await_connection(&self, io: &Io<'_>) -> Result<Arc<UnixSocket>, Errno> {
        let deadline = io.deadline(self.options.get().receive_timeout);
        loop {
            let next = self.waiting.borrow().front().cloned();
            if let Some(connection) = next {
                connection.passes_credentials.set(self.passes_credentials.get());
                return Ok(connection);
            }
            io.wait_until(&self.readable, deadline)?;
        }
    }

    /// Sleeps while as many connections wait at `other` as may. Errors: `ECONNREFUSED`, `EAGAIN`, `EINTR`.
    fn await_place(&self, io: &Io<'_>, other: &UnixSocket) -> Result<(), Errno> {
        let deadline = io.deadline(self.options.get().send_timeout);
        loop {
            let backlog = other.standing.get().backlog.ok_or(Errno::ECONNREFUSED)?;
            if other.waiting.borrow().len() <= backlog {
                return Ok(());
            }
            io.wait_until(&other.writable, deadline)?;
        }
    }

    /// Joins the connections that wait at `other`.
    fn connect_to(&self, call: &Call<'_>, other: &UnixSocket, nonblocking: bool) -> Result<(), Errno> {
        if self.standing.get().connected {
            return Err(Errno::EISCONN);
        }
        if self.is_listening() {
            return Err(Errno::EINVAL);
        }
        call.with_io(nonblocking, |io| self.await_place(io, other))?;
        let server = UnixSocket::new(call.unix, self.kind, other.owner.get())?;
        *server.name.borrow_mut() = try_to_vec(&other.name.borrow())?;
        other.waiting.borrow_mut().room_for(1)?;
        self.join(&server)?;
        other.waiting.borrow_mut().try_push_back(server)?;
        other.changed();
        Ok(())
    }
}
