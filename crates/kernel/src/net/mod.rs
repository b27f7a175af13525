//! The network (S-104): streams and datagrams of the internet families. Two that are on this machine are joined by rings, and no packet
//! exists; others are reached through a link, whose TCP/IP is `crates/net` ([ADR 71](../../../../docs/adr/0071-the-network.md)).
//!
//! ```text
//!   Tcp ── Joined ── Way (rings, the pipe's routines) ── Tcp
//!   Tcp ── Far ─┐
//!   Udp ────────┴── Uplink: Stack (crates/net) ── Link: the device
//! ```

mod address;
mod backlog;
mod datagram;
mod events;
mod options;
mod stream;
mod uplink;
mod way;

pub use address::{is_local_only, is_unspecified};
pub use datagram::{Datagram, Protocol, Returned, Udp};
pub use options::{Options, Stamp};
pub use stream::{Show, Tcp};
pub use uplink::{Interface, Plan};

use alloc::sync::Weak;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use ::net::{Failure, PortError, Ports};
use abi::Errno;
use machine::{KernelCell, KernelOnce, KernelValue, Nanos};
use quaject::Makers;

use crate::schedule::Scheduler;
use uplink::Uplink;

/// Numbers of the interfaces.
const LOOPBACK: u32 = 1;
const LINK: u32 = 2;

/// All that sockets of the internet families share.
pub struct Network {
    pub scheduler: &'static Scheduler,
    makers: Option<Makers>,
    streams: KernelCell<Ports<Weak<Tcp>>>,
    datagrams: KernelCell<Ports<Weak<Udp>>>,
    /// Sockets that hear messages of ICMP.
    messages: KernelCell<Vec<Weak<Udp>>>,
    plan: Plan,
    /// Started when it is needed first; `None`: the machine has no link.
    uplink: KernelOnce<Option<&'static Uplink>>,
    /// Datagrams and bytes that crossed the loopback.
    looped: KernelValue<[u64; 2]>,
    corks: stream::Corks,
}

impl Network {
    pub fn new(scheduler: &'static Scheduler, makers: Option<Makers>, plan: Plan) -> Network {
        Network {
            scheduler,
            makers,
            streams: KernelCell::new(Ports::of_streams()),
            datagrams: KernelCell::new(Ports::of_datagrams()),
            messages: KernelCell::new(Vec::new()),
            plan,
            uplink: KernelOnce::new(),
            looped: KernelValue::new([0; 2]),
            corks: stream::Corks::new(),
        }
    }

    fn now(&self) -> Nanos {
        self.scheduler.machine().now()
    }

    fn random(&self) -> u32 {
        self.scheduler.machine().random() as u32
    }

    /// The link, started if nobody has used it yet.
    fn uplink(&'static self) -> Option<&'static Uplink> {
        if let Some(known) = self.uplink.get() {
            return *known;
        }
        let started = Uplink::start(self);
        // Nobody else has come meanwhile.
        let _ = self.uplink.set(started);
        started
    }

    /// A program uses the network: from now on it can be reached from outside.
    pub fn wake_up(&'static self) {
        self.uplink();
    }

    /// Interfaces beside the loopback.
    pub fn interface(&'static self) -> Option<Interface> {
        self.uplink().map(Uplink::interface)
    }

    /// What came and went by the loopback: packets, which do not exist, and bytes.
    pub fn looped(&self) -> [u64; 2] {
        self.looped.get()
    }

    fn note_looped(&self, bytes: usize) {
        let [packets, all] = self.looped.get();
        self.looped.set([packets + 1, all + bytes as u64]);
    }

    /// Whether what is sent to this address stays on this machine.
    pub fn is_own(&'static self, address: IpAddr) -> bool {
        is_local_only(address) || self.uplink().is_some_and(|uplink| uplink.has_address(address))
    }

    /// Whether something may be bound to this address. Error: `EADDRNOTAVAIL`.
    fn check_bindable(&'static self, address: IpAddr, options: &Options) -> Result<(), Errno> {
        let is_wide = address.is_multicast() || self.uplink().is_some_and(|uplink| uplink.is_broadcast(address));
        if options.binds_anywhere || is_unspecified(address) || self.is_own(address) || is_wide {
            Ok(())
        } else {
            Err(Errno::EADDRNOTAVAIL)
        }
    }

    /// Whether a socket with these options may send there: by its interface alone, and not by a router. Error: `ENETUNREACH`.
    fn check_way(&'static self, to: IpAddr, options: &Options) -> Result<(), Errno> {
        let interface = if self.is_own(to) { LOOPBACK } else { LINK };
        let is_others = options.interface != 0 && options.interface != interface;
        let is_near = || interface == LOOPBACK || self.uplink().is_some_and(|uplink| uplink.is_near(to));
        if is_others || options.only_near && !is_near() { Err(Errno::ENETUNREACH) } else { Ok(()) }
    }

    /// Which address of this machine what is sent to `to` comes from. Error: `ENETUNREACH`.
    fn source_for(&'static self, to: IpAddr) -> Result<IpAddr, Errno> {
        if self.is_own(to) {
            return Ok(to);
        }
        self.uplink().and_then(|uplink| uplink.source_for(to)).ok_or(Errno::ENETUNREACH)
    }

    /// Each stream that is bound, listens or is connected, for who shows them.
    pub fn each_stream(&'static self, visit: &mut dyn FnMut(Show)) {
        let all = machine::try_collect(self.streams.borrow().iter().filter_map(|(_, tcp)| tcp.upgrade()));
        all.unwrap_or_default().iter().for_each(|tcp| visit(tcp.show()));
        if let Some(uplink) = self.uplink.get().copied().flatten() {
            uplink.each_connection(visit);
        }
    }

    /// Each socket of datagrams with a port.
    pub fn each_datagram_socket(&'static self, visit: &mut dyn FnMut(Show)) {
        let all = machine::try_collect(self.datagrams.borrow().iter().filter_map(|(_, udp)| udp.upgrade()));
        all.unwrap_or_default().iter().for_each(|udp| visit(udp.show()));
    }

    /// Who knows names, as the link says.
    pub fn resolvers(&'static self) -> Vec<IpAddr> {
        self.uplink().map(Uplink::resolvers).unwrap_or_default()
    }
}

/// The number that stands for an error of the stack.
pub(crate) fn number_of(failure: Failure) -> Errno {
    match failure {
        Failure::Refused => Errno::ECONNREFUSED,
        Failure::Reset => Errno::ECONNRESET,
        Failure::Broken => Errno::EPIPE,
        Failure::TimedOut => Errno::ETIMEDOUT,
        Failure::HostUnreachable => Errno::EHOSTUNREACH,
        Failure::NetUnreachable => Errno::ENETUNREACH,
        Failure::TooLong => Errno::EMSGSIZE,
        Failure::Full => Errno::EAGAIN,
        Failure::NoMemory => Errno::ENOMEM,
    }
}

pub(crate) fn number_of_port(error: PortError) -> Errno {
    match error {
        PortError::InUse => Errno::EADDRINUSE,
        PortError::NoneLeft => Errno::EADDRNOTAVAIL,
        PortError::NoMemory => Errno::ENOMEM,
    }
}

/// An address that stands for nothing.
pub(crate) fn nowhere(is_6: bool) -> SocketAddr {
    let address =
        if is_6 { IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED) };
    SocketAddr::new(address, 0)
}
