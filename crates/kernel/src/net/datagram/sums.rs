//! The internet's sums (RFC 1071).

use core::net::{IpAddr, SocketAddr};

use super::HEADER_BYTES;

/// A datagram's header, with its sum, which IP 4 alone can do without.
pub(super) fn udp_header(from: SocketAddr, to: SocketAddr, bytes: &[u8], without_sum: bool) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..2].copy_from_slice(&from.port().to_be_bytes());
    header[2..4].copy_from_slice(&to.port().to_be_bytes());
    let length = (HEADER_BYTES + bytes.len()) as u16;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    if without_sum && to.is_ipv4() {
        return header;
    }
    let first = pseudo(from.ip(), to.ip(), 17, length.into()) + u64::from(!sum_of(0, &header));
    // A sum of zero says that there is none.
    let sum = match sum_of(first, bytes) {
        0 => 0xFFFF,
        sum => sum,
    };
    header[6..8].copy_from_slice(&sum.to_be_bytes());
    header
}

pub(super) fn sum_with(bytes: &[u8], from: IpAddr, to: IpAddr, protocol: u8) -> u16 {
    sum_of(pseudo(from, to, protocol, bytes.len() as u32), bytes)
}

/// The sum of what IP says of a packet (RFC 768, RFC 8200 8.1).
fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, length: u32) -> u64 {
    let of = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(!sum_of(0, &address.octets())),
        IpAddr::V6(address) => u64::from(!sum_of(0, &address.octets())),
    };
    of(from) + of(to) + u64::from(protocol) + u64::from(length >> 16) + u64::from(length & 0xFFFF)
}

/// The internet's sum (RFC 1071) of `first` and these bytes.
pub(super) fn sum_of(first: u64, bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    let mut sum = first + last + pairs.map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1])).sum::<u64>();
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
