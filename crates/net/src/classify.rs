//! What a frame is, as far as it is decided here. Whatever is odd is left to smoltcp, which drops or answers it.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4DstUnreachable, Icmpv4Message, Icmpv4Packet, Icmpv6DstUnreachable,
    Icmpv6Message, Icmpv6Packet, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber, UdpPacket,
};

use crate::{Failure, Tuple};

/// A message of ICMP that some program may wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub from: IpAddr,
    pub to: IpAddr,
    pub hops: u8,
    /// The whole packet, and the message in it.
    pub packet: Range<usize>,
    pub body: Range<usize>,
}

/// What a packet of ours that did not get there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub tuple: Tuple,
    pub is_tcp: bool,
    pub failure: Failure,
    /// Type and code of the message that says so.
    pub kind: u8,
    pub code: u8,
}

/// What the header of a packet that came says beside who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub hops: u8,
    /// The kind of service, or the traffic class.
    pub service: u8,
}

/// What part a segment plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Opens,
    /// It has nothing but an acknowledgement.
    Acknowledges(TcpSeqNumber),
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Tcp {
        tuple: Tuple,
        part: Part,
    },
    Udp {
        tuple: Tuple,
        header: Header,
        payload: Range<usize>,
    },
    Icmp(Message, Option<Lost>),
    /// It may have brought a neighbour's address.
    Neighbours,
    Other,
    /// Its sums are wrong.
    Damaged,
}

struct Ip {
    from: IpAddress,
    to: IpAddress,
    protocol: IpProtocol,
    header: Header,
    packet: Range<usize>,
    payload: Range<usize>,
}

/// What `frame` is; sums are looked at unless it `is_checked`.
pub fn classify(frame: &[u8], is_checked: bool) -> Kind {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return Kind::Other };
    let start = EthernetFrame::<&[u8]>::header_len();
    let ip = match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => ipv4(frame, start),
        EthernetProtocol::Ipv6 => ipv6(frame, start),
        EthernetProtocol::Arp => return Kind::Neighbours,
        EthernetProtocol::Unknown(_) => None,
    };
    let Some(ip) = ip else { return Kind::Other };
    match ip.protocol {
        IpProtocol::Tcp => tcp(frame, &ip, is_checked),
        IpProtocol::Udp => udp(frame, &ip, is_checked),
        IpProtocol::Icmp | IpProtocol::Icmpv6 => icmp(frame, &ip),
        _ => None,
    }
    .unwrap_or(Kind::Other)
}

fn ipv4(frame: &[u8], start: usize) -> Option<Ip> {
    let packet = Ipv4Packet::new_checked(&frame[start..]).ok()?;
    let (header, end) = (usize::from(packet.header_len()), usize::from(packet.total_len()));
    let is_whole = packet.frag_offset() == 0 && !packet.more_frags() && packet.version() == 4;
    if !is_whole || header < 20 || end < header || !packet.verify_checksum() {
        return None;
    }
    Some(Ip {
        from: packet.src_addr().into(),
        to: packet.dst_addr().into(),
        protocol: packet.next_header(),
        header: Header { hops: packet.hop_limit(), service: packet.dscp() << 2 | packet.ecn() },
        packet: start..start + end,
        payload: start + header..start + end,
    })
}

fn ipv6(frame: &[u8], start: usize) -> Option<Ip> {
    let packet = Ipv6Packet::new_checked(&frame[start..]).ok()?;
    if packet.version() != 6 {
        return None;
    }
    let header = packet.header_len();
    let end = start + header + usize::from(packet.payload_len());
    Some(Ip {
        from: packet.src_addr().into(),
        to: packet.dst_addr().into(),
        protocol: packet.next_header(),
        header: Header { hops: packet.hop_limit(), service: packet.traffic_class() },
        packet: start..end,
        payload: start + header..end,
    })
}

/// Two that can talk to each other.
fn tuple(ip: &Ip, from: u16, to: u16) -> Option<Tuple> {
    let is_right = !ip.from.is_unspecified() && !ip.from.is_multicast() && !ip.from.is_broadcast();
    let local = SocketAddr::new(ip.to.into(), to);
    is_right.then_some(Tuple { local, remote: SocketAddr::new(ip.from.into(), from) })
}

fn tcp(frame: &[u8], ip: &Ip, is_checked: bool) -> Option<Kind> {
    let packet = TcpPacket::new_checked(frame.get(ip.payload.clone())?).ok()?;
    if !is_checked && !packet.verify_checksum(&ip.from, &ip.to) {
        return Some(Kind::Damaged);
    }
    let (from, to) = (packet.src_port(), packet.dst_port());
    if from == 0 || to == 0 {
        return None;
    }
    let part = match (packet.syn(), packet.ack(), packet.rst() || packet.fin()) {
        (true, false, false) => Part::Opens,
        (false, true, false) if packet.payload().is_empty() => Part::Acknowledges(packet.ack_number()),
        _ => Part::Other,
    };
    Some(Kind::Tcp { tuple: tuple(ip, from, to)?, part })
}

fn udp(frame: &[u8], ip: &Ip, is_checked: bool) -> Option<Kind> {
    const HEADER_BYTES: usize = 8;
    let packet = UdpPacket::new_checked(frame.get(ip.payload.clone())?).ok()?;
    if !is_checked && !packet.verify_checksum(&ip.from, &ip.to) {
        return Some(Kind::Damaged);
    }
    let end = ip.payload.start + usize::from(packet.len());
    let tuple = tuple(ip, packet.src_port(), packet.dst_port())?;
    Some(Kind::Udp { tuple, header: ip.header, payload: ip.payload.start + HEADER_BYTES..end })
}

fn icmp(frame: &[u8], ip: &Ip) -> Option<Kind> {
    let body = frame.get(ip.payload.clone())?;
    let lost = match ip.protocol {
        IpProtocol::Icmp => {
            let packet = Icmpv4Packet::new_checked(body).ok()?;
            if !packet.verify_checksum() {
                return Some(Kind::Damaged);
            }
            {
                let lost = |failure| lost(packet.data(), failure, [u8::from(packet.msg_type()), packet.msg_code()]);
                failure_4(&packet).and_then(lost)
            }
        }
        _ => {
            let packet = Icmpv6Packet::new_checked(body).ok()?;
            let (IpAddress::Ipv6(from), IpAddress::Ipv6(to)) = (ip.from, ip.to) else { return None };
            if !packet.verify_checksum(&from, &to) {
                return Some(Kind::Damaged);
            }
            if packet.msg_type().is_ndisc() {
                return Some(Kind::Neighbours);
            }
            {
                let lost = |failure| lost(packet.payload(), failure, [u8::from(packet.msg_type()), packet.msg_code()]);
                failure_6(&packet).and_then(lost)
            }
        }
    };
    let (from, to) = (ip.from.into(), ip.to.into());
    let message = Message { from, to, hops: ip.header.hops, packet: ip.packet.clone(), body: ip.payload.clone() };
    Some(Kind::Icmp(message, lost))
}

fn failure_4(packet: &Icmpv4Packet<&[u8]>) -> Option<Failure> {
    if packet.msg_type() != Icmpv4Message::DstUnreachable {
        return None;
    }
    Some(match Icmpv4DstUnreachable::from(packet.msg_code()) {
        Icmpv4DstUnreachable::PortUnreachable | Icmpv4DstUnreachable::ProtoUnreachable => Failure::Refused,
        Icmpv4DstUnreachable::NetUnreachable | Icmpv4DstUnreachable::DstNetUnknown => Failure::NetUnreachable,
        Icmpv4DstUnreachable::FragRequired => Failure::TooLong,
        _ => Failure::HostUnreachable,
    })
}

fn failure_6(packet: &Icmpv6Packet<&[u8]>) -> Option<Failure> {
    match packet.msg_type() {
        Icmpv6Message::PktTooBig => Some(Failure::TooLong),
        Icmpv6Message::DstUnreachable => Some(match Icmpv6DstUnreachable::from(packet.msg_code()) {
            Icmpv6DstUnreachable::PortUnreachable => Failure::Refused,
            Icmpv6DstUnreachable::NoRoute => Failure::NetUnreachable,
            _ => Failure::HostUnreachable,
        }),
        _ => None,
    }
}

/// Whose packet it was that comes back: its first bytes are in the message.
fn lost(packet: &[u8], failure: Failure, [kind, code]: [u8; 2]) -> Option<Lost> {
    let (from, to, protocol, header): (IpAddr, IpAddr, u8, usize) = match packet.first()? >> 4 {
        4 => {
            let part = |at: usize| <[u8; 4]>::try_from(packet.get(at..at + 4)?).ok();
            let header = usize::from(packet[0] & 15) * 4;
            (part(12)?.into(), part(16)?.into(), *packet.get(9)?, header)
        }
        6 => {
            let part = |at: usize| <[u8; 16]>::try_from(packet.get(at..at + 16)?).ok();
            (part(8)?.into(), part(24)?.into(), *packet.get(6)?, 40)
        }
        _ => return None,
    };
    let is_tcp = match protocol {
        6 => true,
        17 => false,
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(packet.get(header + at..header + at + 2)?.try_into().ok()?));
    let tuple = Tuple { local: SocketAddr::new(from, port(0)?), remote: SocketAddr::new(to, port(2)?) };
    Some(Lost { tuple, is_tcp, failure, kind, code })
}
