//! The stack of one link.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use machine::{Link, Nanos, NoMemory, Ordered, TryGrow, TryQueue, try_box, try_filled};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address, Ipv6Address};

use crate::classify::{Kind, Message, Part, classify};
use crate::connection::{Cause, Connection};
use crate::listener::Listener;
use crate::port::{FRAME_BYTES_MAX, Port, capabilities};
use crate::sender::Sender;
use crate::slab::Slab;
use crate::timers::{Timers, Who};
use crate::{Header, Lost, Tuple};

/// Who gets what belongs to no connection.
pub trait Receiver {
    /// A datagram. False: nobody wants it.
    fn datagram(&self, tuple: Tuple, header: Header, payload: &[u8]) -> bool;
    /// A message of ICMP: the whole packet, and the message in it.
    fn message(&self, from: IpAddr, to: IpAddr, hops: u8, packet: &[u8], body: &[u8]);
    /// A datagram of ours did not get there.
    fn lost(&self, lost: &Lost, from: IpAddr);
}

/// How the link is used.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// With the lengths of their networks.
    pub addresses: &'a [(IpAddr, u8)],
    pub gateways: &'a [IpAddr],
    /// Asks for an address.
    pub dhcp: bool,
}

/// What came of sending.
pub(crate) struct Sent {
    pub count: usize,
    pub frames: usize,
    pub is_full: bool,
    pub next: Option<Nanos>,
}

pub struct Stack {
    pub(crate) link: &'static dyn Link,
    pub(crate) interface: Box<Interface>,
    pub(crate) scratch: Box<[u8; FRAME_BYTES_MAX]>,
    base: SocketSet<'static>,
    dhcp: Option<SocketHandle>,
    base_at: Option<Nanos>,
    pub(crate) connections: Slab<Connection>,
    pub(crate) by_tuple: Ordered<Tuple, u32>,
    pub(crate) listeners: Slab<Listener>,
    pub(crate) by_port: Ordered<(u16, u32), ()>,
    pub(crate) senders: Slab<Sender>,
    timers: Timers,
    /// Who found no room on the link.
    stalled: VecDeque<Who>,
    /// Connections that nobody has and that only wait for their time, in their order.
    pub(crate) ended: VecDeque<u32>,
    pub(crate) has_sent: bool,
    resolvers: Vec<IpAddr>,
}

fn instant(now: Nanos) -> Instant {
    Instant::from_micros((now.0 / 1000) as i64)
}

/// Room for a frame, which is never on the stack.
fn scratch() -> Result<Box<[u8; FRAME_BYTES_MAX]>, NoMemory> {
    let bytes = try_filled(0, FRAME_BYTES_MAX)?.into_boxed_slice();
    Ok(bytes.try_into().expect("as many bytes as were asked for"))
}

/// The address that follows from the link's own (RFC 4291, appendix A).
fn link_local([a, b, c, d, e, f]: [u8; 6]) -> Ipv6Address {
    let two = u16::from_be_bytes;
    Ipv6Address::new(0xFE80, 0, 0, 0, two([a ^ 2, b]), two([c, 0xFF]), two([0xFE, d]), two([e, f]))
}

/// When it is looked again at what would be done at once and could not.
const SOON: u64 = 10_000_000;
/// So many that wait for a neighbour are looked at when one is found.
const LOOKED_AT: usize = 64;
/// How long smoltcp waits before it asks for a neighbour again.
const ASKS_AGAIN: u64 = 1_000_000_000;

impl Stack {
    #[inline(never)]
    pub fn new(link: &'static dyn Link, seed: u64, now: Nanos) -> Result<Stack, NoMemory> {
        let mut scratch = scratch()?;
        let address = link.address();
        let mut config = Config::new(EthernetAddress(address).into());
        config.random_seed = seed;
        config.slaac = true;
        let mut port = Port::new(link, &mut scratch);
        let mut interface = try_box(Interface::new(config, &mut port, instant(now)))?;
        // smoltcp asks for routers from this address, and relies on it.
        let own = IpCidr::new(IpAddr::from(link_local(address)).into(), 64);
        interface.update_ip_addrs(|addresses| {
            // There is room for eight.
            let _ = addresses.push(own);
        });
        let mut storage = Vec::new();
        storage.room_for_exact(1)?;
        storage.put(SocketStorage::EMPTY);
        let mut ended = VecDeque::new();
        TryQueue::room_for(&mut ended, 64)?;
        let mut resolvers = Vec::new();
        resolvers.room_for_exact(4)?;
        debug_assert!(capabilities(link).max_transmission_unit > 14);
        Ok(Stack {
            link,
            interface,
            scratch,
            base: SocketSet::new(storage),
            dhcp: None,
            base_at: None,
            connections: Slab::new(),
            by_tuple: Ordered::new(),
            listeners: Slab::new(),
            by_port: Ordered::new(),
            senders: Slab::new(),
            timers: Timers::new(),
            stalled: VecDeque::new(),
            ended,
            has_sent: false,
            resolvers,
        })
    }

    /// Gives the link its addresses.
    pub fn set_up(&mut self, settings: &Settings<'_>, now: Nanos) -> Result<(), NoMemory> {
        self.interface.update_ip_addrs(|addresses| {
            for (address, length) in settings.addresses {
                let most = if address.is_ipv4() { 32 } else { 128 };
                let cidr = IpCidr::new((*address).into(), (*length).min(most));
                if cidr.address().is_unicast() {
                    // Those that find no room are left out.
                    let _ = addresses.push(cidr);
                }
            }
        });
        let routes = self.interface.routes_mut();
        for gateway in settings.gateways {
            // There is room for both.
            let _ = match gateway {
                IpAddr::V4(gateway) => routes.add_default_ipv4_route(*gateway),
                IpAddr::V6(gateway) => routes.add_default_ipv6_route(*gateway),
            };
        }
        if settings.dhcp && self.dhcp.is_none() {
            self.dhcp = Some(self.base.add(dhcpv4::Socket::new()));
        }
        self.settle_base(now);
        Ok(())
    }

    /// The link's addresses, with the lengths of their networks.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        self.interface.ip_addrs().iter().map(|cidr| (cidr.address().into(), cidr.prefix_len()))
    }

    pub fn has_address(&self, address: IpAddr) -> bool {
        self.addresses().any(|(own, _)| own == address)
    }

    /// Where packets for far away go first.
    pub fn gateways(&self) -> impl Iterator<Item = IpAddr> {
        let routes = self.interface.routes();
        let routes = [routes.get_default_ipv4_route(), routes.get_default_ipv6_route()];
        routes.into_iter().flatten().map(|route| route.via_router.into())
    }

    /// Who knows names, as the link's DHCP server says.
    pub fn resolvers(&self) -> &[IpAddr] {
        &self.resolvers
    }

    /// Whether a packet for `to` gets there without a router.
    pub fn is_near(&self, to: IpAddr) -> bool {
        let is_near = |(own, length): (IpAddr, u8)| IpCidr::new(own.into(), length).contains_addr(&to.into());
        self.addresses().any(is_near)
    }

    /// Whether a packet for `to` would go somewhere.
    pub fn reaches(&self, to: IpAddr) -> bool {
        let is_wide = match to {
            IpAddr::V4(to) => to.is_broadcast() || to.is_multicast(),
            IpAddr::V6(to) => to.is_multicast() || to.is_unicast_link_local(),
        };
        is_wide || self.is_near(to) || self.gateways().any(|gateway| gateway.is_ipv4() == to.is_ipv4())
    }

    /// Which of the link's addresses a packet for `to` comes from.
    pub fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        match to {
            IpAddr::V4(to) => self.interface.get_source_address_ipv4(&to).map(Ipv4Address::into),
            IpAddr::V6(to) => {
                let source: Ipv6Address = self.interface.get_source_address_ipv6(&to);
                (!source.is_unspecified() && !source.is_loopback()).then(|| source.into())
            }
        }
    }

    /// Whether it is an address to all in a network of the link.
    pub fn is_broadcast(&self, to: IpAddr) -> bool {
        let IpAddr::V4(to) = to else { return false };
        let of_network = self.interface.ip_addrs().iter().any(|cidr| match cidr {
            IpCidr::Ipv4(cidr) => cidr.broadcast() == Some(to),
            IpCidr::Ipv6(_) => false,
        });
        to.is_broadcast() || of_network
    }

    /// Sends what a set of sockets may send, at most `most` times.
    pub(crate) fn flush(
        interface: &mut Interface,
        mut port: Port<'_>,
        sockets: &mut SocketSet<'static>,
        now: Nanos,
        most: usize,
    ) -> Sent {
        let mut is_done = false;
        for _ in 0..most {
            is_done = interface.poll_egress(instant(now), &mut port, sockets) == PollResult::None;
            if is_done {
                break;
            }
        }
        let (count, frames, is_full) = (port.sent, port.frames, port.is_full);
        if is_full {
            return Sent { count, frames, is_full, next: None };
        }
        let next = interface.poll_at(instant(now), sockets);
        let next = next.map(|at| Nanos((at.total_micros().max(0) as u64).saturating_mul(1000)));
        // Who could not do it now can in a while.
        let soonest = if is_done { now.0.saturating_add(SOON) } else { now.0 };
        let next = next.map(|at| if at <= now { Nanos(soonest) } else { at });
        Sent { count, frames, is_full, next }
    }

    pub(crate) fn set_time(&mut self, who: Who, at: Option<Nanos>) {
        let place = match who {
            Who::Base => Some(&mut self.base_at),
            Who::Connection(number) => self.connections.get_mut(number).map(|connection| &mut connection.at),
            Who::Sender(number) => self.senders.get_mut(number).map(|sender| &mut sender.at),
        };
        if let Some(place) = place {
            self.timers.set(who, place, at);
        }
    }

    /// Whoever it is goes on when there is room.
    pub(crate) fn note_stalled(&mut self, who: Who) {
        self.stalled.put_back(who);
    }

    /// Room for one more that may wait for the link.
    pub(crate) fn make_room_to_stall(&mut self) -> Result<(), NoMemory> {
        let most = self.connections.len() + self.senders.len() + 1;
        let missing = most.saturating_sub(self.stalled.len());
        TryQueue::room_for(&mut self.stalled, missing)
    }

    pub(crate) fn no_longer_stalled(&mut self, who: Who) {
        self.stalled.retain(|other| *other != who);
    }

    fn settle_base(&mut self, now: Nanos) {
        self.interface.poll_maintenance(instant(now));
        self.take_lease();
        let port = Port::new(self.link, &mut self.scratch);
        let sent = Stack::flush(&mut self.interface, port, &mut self.base, now, 8);
        self.has_sent |= sent.frames > 0;
        self.set_time(Who::Base, sent.next);
    }

    /// What the DHCP server says.
    fn take_lease(&mut self) {
        let Some(handle) = self.dhcp else { return };
        let Some(event) = self.base.get_mut::<dhcpv4::Socket<'_>>(handle).poll() else { return };
        let lease = match event {
            dhcpv4::Event::Configured(lease) => Some((lease.address, lease.router, lease.dns_servers)),
            dhcpv4::Event::Deconfigured => None,
        };
        self.interface.update_ip_addrs(|addresses| {
            addresses.retain(|cidr| matches!(cidr, IpCidr::Ipv6(_)));
            if let Some((address, ..)) = lease.as_ref().filter(|(address, ..)| !address.address().is_multicast()) {
                let _ = addresses.push(IpCidr::Ipv4(*address));
            }
        });
        self.interface.routes_mut().remove_default_ipv4_route();
        self.resolvers.clear();
        let Some((_, router, servers)) = lease else { return };
        if let Some(router) = router {
            let _ = self.interface.routes_mut().add_default_ipv4_route(router);
        }
        // There is room for four.
        servers.iter().take(4).for_each(|server| self.resolvers.put((*server).into()));
    }

    /// A frame has come; nothing is owed for it. `is_checked`: its sums are right.
    pub fn frame(&mut self, now: Nanos, frame: &[u8], is_checked: bool, receiver: &dyn Receiver) {
        match classify(frame, is_checked) {
            Kind::Tcp { tuple, part } => self.segment(now, frame, tuple, part),
            Kind::Udp { tuple, header, payload } => self.datagram(now, frame, tuple, header, &frame[payload], receiver),
            Kind::Icmp(message, lost) => self.message(now, frame, &message, lost, receiver),
            Kind::Neighbours => {
                self.give_base(now, frame);
                self.look_at_waiting(now);
            }
            Kind::Other => self.give_base(now, frame),
            Kind::Damaged => {}
        }
    }

    /// Shows the frame to smoltcp without a connection.
    fn give_base(&mut self, now: Nanos, frame: &[u8]) {
        let mut port = Port { incoming: Some(frame), ..Port::new(self.link, &mut self.scratch) };
        self.interface.poll_ingress_single(instant(now), &mut port, &mut self.base);
        self.has_sent = true;
        self.settle_base(now);
    }

    fn segment(&mut self, now: Nanos, frame: &[u8], tuple: Tuple, part: Part) {
        let is_opening = part == Part::Opens;
        if !self.has_address(tuple.local.ip()) {
            return;
        }
        let mut known = self.by_tuple.get(&tuple).copied();
        // Another one may begin where one is over.
        if let Some(number) = known.filter(|number| is_opening && self.is_over(*number)) {
            self.drop_connection(number);
            known = None;
        }
        let number = match known {
            Some(number) => Some(number),
            None if is_opening => match self.begin(tuple, now) {
                Ok(number) => number,
                // As if it were lost: it comes again.
                Err(()) => return,
            },
            None => None,
        };
        let Some(connection) = number.and_then(|number| self.connections.get_mut(number)) else {
            self.give_base(now, frame);
            return;
        };
        if let Part::Acknowledges(number) = part
            && connection.waits_for_last(number)
        {
            return;
        }
        connection.hears(now);
        let marks = connection.manner.marks;
        let mut port = Port { incoming: Some(frame), marks, ..Port::new(self.link, &mut self.scratch) };
        port.sent_to = Some(&mut connection.sent_to);
        self.interface.poll_ingress_single(instant(now), &mut port, &mut connection.sockets);
        self.has_sent |= port.frames > 0;
        if let Some(number) = number {
            self.refuse_late(number);
            self.settle(number, now, Cause::Frame);
        }
    }

    fn datagram(
        &mut self,
        now: Nanos,
        frame: &[u8],
        tuple: Tuple,
        header: Header,
        payload: &[u8],
        receiver: &dyn Receiver,
    ) {
        const DHCP_CLIENT: u16 = 68;
        let to = tuple.local;
        let is_lease = self.dhcp.is_some() && to.port() == DHCP_CLIENT;
        // The base tells the sender that nobody hears.
        let is_unheard =
            || self.is_for_us(to) && !receiver.datagram(tuple, header, payload) && !self.is_broadcast(to.ip());
        if is_lease || is_unheard() {
            self.give_base(now, frame);
        }
    }

    fn is_for_us(&self, to: SocketAddr) -> bool {
        self.has_address(to.ip()) || self.is_broadcast(to.ip()) || to.ip().is_multicast()
    }

    fn message(&mut self, now: Nanos, frame: &[u8], message: &Message, lost: Option<Lost>, receiver: &dyn Receiver) {
        let Message { from, to, hops, packet, body } = message;
        if self.has_address(*to) {
            match lost {
                Some(lost) if lost.is_tcp => self.came_back(&lost.tuple, lost.failure, now),
                Some(lost) => receiver.lost(&lost, *from),
                None => {}
            }
            receiver.message(*from, *to, *hops, &frame[packet.clone()], &frame[body.clone()]);
        }
        // It answers who asks for an echo.
        self.give_base(now, frame);
    }

    fn look_at(&mut self, who: Who, now: Nanos, cause: Cause) {
        match who {
            Who::Base => self.settle_base(now),
            Who::Connection(number) => self.settle(number, now, cause),
            Who::Sender(number) => self.settle_sender(number, now),
        }
    }

    /// A neighbour was found, perhaps: who waits for one goes on.
    fn look_at_waiting(&mut self, now: Nanos) {
        let mut waiting = [Who::Base; LOOKED_AT];
        let count = self.timers.due_until(Nanos(now.0.saturating_add(ASKS_AGAIN)), &mut waiting);
        for who in &waiting[..count] {
            self.look_at(*who, now, Cause::Frame);
        }
    }

    /// When somebody must look again.
    pub fn next(&self) -> Option<Nanos> {
        self.timers.next()
    }

    /// Does what is due, at most `most` times.
    pub fn run_timers(&mut self, now: Nanos, most: usize) {
        for _ in 0..most {
            let Some(who) = self.timers.due(now) else { return };
            // Who does not set a time anew has none.
            self.set_time(who, None);
            self.look_at(who, now, Cause::Time);
        }
    }

    /// Whether somebody waits for room on the link.
    pub fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// The link has room: who waited for it goes on.
    pub fn go_on(&mut self, now: Nanos) {
        for _ in 0..self.stalled.len() {
            if !self.link.has_room() {
                return;
            }
            let Some(who) = self.next_stalled() else { return };
            match who {
                Who::Connection(number) => {
                    if let Some(connection) = self.connections.get_mut(number) {
                        connection.is_stalled = false;
                    }
                }
                Who::Sender(number) => {
                    if let Some(sender) = self.senders.get_mut(number) {
                        sender.is_stalled = false;
                    }
                }
                Who::Base => {}
            }
            self.look_at(who, now, Cause::Program);
        }
    }

    /// Who waits for the link with the highest priority; of several the one who has waited longest.
    fn next_stalled(&mut self) -> Option<Who> {
        let priority = |who: &Who| match who {
            Who::Base => u32::MAX,
            Who::Connection(number) => self.connections.get(*number).map_or(0, |connection| connection.manner.priority),
            Who::Sender(number) => self.senders.get(*number).map_or(0, |sender| sender.priority),
        };
        let first = self.stalled.iter().enumerate().rev().max_by_key(|(_, who)| priority(who)).map(|(at, _)| at)?;
        self.stalled.remove(first)
    }

    /// Tells the link of what was sent since this was last called.
    pub fn tell_link(&mut self) {
        if core::mem::take(&mut self.has_sent) {
            self.link.tell();
        }
    }

    /// Connections, listeners and senders that there are.
    pub fn counts(&self) -> [usize; 3] {
        [self.connections.len(), self.listeners.len(), self.senders.len()]
    }
}
