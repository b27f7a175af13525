//! Sockets of datagrams: UDP, and the messages of ICMP.

mod delivery;
mod errors;
mod sums;

pub use errors::{Errors, Returned};

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::net::{IpAddr, SocketAddr};

use ::net::{Binding, Claim, Failure, Header, Lost, Packet, SenderId, Tuple};
use abi::Errno;
use machine::{KernelCell, KernelValue, Nanos, NoMemory, TryGrow, TryQueue, try_arc_cyclic, try_filled, try_to_vec};

use super::address::meant;
use super::events::Events;
use super::options::Options;
use super::stream::Show;
use super::{LOOPBACK, Network, nowhere, number_of, number_of_port};
use crate::charge::{Held, Kept};
use crate::schedule::WaitQueue;
use crate::stream::{Io, Progress, Ready, SocketRecord, Stream, UserRange};
use sums::{sum_of, sum_with, udp_header};

/// The longest datagram.
const MOST_BYTES: usize = 65_507;
/// Datagrams that wait at most, however small they are: with what Linux counts for the smallest, its default buffer has room for so many.
const MESSAGES_MAX: usize = 278;
/// What Linux counts for each beside its bytes.
const OVERHEAD: usize = 768;
const HEADER_BYTES: usize = 8;

/// What a socket of datagrams speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Udp,
    /// Echoes of ICMP, as an ordinary user may send them: the port is the identifier.
    Echo,
    /// All messages of this protocol, with their headers where IP 4 is spoken.
    Raw(u8),
}

/// What has come.
#[derive(Debug)]
pub struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub header: Header,
    /// Since the machine began.
    pub came: Nanos,
    pub bytes: Vec<u8>,
}

pub struct Udp {
    me: Weak<Udp>,
    network: &'static Network,
    pub protocol: Protocol,
    is_6: bool,
    local: KernelValue<Option<SocketAddr>>,
    /// The program named the address.
    is_named: KernelValue<bool>,
    remote: KernelValue<Option<SocketAddr>>,
    binding: KernelValue<Option<Binding>>,
    inbox: KernelCell<VecDeque<Datagram>>,
    inbox_bytes: KernelValue<usize>,
    sender: KernelValue<Option<SenderId>>,
    pub options: KernelValue<Options>,
    pub events: Arc<Events>,
    /// What came back, for who looks there.
    pub errors: Errors,
    ended: KernelValue<[bool; 2]>,
    record: SocketRecord,
}

impl Udp {
    pub fn new(
        network: &'static Network,
        protocol: Protocol,
        is_6: bool,
        (user, group): (u32, u32),
    ) -> Result<Arc<Udp>, NoMemory> {
        let events = Events::new(network.scheduler)?;
        let options = Options { user, ..Options::default() };
        let udp = try_arc_cyclic(|me| Udp {
            me: me.clone(),
            network,
            protocol,
            is_6,
            local: KernelValue::new(None),
            is_named: KernelValue::new(false),
            remote: KernelValue::new(None),
            binding: KernelValue::new(None),
            inbox: KernelCell::new(VecDeque::new()),
            inbox_bytes: KernelValue::new(0),
            sender: KernelValue::new(None),
            options: KernelValue::new(options),
            events,
            errors: Errors::new(),
            ended: KernelValue::new([false; 2]),
            record: SocketRecord::new(user, group),
        })?;
        if protocol != Protocol::Udp {
            let mut messages = network.messages.borrow_mut();
            messages.retain(|socket| socket.strong_count() > 0);
            messages.try_push(udp.me.clone())?;
        }
        Ok(udp)
    }

    pub fn counted(&self) -> Option<Arc<Udp>> {
        self.me.upgrade()
    }

    pub fn is_6(&self) -> bool {
        self.is_6
    }

    pub fn local(&self) -> SocketAddr {
        self.local.get().unwrap_or(nowhere(self.is_6))
    }

    pub fn remote(&self) -> Option<SocketAddr> {
        self.remote.get()
    }

    pub fn is_bound(&self) -> bool {
        self.local.get().is_some()
    }

    pub fn show(&self) -> Show {
        let (_, user, _) = self.record.ownership.get();
        let remote = self.remote.get().unwrap_or(nowhere(self.is_6));
        let state = if self.remote.get().is_some() { 1 } else { 7 };
        let unread = self.inbox_bytes.get();
        Show { local: self.local(), remote, state, unsent: 0, unread, user, number: self.record.number }
    }

    /// Errors: `EINVAL` for one that has an address, `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn bind(&self, at: SocketAddr) -> Result<(), Errno> {
        let options = self.options.get();
        self.network.check_bindable(at.ip(), &options)?;
        if self.local.get().is_some() && self.protocol == Protocol::Udp {
            return Err(Errno::EINVAL);
        }
        if at.port() == 0 && options.binds_no_port && self.protocol == Protocol::Udp {
            self.local.set(Some(at));
        } else {
            self.take_port(at)?;
        }
        self.is_named.set(!at.ip().is_unspecified());
        Ok(())
    }

    fn take_port(&self, at: SocketAddr) -> Result<(), Errno> {
        let port = match self.protocol {
            Protocol::Udp => {
                let mut datagrams = self.network.datagrams.borrow_mut();
                let bound = datagrams.bind(self.options.get().claim(at), self.network.random(), self.me.clone());
                let binding = bound.map_err(number_of_port)?;
                self.binding.set(Some(binding));
                binding.port
            }
            Protocol::Echo if at.port() == 0 => self.network.random() as u16 | 1,
            Protocol::Echo => at.port(),
            Protocol::Raw(_) => 0,
        };
        self.local.set(Some(SocketAddr::new(at.ip(), port)));
        Ok(())
    }

    fn bind_somewhere(&self) -> Result<(), Errno> {
        let has_port = self.binding.get().is_some() || self.protocol != Protocol::Udp && self.local.get().is_some();
        if has_port { Ok(()) } else { self.take_port(self.local()) }
    }

    pub fn options_changed(&self) {
        let options = self.options.get();
        if let Some(binding) = self.binding.get() {
            self.network.datagrams.borrow_mut().amend(binding, |claim| options.amend(claim));
        }
    }

    /// Datagrams go there from now on, and come from there alone; `None`: from all. Errors: `ENETUNREACH`, `EACCES`.
    pub fn connect(&self, to: Option<SocketAddr>) -> Result<(), Errno> {
        let Some(to) = to else {
            self.remote.set(None);
            if !self.is_named.get()
                && let Some(local) = self.local.get()
            {
                self.local.set(Some(SocketAddr::new(nowhere(self.is_6).ip(), local.port())));
            }
            return Ok(());
        };
        let to = SocketAddr::new(meant(to.ip()), to.port());
        self.permit_broadcast(to.ip())?;
        let source = self.network.source_for(to.ip())?;
        self.network.check_way(to.ip(), &self.options.get())?;
        self.bind_somewhere()?;
        if !self.is_named.get() {
            self.local.set(Some(SocketAddr::new(source, self.local().port())));
        }
        self.remote.set(Some(to));
        Ok(())
    }

    /// Error: `EACCES` for an address of many, for who did not say that it means it.
    fn permit_broadcast(&self, to: IpAddr) -> Result<(), Errno> {
        let is_broadcast = || match to {
            IpAddr::V4(address) if address.is_broadcast() => true,
            to => !to.is_loopback() && self.network.uplink().is_some_and(|uplink| uplink.is_broadcast(to)),
        };
        if self.options.get().broadcasts || !is_broadcast() { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// What the next call finds (`SO_ERROR`); it does not any more.
    pub fn take_error(&self) -> Option<Errno> {
        self.events.error.take()
    }

    /// Sends to `to`, or to whom it is connected. Errors: `EDESTADDRREQ`, `EMSGSIZE`, `EPIPE`, `ENETUNREACH`, `EAGAIN`, `EINTR`, and
    /// what came back of earlier ones.
    pub fn send(&self, io: &Io<'_>, bytes: &[u8], to: Option<SocketAddr>) -> Result<usize, Errno> {
        self.send_by(io, bytes, to, &self.options.get(), None)
    }

    /// The same with other options for this datagram alone, and perhaps from another address. Errors: also `EINVAL`.
    pub fn send_by(
        &self,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<SocketAddr>,
        options: &Options,
        source: Option<IpAddr>,
    ) -> Result<usize, Errno> {
        if source.is_some_and(|source| !self.network.is_own(source)) {
            return Err(Errno::EINVAL);
        }
        if bytes.len() > MOST_BYTES {
            return Err(Errno::EMSGSIZE);
        }
        if self.ended.get()[1] {
            return Err(Errno::EPIPE);
        }
        let to = to.or(self.remote.get()).ok_or(Errno::EDESTADDRREQ)?;
        if to.port() == 0 && self.protocol == Protocol::Udp {
            return Err(Errno::EINVAL);
        }
        let to = SocketAddr::new(meant(to.ip()), to.port());
        self.permit_broadcast(to.ip())?;
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        self.network.check_way(to.ip(), options)?;
        self.bind_somewhere()?;
        let own = source.unwrap_or(self.local().ip());
        let source = if own.is_unspecified() { self.network.source_for(to.ip()) } else { Ok(own) };
        if self.network.is_own(to.ip()) {
            self.send_here(bytes, source?, to, options)?;
        } else {
            self.send_far(io, bytes, source.unwrap_or(own), to, options)?;
        }
        Ok(bytes.len())
    }

    /// To somebody on this machine: no packet exists.
    fn send_here(&self, bytes: &[u8], source: IpAddr, to: SocketAddr, options: &Options) -> Result<(), Errno> {
        self.network.note_looped(bytes.len());
        let from = SocketAddr::new(source, self.local().port());
        match self.protocol {
            Protocol::Udp => {
                let header = Header { hops: options.hops, service: options.service };
                if !self.network.deliver(LOOPBACK, from, to, header, bytes) {
                    self.network.datagram_lost(&refused(from, to), to.ip(), bytes);
                }
            }
            Protocol::Echo | Protocol::Raw(_) => {
                self.network.echo_here(from, to.ip(), &self.message(bytes, source, to.ip())?)
            }
        }
        Ok(())
    }

    /// A message of ICMP as it goes: with its identifier, and its sum.
    fn message(&self, bytes: &[u8], source: IpAddr, to: IpAddr) -> Result<Vec<u8>, Errno> {
        let mut message = try_to_vec(bytes)?;
        if message.len() < HEADER_BYTES {
            return if self.protocol == Protocol::Echo { Err(Errno::EINVAL) } else { Ok(message) };
        }
        if self.protocol == Protocol::Echo {
            message[4..6].copy_from_slice(&self.local().port().to_be_bytes());
            message[2..4].fill(0);
        }
        if self.protocol == Protocol::Echo || self.is_6 {
            message[2..4].fill(0);
            let sum = if self.is_6 { sum_with(&message, source, to, 58) } else { sum_of(0, &message) };
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(message)
    }

    fn send_far(
        &self,
        io: &Io<'_>,
        bytes: &[u8],
        source: IpAddr,
        to: SocketAddr,
        options: &Options,
    ) -> Result<(), Errno> {
        let uplink = self.network.uplink().ok_or(Errno::ENETUNREACH)?;
        let sender = match self.sender.get() {
            Some(sender) => sender,
            None => {
                let events = self.events.clone();
                let sender = uplink.with_stack(|stack, _| stack.open_sender(events))?;
                self.sender.set(Some(sender));
                sender
            }
        };
        let hops = if to.ip().is_multicast() { options.multicast_hops } else { options.hops };
        let (header, message);
        let (protocol, parts): (u8, [&[u8]; 2]) = match self.protocol {
            Protocol::Udp => {
                header = udp_header(SocketAddr::new(source, self.local().port()), to, bytes, options.sends_no_sums);
                (17, [&header[..], bytes])
            }
            Protocol::Echo => {
                message = self.message(bytes, source, to.ip())?;
                (if self.is_6 { 58 } else { 1 }, [&message, &[]])
            }
            Protocol::Raw(protocol) => {
                message = self.message(bytes, source, to.ip())?;
                (protocol, [&message, &[]])
            }
        };
        let (marks, priority) = (options.marks(), options.priority);
        let packet = Packet { from: source, to: to.ip(), protocol, hops, marks, priority, parts };
        let deadline = io.deadline(options.send_timeout);
        loop {
            match uplink.with_stack(|stack, now| stack.send_packet(sender, now, &packet)) {
                Err(::net::Failure::Full) => io.wait_until(&self.events.writable, deadline)?,
                other => return other.map_err(number_of),
            }
        }
    }

    /// The next datagram, up to `room` bytes of it, and its true length; with `peek` it stays.
    ///
    /// Errors: `EAGAIN`, `EINTR`, what came back of those that were sent, `ENOMEM`.
    pub fn receive(&self, io: &Io<'_>, room: usize, peek: bool) -> Result<(Datagram, usize), Errno> {
        let deadline = io.deadline(self.options.get().receive_timeout);
        loop {
            if let Some(error) = self.take_error() {
                return Err(error);
            }
            if let Some(datagram) = self.take(room, peek)? {
                return Ok(datagram);
            }
            if self.ended.get()[0] {
                let nobody = nowhere(self.is_6);
                let header = Header { hops: 0, service: 0 };
                return Ok((Datagram { from: nobody, to: nobody, header, came: Nanos(0), bytes: Vec::new() }, 0));
            }
            io.wait_until(&self.events.readable, deadline)?;
        }
    }

    fn take(&self, room: usize, peek: bool) -> Result<Option<(Datagram, usize)>, NoMemory> {
        let mut inbox = self.inbox.borrow_mut();
        let Some(first) = inbox.front() else { return Ok(None) };
        let whole = first.bytes.len();
        if peek {
            let bytes = try_to_vec(&first.bytes[..whole.min(room)])?;
            return Ok(Some((Datagram { bytes, ..*first }, whole)));
        }
        let Some(mut first) = inbox.pop_front() else { return Ok(None) };
        self.inbox_bytes.set(self.inbox_bytes.get().saturating_sub(whole + OVERHEAD));
        first.bytes.truncate(room);
        Ok(Some((first, whole)))
    }

    /// Puts what has come where it waits, if there is room.
    fn put(&self, from: SocketAddr, to: SocketAddr, header: Header, bytes: &[u8]) {
        let mut inbox = self.inbox.borrow_mut();
        let held = self.inbox_bytes.get();
        let room = self.options.get().receive_bytes();
        let is_full = inbox.len() >= MESSAGES_MAX.max(room / 1024) || held > 0 && held + bytes.len() + OVERHEAD > room;
        if is_full || self.ended.get()[0] {
            return;
        }
        // Who has no memory loses what comes, as the wire would.
        let Ok(copy) = try_to_vec(bytes) else { return };
        if inbox.try_push_back(Datagram { from, to, header, came: self.network.now(), bytes: copy }).is_ok() {
            drop(inbox);
            self.inbox_bytes.set(held + bytes.len() + OVERHEAD);
            self.events.arrived();
        }
    }

    /// Ends reading, writing or both. Error: `ENOTCONN`.
    pub fn shut_down(&self, reads: bool, writes: bool) -> Result<(), Errno> {
        if self.remote.get().is_none() {
            return Err(Errno::ENOTCONN);
        }
        let [no_reads, no_writes] = self.ended.get();
        self.ended.set([no_reads || reads, no_writes || writes]);
        self.events.changed();
        Ok(())
    }

    /// How well a datagram from `from` to `to` fits; `None`: not at all.
    fn fits(&self, interface: u32, from: SocketAddr, to: SocketAddr, claim: &Claim) -> Option<u32> {
        if claim.interface != 0 && claim.interface != interface {
            return None;
        }
        let family = claim.families[usize::from(to.is_ipv6())];
        let is_named = match claim.address {
            Some(address) if address == to.ip() => true,
            Some(_) => return None,
            None => false,
        };
        let local = self.local().ip();
        if !family && !is_named || !local.is_unspecified() && !is_named && local != to.ip() && !to.ip().is_multicast() {
            return None;
        }
        let is_for_peer = match self.remote.get() {
            Some(remote) if remote == from => true,
            Some(_) => return None,
            None => false,
        };
        Some(u32::from(is_named) + 2 * u32::from(is_for_peer))
    }
}

/// Nobody on this machine hears it: what a message of ICMP would say.
fn refused(local: SocketAddr, remote: SocketAddr) -> Lost {
    let [kind, code] = if remote.is_ipv6() { [1, 4] } else { [3, 3] };
    Lost { tuple: Tuple { local, remote }, is_tcp: false, failure: Failure::Refused, kind, code }
}

impl Stream for Udp {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.inbox.borrow().front().map_or(0, |first| first.bytes.len()))
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let (datagram, _) = self.receive(io, to.bytes, false)?;
        io.copy_out(to.address, &datagram.bytes)?;
        Ok(datagram.bytes.len())
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut bytes = try_filled(0, from.bytes.min(MOST_BYTES + 1))?;
        io.copy_in(from.address, &mut bytes)?;
        self.send(io, &bytes, None)
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let (datagram, _) = self.receive(io, into.len(), false)?;
        into[..datagram.bytes.len()].copy_from_slice(&datagram.bytes);
        Ok(datagram.bytes.len())
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        self.send(io, from, None)
    }

    fn ready(&self) -> Ready {
        let [no_reads, no_writes] = self.ended.get();
        let sender = self.sender.get();
        let has_room = || {
            let uplink = self.network.uplink();
            sender.zip(uplink).is_none_or(|(sender, uplink)| uplink.ask(|stack| stack.sender_has_room(sender)))
        };
        Ready::NONE
            .with_if(!self.inbox.borrow().is_empty() || no_reads, Ready::READABLE)
            .with_if(no_reads, Ready::READ_HANG_UP)
            .with_if(no_reads && no_writes, Ready::HANG_UP)
            .with_if(has_room(), Ready::WRITABLE)
            .with_if(self.events.error.get().is_some() || self.errors.has_some(), Ready::ERROR)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.events.readable);
        visit(&self.events.writable);
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.events.progress())
    }

    fn held(&self) -> Held {
        let sender = if self.sender.get().is_some() { 34_000 } else { 0 };
        Held::new(Kept::Sockets, size_of::<Udp>() + size_of::<Events>() + self.inbox_bytes.get() + sender)
    }

    fn socket(&self) -> Option<&SocketRecord> {
        Some(&self.record)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        if let Some(binding) = self.binding.get() {
            drop(self.network.datagrams.borrow_mut().release(binding));
        }
        if let (Some(sender), Some(uplink)) = (self.sender.get(), self.network.uplink()) {
            uplink.with_stack(|stack, _| stack.close_sender(sender));
        }
    }
}
