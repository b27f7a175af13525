//! What programs set of a socket.

use core::net::SocketAddr;

use ::net::{Claim, KeepAlive, Manner, Marks};
use machine::Nanos;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub reuses_address: bool,
    pub reuses_port: bool,
    pub broadcasts: bool,
    pub keeps_alive: bool,
    pub is_quick: bool,
    pub is_corked: bool,
    /// Each segment that comes is acknowledged at once, or not; `None`: nobody has said.
    pub acknowledges_at_once: Option<bool>,
    /// A socket of IP 6 that hears nobody of IP 4.
    pub only_6: bool,
    pub out_of_band_inline: bool,
    /// Whether the receiver is told where a datagram came to, and its hops.
    pub tells_destination: bool,
    pub tells_hops: bool,
    pub tells_service: bool,
    /// How the receiver is told when a datagram came.
    pub stamp: Stamp,
    /// What comes back of datagrams waits in a queue of its own.
    pub queues_errors: bool,
    /// Only what is reached without a router.
    pub only_near: bool,
    pub sends_no_sums: bool,
    /// It may be bound to an address that nobody has.
    pub binds_anywhere: bool,
    /// Binding to an address takes no port yet.
    pub binds_no_port: bool,
    /// Linux's number of how the path's length is found out.
    pub path_discovery: u8,
    /// Seconds that closing waits, if it was set.
    pub linger: Option<u32>,
    pub receive_timeout: Nanos,
    pub send_timeout: Nanos,
    /// What it was set to, doubled, as Linux does; `None`: it was not.
    pub receive_buffer: Option<u32>,
    pub send_buffer: Option<u32>,
    pub low_water: u32,
    pub priority: u32,
    /// 0: by all interfaces.
    pub interface: u32,
    pub hops: u8,
    pub multicast_hops: u8,
    pub service: u8,
    /// Seconds and count of questions whether the other side is there.
    pub keep_idle: u32,
    pub keep_interval: u32,
    pub keep_count: u32,
    /// Milliseconds.
    pub user_timeout: u32,
    pub syn_count: u32,
    pub linger_2: u32,
    pub user: u32,
}

/// How the receiver of a datagram is told when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    Never,
    Micros,
    Nanos,
}

/// Bytes of a buffer that nobody has chosen.
pub const BUFFER_BYTES: u32 = 212_992;

impl Options {
    /// Bytes that may wait for the program, and bytes that it may have on their way.
    pub fn receive_bytes(&self) -> usize {
        self.receive_buffer.unwrap_or(BUFFER_BYTES) as usize
    }

    pub fn send_bytes(&self) -> usize {
        self.send_buffer.unwrap_or(BUFFER_BYTES) as usize
    }

    /// What a socket with these options claims of an address.
    pub(super) fn claim(&self, at: SocketAddr) -> Claim {
        let of_4 = at.is_ipv4() || at.ip().is_unspecified() && !self.only_6;
        Claim {
            address: Some(at.ip()).filter(|address| !address.is_unspecified()),
            port: at.port(),
            families: [of_4, at.is_ipv6()],
            reuses_address: self.reuses_address,
            reuses_port: self.reuses_port,
            user: self.user,
            interface: self.interface,
            is_listening: false,
        }
    }

    /// The claim of one that has a port follows its options.
    pub(super) fn amend(&self, claim: &mut Claim) {
        (claim.reuses_address, claim.reuses_port) = (self.reuses_address, self.reuses_port);
        claim.interface = self.interface;
    }

    pub(super) fn marks(&self) -> Marks {
        // `IP_PMTUDISC_DONT`, and `IP_PMTUDISC_OMIT`, which leaves it to others.
        Marks { service: self.service, is_whole: !matches!(self.path_discovery, 0 | 5) }
    }

    pub(super) fn manner(&self) -> Manner {
        let keep_alive = KeepAlive { idle: self.keep_idle, interval: self.keep_interval, count: self.keep_count };
        Manner {
            marks: self.marks(),
            hops: self.hops,
            collects: !self.is_quick,
            acknowledges_at_once: self.acknowledges_at_once == Some(true),
            keep_alive: self.keeps_alive.then_some(keep_alive),
            user_timeout: self.user_timeout,
            tries: self.syn_count,
            left_seconds: self.linger_2,
            priority: self.priority,
            // The program said half of it.
            receive_bytes: self.receive_buffer.map(|bytes| bytes / 2),
            send_bytes: self.send_buffer.map(|bytes| bytes / 2),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            reuses_address: false,
            reuses_port: false,
            broadcasts: false,
            keeps_alive: false,
            is_quick: false,
            is_corked: false,
            acknowledges_at_once: None,
            only_6: false,
            out_of_band_inline: false,
            tells_destination: false,
            tells_hops: false,
            tells_service: false,
            stamp: Stamp::Never,
            queues_errors: false,
            only_near: false,
            sends_no_sums: false,
            binds_anywhere: false,
            binds_no_port: false,
            path_discovery: 1,
            linger: None,
            receive_timeout: Nanos(0),
            send_timeout: Nanos(0),
            receive_buffer: None,
            send_buffer: None,
            low_water: 1,
            priority: 0,
            interface: 0,
            hops: 64,
            multicast_hops: 1,
            service: 0,
            keep_idle: 7200,
            keep_interval: 75,
            keep_count: 9,
            user_timeout: 0,
            syn_count: 6,
            linger_2: 60,
            user: 0,
        }
    }
}
