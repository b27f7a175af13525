//! How a connection or a sender goes about it: what its program has chosen.

use machine::Nanos;
use smoltcp::socket::tcp::Socket;
use smoltcp::time::Duration;
use smoltcp::wire::{EthernetFrame, EthernetProtocol, Ipv4Packet, Ipv6Packet};

use crate::port::ETHERNET_BYTES;

/// What the header of each packet says beside who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// The kind of service (RFC 2474), or the traffic class.
    pub service: u8,
    /// Nobody on the way may cut it into fragments.
    pub is_whole: bool,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { service: 0, is_whole: true }
    }
}

impl Marks {
    /// Writes them into a frame that is made without.
    pub(crate) fn put(self, frame: &mut [u8]) -> Option<()> {
        if self == Marks::default() {
            return Some(());
        }
        let ethertype = EthernetFrame::new_checked(&*frame).ok()?.ethertype();
        let packet = &mut frame[ETHERNET_BYTES..];
        match ethertype {
            EthernetProtocol::Ipv4 => {
                let mut packet = Ipv4Packet::new_checked(packet).ok()?;
                packet.set_dscp(self.service >> 2);
                packet.set_ecn(self.service & 3);
                packet.set_dont_frag(self.is_whole);
                packet.fill_checksum();
            }
            EthernetProtocol::Ipv6 => Ipv6Packet::new_checked(packet).ok()?.set_traffic_class(self.service),
            _ => {}
        }
        Some(())
    }
}

/// Questions whether a silent peer is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Seconds of silence before the first, and between two.
    pub idle: u32,
    pub interval: u32,
    /// So many without an answer end the connection.
    pub count: u32,
}

impl KeepAlive {
    fn seconds(count: u32) -> Duration {
        Duration::from_secs(count.max(1).into())
    }

    /// How long a silence is borne as a whole.
    pub(crate) fn whole(self) -> Duration {
        KeepAlive::seconds(self.idle.saturating_add(self.interval.saturating_mul(self.count)))
    }

    /// When the next one is sent after a silence that lasts since `heard`.
    pub(crate) fn next(self, heard: Nanos, now: Nanos) -> Duration {
        let silent = Duration::from_micros(now.0.saturating_sub(heard.0) / 1000);
        let idle = KeepAlive::seconds(self.idle);
        if silent < idle { idle } else { KeepAlive::seconds(self.interval) }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub marks: Marks,
    pub hops: u8,
    /// What is less than a segment waits until what was sent is acknowledged.
    pub collects: bool,
    /// Each segment is acknowledged at once.
    pub acknowledges_at_once: bool,
    pub keep_alive: Option<KeepAlive>,
    /// Milliseconds that what was sent may go without an answer; 0: as long as is usual.
    pub user_timeout: u32,
    /// How often a beginning is repeated.
    pub tries: u32,
    /// Seconds that the end of the other side is waited for when the program has left.
    pub left_seconds: u32,
    /// Who waits for room on the link goes before others with less.
    pub priority: u32,
    /// Bytes of its buffers, if the program has chosen them.
    pub receive_bytes: Option<u32>,
    pub send_bytes: Option<u32>,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            marks: Marks::default(),
            hops: 64,
            collects: true,
            acknowledges_at_once: false,
            keep_alive: None,
            user_timeout: 0,
            tries: 6,
            left_seconds: 60,
            priority: 0,
            receive_bytes: None,
            send_bytes: None,
        }
    }
}

impl Manner {
    /// What smoltcp does of it.
    pub(crate) fn apply(&self, socket: &mut Socket<'static>) {
        socket.set_nagle_enabled(self.collects);
        socket.set_hop_limit(Some(self.hops.max(1)));
        let delay = Duration::from_millis(10);
        socket.set_ack_delay((!self.acknowledges_at_once).then_some(delay));
        socket.set_keep_alive(self.keep_alive.map(|keep_alive| KeepAlive::seconds(keep_alive.idle)));
    }

    /// How long a beginning may take: it is repeated after one second, then after two, and so on.
    pub(crate) fn opening_timeout(&self) -> Duration {
        Duration::from_secs((2 << self.tries.min(10)) - 1)
    }

    pub(crate) fn sending_timeout(&self) -> Option<Duration> {
        (self.user_timeout > 0).then(|| Duration::from_millis(self.user_timeout.into()))
    }
}
