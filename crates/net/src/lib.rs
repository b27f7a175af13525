//! TCP/IP for a link: what stands between frames of an Ethernet and the bytes of connections. The protocols are smoltcp's
//! ([ADR 71](../../../docs/adr/0071-the-network.md)); which connection a frame is for, who listens, what waits to be accepted, and when
//! somebody must look again, is decided here.
//!
//! ```text
//!   frame ── classify ─┬─ the connection with these four numbers ── smoltcp, with this connection alone ── frames go
//!                      ├─ a SYN for a listener: a new connection
//!                      ├─ datagrams and messages of ICMP: whoever is the [`Receiver`]
//!                      └─ all else (ARP, NDP, DHCP, what nobody wants): smoltcp without a connection, which answers
//! ```
//! Must never know a kernel: time is a number that is handed in, the wire is a [`machine::Link`], and who waits is told by a
//! [`Watcher`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod classify;
mod connection;
mod listener;
mod manner;
mod port;
mod ports;
mod sender;
mod slab;
mod stack;
mod timers;

pub use classify::{Header, Lost};
pub use connection::{ConnectionId, Phase};
pub use listener::ListenerId;
pub use manner::{KeepAlive, Manner, Marks};
pub use ports::{Binding, Claim, PortError, Ports, share_of};
pub use sender::{Packet, SenderId};
pub use stack::{Receiver, Settings, Stack};

use core::net::SocketAddr;

/// Something has changed for who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// There is more to read, or there will never be more.
    pub arrived: bool,
    /// There is more room to write, or there will never be more.
    pub departed: bool,
}

/// Who is told of news. It must not come back to the stack from there.
pub trait Watcher: Send + Sync {
    fn changed(&self, news: News);
    /// A packet that was sent, or a connection, could not get there.
    fn failed(&self, failure: Failure);
}

/// Why something does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The other side does not want it.
    Refused,
    /// The other side has forgotten the connection.
    Reset,
    /// The same after it had said that it sends no more.
    Broken,
    TimedOut,
    /// Nobody with that address answers.
    HostUnreachable,
    /// No link leads there.
    NetUnreachable,
    /// It is longer than a packet may be.
    TooLong,
    /// There is no room now.
    Full,
    NoMemory,
}

/// The four numbers that name a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tuple {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}
