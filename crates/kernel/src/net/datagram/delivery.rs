//! Whom a datagram or a message is for.

use alloc::sync::{Arc, Weak};
use core::net::{IpAddr, SocketAddr};

use ::net::{Header, Lost, Tuple, share_of};
use machine::try_filled;

use super::super::{Network, number_of};
use super::sums::{sum_of, sum_with};
use super::{HEADER_BYTES, Protocol, Udp};

impl Network {
    /// A datagram is for whom it fits best, or for all where it is for many. Whether somebody wants it.
    pub(in crate::net) fn deliver(
        &self,
        interface: u32,
        from: SocketAddr,
        to: SocketAddr,
        header: Header,
        bytes: &[u8],
    ) -> bool {
        let is_wide = to.ip().is_multicast() || matches!(to.ip(), IpAddr::V4(address) if address.is_broadcast());
        let mut best: Option<(u32, u32, Arc<Udp>)> = None;
        let mut is_wanted = false;
        let datagrams = self.datagrams.borrow();
        for (claim, udp) in datagrams.at(to.port()) {
            let Some(udp) = udp.upgrade() else { continue };
            let Some(fit) = udp.fits(interface, from, to, claim) else { continue };
            if is_wide {
                udp.put(from, to, header, bytes);
                is_wanted = true;
                continue;
            }
            // Of several that share the port each hears a part of the senders: the n-th takes the place of the one before for one in n.
            let sharers = match &best {
                Some((other, sharers, _)) if fit == *other && claim.reuses_port => sharers + 1,
                _ => 1,
            };
            let is_better = best.as_ref().is_none_or(|(other, ..)| fit >= *other);
            if is_better && share_of(from).is_multiple_of(sharers) {
                best = Some((fit, sharers, udp));
            } else if let Some((other, count, _)) = &mut best
                && fit == *other
            {
                *count = sharers;
            }
        }
        drop(datagrams);
        if let Some((.., udp)) = &best {
            udp.put(from, to, header, bytes);
        }
        is_wanted || best.is_some()
    }

    /// A datagram that was sent did not get there, as `from` says: whoever is connected that way is told, and who wants to hear of all.
    pub(in crate::net) fn datagram_lost(&self, lost: &Lost, from: IpAddr, bytes: &[u8]) {
        let Tuple { local, remote } = lost.tuple;
        let datagrams = self.datagrams.borrow();
        let sent = datagrams.at(local.port()).filter_map(|(_, udp)| udp.upgrade());
        for udp in sent {
            let queues = udp.options.get().queues_errors;
            let is_own = udp.local().ip().is_unspecified() || udp.local().ip() == local.ip();
            match udp.remote.get() {
                Some(other) if other != remote => continue,
                None if !queues || !is_own => continue,
                _ => {}
            }
            if queues {
                udp.errors.put(lost, from, bytes);
            }
            udp.events.fail(number_of(lost.failure));
        }
    }

    /// A message of ICMP has come: the whole packet, and the message in it.
    pub(in crate::net) fn deliver_message(&self, from: IpAddr, to: IpAddr, hops: u8, packet: &[u8], body: &[u8]) {
        let (is_6, kind) = (from.is_ipv6(), body.first().copied().unwrap_or(0));
        let identifier = body.get(4..6).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
        let is_reply = kind == if is_6 { 129 } else { 0 };
        let number = if is_6 { 58 } else { 1 };
        let header = Header { hops, service: 0 };
        let messages = self.messages.borrow();
        for udp in messages.iter().filter_map(Weak::upgrade).filter(|udp| udp.is_6 == is_6) {
            let is_for_peer = udp.remote.get().is_none_or(|remote| remote.ip() == from);
            let (from, to) = (SocketAddr::new(from, 0), SocketAddr::new(to, 0));
            match udp.protocol {
                Protocol::Echo if is_reply && udp.local().port() == identifier && is_for_peer => {
                    udp.put(from, to, header, body);
                }
                // Who is raw gets the packet's header, too, where it is one of IP 4 (raw(7)).
                Protocol::Raw(protocol) if protocol == number && is_for_peer => {
                    udp.put(from, to, header, if is_6 { body } else { packet });
                }
                _ => {}
            }
        }
    }

    /// Somebody on this machine asks this machine for an echo.
    pub(super) fn echo_here(&self, from: SocketAddr, to: IpAddr, message: &[u8]) {
        let (asks, answers) = if to.is_ipv6() { (128, 129) } else { (8, 0) };
        if message.first() != Some(&asks) || message.len() < HEADER_BYTES {
            return;
        }
        const HEADER_4: usize = 20;
        let Ok(mut packet) = try_filled(0, HEADER_4 + message.len()) else { return };
        packet[HEADER_4..].copy_from_slice(message);
        packet[HEADER_4] = answers;
        packet[HEADER_4 + 2..HEADER_4 + 4].fill(0);
        let body = &packet[HEADER_4..];
        let sum = if to.is_ipv6() { sum_with(body, to, from.ip(), 58) } else { sum_of(0, body) };
        packet[HEADER_4 + 2..HEADER_4 + 4].copy_from_slice(&sum.to_be_bytes());
        if let (IpAddr::V4(source), IpAddr::V4(target)) = (to, from.ip()) {
            let whole = (packet.len() as u16).to_be_bytes();
            packet[..12].copy_from_slice(&[0x45, 0, whole[0], whole[1], 0, 0, 0, 0, 64, 1, 0, 0]);
            packet[12..16].copy_from_slice(&source.octets());
            packet[16..20].copy_from_slice(&target.octets());
            let sum = sum_of(0, &packet[..HEADER_4]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.deliver_message(to, from.ip(), 64, &packet, &packet[HEADER_4..]);
    }
}
