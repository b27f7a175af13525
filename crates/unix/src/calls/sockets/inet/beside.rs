//! Control data of datagrams (ip(7), ipv6(7), socket(7)): what a receiver is told, and what a sender says for one of them.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use abi::socket::{SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SOL_IP, SOL_IPV6, SOL_SOCKET};
use abi::{Errno, Field};
use kernel::net::{Datagram, Options, Returned, Stamp};
use machine::{Nanos, NoMemory, TryGrow};

use super::address::record_of;
use crate::call::Call;
use crate::calls::sockets::parcel::Beside;

const IP_TOS: u32 = 1;
const IP_TTL: u32 = 2;
const IP_PKTINFO: u32 = 8;
const IP_RECVERR: u32 = 11;
const IPV6_RECVERR: u32 = 25;
const IPV6_PKTINFO: u32 = 50;
const IPV6_HOPLIMIT: u32 = 52;
const IPV6_TCLASS: u32 = 67;

fn piece(level: u32, kind: u32, bytes: usize, fill: impl FnOnce(&mut [u8])) -> Beside {
    let mut content = [0; Beside::BYTES];
    fill(&mut content);
    Beside { level, kind, bytes, content }
}

/// When a message came, if its receiver wants to be told.
pub fn stamp(call: &Call<'_>, options: &Options, came: Nanos) -> Option<Beside> {
    let came = call.unix.wall_time_at(came);
    let (kind, part) = match options.stamp {
        Stamp::Never => return None,
        Stamp::Nanos => (SO_TIMESTAMPNS_OLD, u64::from(came.nanos)),
        Stamp::Micros => (SO_TIMESTAMP_OLD, u64::from(came.nanos) / 1000),
    };
    Some(piece(SOL_SOCKET, kind, 16, |content| [came.seconds as u64, part].put(content)))
}

/// What the receiver wants to be told.
pub fn of_datagram(
    call: &Call<'_>,
    options: &Options,
    datagram: &Datagram,
    is_6: bool,
) -> Result<Vec<Beside>, NoMemory> {
    let mut all = Vec::new();
    if let Some(stamp) = stamp(call, options, datagram.came) {
        all.try_push(stamp)?;
    }
    if options.tells_destination {
        all.try_push(destination(datagram.to, is_6))?;
    }
    if options.tells_hops {
        let (level, kind) = if is_6 { (SOL_IPV6, IPV6_HOPLIMIT) } else { (SOL_IP, IP_TTL) };
        all.try_push(piece(level, kind, 4, |content| u32::from(datagram.header.hops).put(content)))?;
    }
    if options.tells_service {
        let service = datagram.header.service;
        all.try_push(match is_6 {
            true => piece(SOL_IPV6, IPV6_TCLASS, 4, |content| u32::from(service).put(content)),
            false => piece(SOL_IP, IP_TOS, 1, |content| content[0] = service),
        })?;
    }
    Ok(all)
}

/// `struct in_pktinfo` or `struct in6_pktinfo`: where a datagram came to.
fn destination(to: SocketAddr, is_6: bool) -> Beside {
    let index: u32 = if to.ip().is_loopback() { 1 } else { 2 };
    match to.ip() {
        IpAddr::V4(ip) if !is_6 => piece(SOL_IP, IP_PKTINFO, 12, |content| {
            index.put(content);
            content[4..8].copy_from_slice(&ip.octets());
            content[8..12].copy_from_slice(&ip.octets());
        }),
        ip => piece(SOL_IPV6, IPV6_PKTINFO, 20, |content| {
            let octets = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            content[..16].copy_from_slice(&octets);
            index.put(&mut content[16..]);
        }),
    }
}

/// `struct sock_extended_err`, and the address of who says so.
pub fn of_returned(returned: &Returned, is_6: bool) -> Result<Vec<Beside>, NoMemory> {
    const BY_ICMP: u8 = 2;
    const BY_ICMP_6: u8 = 3;
    const RECORD: usize = 16;
    let (level, kind) = if is_6 { (SOL_IPV6, IPV6_RECVERR) } else { (SOL_IP, IP_RECVERR) };
    let who = record_of(SocketAddr::new(returned.from, 0), is_6)?;
    let mut all = Vec::new();
    all.try_push(piece(level, kind, RECORD + who.len(), |content| {
        (returned.error as u32).put(content);
        content[4] = if returned.to.is_ipv6() { BY_ICMP_6 } else { BY_ICMP };
        (content[5], content[6]) = (returned.kind, returned.code);
        content[RECORD..RECORD + who.len()].copy_from_slice(&who);
    }))?;
    Ok(all)
}

/// What a sender says for one datagram alone: options, and the address that it comes from. Error: `EINVAL`.
pub fn for_one(pieces: &[Beside], options: &mut Options, is_6: bool) -> Result<Option<IpAddr>, Errno> {
    let mut source = None;
    for piece in pieces {
        let number = || {
            let given: i32 = match piece.bytes {
                1 => piece.content[0].into(),
                4 => <u32 as Field>::get(&piece.content) as i32,
                _ => return Err(Errno::EINVAL),
            };
            u8::try_from(given).map_err(|_| Errno::EINVAL)
        };
        match (piece.level, piece.kind) {
            (SOL_IP, IP_TTL) if number()? == 0 => return Err(Errno::EINVAL),
            (SOL_IP, IP_TTL) | (SOL_IPV6, IPV6_HOPLIMIT) => {
                options.hops = number()?;
                options.multicast_hops = options.hops;
            }
            (SOL_IP, IP_TOS) | (SOL_IPV6, IPV6_TCLASS) => options.service = number()?,
            (SOL_IP, IP_PKTINFO) if piece.bytes >= 12 => {
                options.interface = <u32 as Field>::get(&piece.content);
                let address: [u8; 4] = <[u8; 4] as Field>::get(&piece.content[4..]);
                source = Some(IpAddr::from(address)).filter(|address| !address.is_unspecified());
            }
            (SOL_IPV6, IPV6_PKTINFO) if is_6 && piece.bytes >= 20 => {
                let address = core::net::Ipv6Addr::from(<[u8; 16] as Field>::get(&piece.content));
                options.interface = <u32 as Field>::get(&piece.content[16..]);
                let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
                source = Some(address).filter(|address| !address.is_unspecified());
            }
            (SOL_IP | SOL_IPV6, _) => return Err(Errno::EINVAL),
            // Levels of others are nobody's.
            _ => {}
        }
    }
    Ok(source)
}
