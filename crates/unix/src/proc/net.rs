//! /proc/net: interfaces, routes and sockets (proc(5)).

use alloc::vec::Vec;
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};

use abi::Errno;
use kernel::net::Show;

use super::process::Member;
use super::text::{Lines, constant};
use super::tree::{Entry, file};
use crate::calls::sockets::netlink::{interfaces, routes};
use crate::emulator::Unix;

pub const ENTRIES: &[Entry<Member>] = &[
    file("arp", |_, _| constant(b"IP address       HW type     Flags       HW address            Mask     Device\n")),
    file("dev", dev),
    file("if_inet6", if_inet6),
    file("ipv6_route", |_, _| constant(b"")),
    file("packet", |_, _| constant(b"sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n")),
    file("raw", |_, _| constant(HEAD.as_bytes())),
    file("raw6", |_, _| constant(HEAD_6.as_bytes())),
    file("route", route),
    file("tcp", |unix, _| streams(unix, false)),
    file("tcp6", |unix, _| streams(unix, true)),
    file("udp", |unix, _| datagrams(unix, false)),
    file("udp6", |unix, _| datagrams(unix, true)),
];

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const HEAD_6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue \
                      tr tm->when retrnsmt   uid  timeout inode\n";

fn dev(unix: &'static Unix, _: &Member) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    text.push_str("Inter-|   Receive                                                |  Transmit\n");
    text.push_str(" face |bytes    packets errs drop fifo frame compressed multicast");
    text.push_str("|bytes    packets errs drop fifo colls carrier compressed\n");
    for shown in interfaces::all(unix)? {
        let ([came, came_bytes], [went, went_bytes]) = (shown.received, shown.sent);
        let _ = writeln!(
            text,
            "{:>6}: {came_bytes:7} {came:7}    0    0    0     0          0         0 {went_bytes:8} {went:7}    0    0    \
             0     0       0          0",
            shown.name
        );
    }
    text.whole()
}

fn if_inet6(unix: &'static Unix, _: &Member) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    for shown in interfaces::all(unix)? {
        for (address, length) in &shown.addresses {
            let IpAddr::V6(ip) = address else { continue };
            let scope = match ip {
                _ if shown.is_loopback() => 0x10,
                ip if ip.is_unicast_link_local() => 0x20,
                _ => 0,
            };
            let octets = u128::from(*ip);
            let _ = writeln!(text, "{octets:032x} {:02x} {length:02x} {scope:02x} 80 {:>8}", shown.index, shown.name);
        }
    }
    text.whole()
}

fn route(unix: &'static Unix, _: &Member) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    text.push_str("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT");
    text.pad_to(127);
    text.push('\n');
    for route in routes(unix)? {
        let IpAddr::V4(to) = route.to else { continue };
        let word = |octets: [u8; 4]| u32::from_le_bytes(octets);
        let gateway = match route.gateway {
            Some(IpAddr::V4(gateway)) => word(gateway.octets()),
            _ => 0,
        };
        let flags = if gateway == 0 { 1 } else { 3 };
        let (to, mask) = (word(to.octets()), word(interfaces::mask(route.length)));
        let start = text.len();
        let _ = write!(text, "eth0\t{to:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t0\t{mask:08X}\t0\t0\t0");
        text.pad_to(start + 127);
        text.push('\n');
    }
    text.whole()
}

/// An address as the kernel's words lie, and the port.
fn put_address(text: &mut Lines, address: SocketAddr, is_6: bool) {
    let octets = match address.ip() {
        IpAddr::V4(ip) if !is_6 => {
            let _ = write!(text, "{:08X}", u32::from_le_bytes(ip.octets()));
            None
        }
        IpAddr::V4(ip) if ip.is_unspecified() => Some([0; 16]),
        IpAddr::V4(ip) => Some(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => Some(ip.octets()),
    };
    for word in octets.iter().flat_map(|octets| octets.chunks_exact(4)) {
        let _ = write!(text, "{:08X}", u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    }
    let _ = write!(text, ":{:04X}", address.port());
}

fn line(text: &mut Lines, number: usize, shown: &Show, is_6: bool) {
    let _ = write!(text, "{number:4}: ");
    put_address(text, shown.local, is_6);
    text.push(' ');
    put_address(text, shown.remote, is_6);
    let Show { state, unsent, unread, user, number, .. } = *shown;
    let _ = writeln!(
        text,
        " {state:02X} {unsent:08X}:{unread:08X} 00:00000000 00000000 {user:5}        0 {number} 1 0000000000000000 100 0 0 10 0"
    );
}

fn sockets(is_6: bool, each: impl FnOnce(&mut dyn FnMut(Show))) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    text.push_str(if is_6 { HEAD_6 } else { HEAD });
    let mut number = 0;
    each(&mut |shown| {
        if shown.local.is_ipv6() == is_6 {
            line(&mut text, number, &shown, is_6);
            number += 1;
        }
    });
    text.whole()
}

fn streams(unix: &'static Unix, is_6: bool) -> Result<Vec<u8>, Errno> {
    sockets(is_6, |visit| unix.network.each_stream(visit))
}

fn datagrams(unix: &'static Unix, is_6: bool) -> Result<Vec<u8>, Errno> {
    sockets(is_6, |visit| unix.network.each_datagram_socket(visit))
}
