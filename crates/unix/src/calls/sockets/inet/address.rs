//! Addresses of the internet families, as programs give them and get them.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use abi::socket::{AF_INET, AF_INET6, AF_UNSPEC};
use abi::{Errno, Field};
use machine::{NoMemory, try_to_vec};

const BYTES_4: usize = 16;
const BYTES_6: usize = 28;
/// Without the scope (RFC 2133), which Linux still takes.
const BYTES_6_LEAST: usize = 24;

/// What a program names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// `AF_UNSPEC`: nobody.
    Nobody,
    Somebody(SocketAddr),
}

/// The address in a record, for a socket of one of the families; addresses of IP 4 that are written as ones of IP 6 are what they are.
///
/// Errors: `EINVAL` for one that is too short, `EAFNOSUPPORT`.
pub fn address_in(record: &[u8], is_6: bool) -> Result<Named, Errno> {
    if record.len() < 2 {
        return Err(Errno::EINVAL);
    }
    let family = <u16 as Field>::get(record);
    let port = |record: &[u8]| u16::from_be_bytes([record[2], record[3]]);
    match family {
        AF_UNSPEC => Ok(Named::Nobody),
        AF_INET if record.len() < BYTES_4 => Err(Errno::EINVAL),
        AF_INET if !is_6 => {
            let address: [u8; 4] = <[u8; 4] as Field>::get(&record[4..]);
            Ok(Named::Somebody(SocketAddr::new(IpAddr::from(address), port(record))))
        }
        AF_INET6 if !is_6 => Err(Errno::EAFNOSUPPORT),
        AF_INET6 if record.len() < BYTES_6_LEAST => Err(Errno::EINVAL),
        AF_INET6 => {
            let address = Ipv6Addr::from(<[u8; 16] as Field>::get(&record[8..]));
            let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
            Ok(Named::Somebody(SocketAddr::new(address, port(record))))
        }
        _ if is_6 && record.len() < BYTES_6_LEAST => Err(Errno::EINVAL),
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

/// The record of an address, as a socket of this family shows it. Error: no memory.
pub fn record_of(address: SocketAddr, is_6: bool) -> Result<Vec<u8>, NoMemory> {
    let mut record = [0; BYTES_6];
    record[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) if !is_6 => {
            AF_INET.put(&mut record);
            record[4..8].copy_from_slice(&ip.octets());
            return try_to_vec(&record[..BYTES_4]);
        }
        IpAddr::V4(ip) if ip.is_unspecified() => {}
        IpAddr::V4(ip) => record[8..24].copy_from_slice(&ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => record[8..24].copy_from_slice(&ip.octets()),
    }
    AF_INET6.put(&mut record);
    try_to_vec(&record)
}
