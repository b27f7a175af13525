//! Addresses that mean something to this machine.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn is_unspecified(address: IpAddr) -> bool {
    address.is_unspecified()
}

/// Whether what has it never leaves the machine.
pub fn is_local_only(address: IpAddr) -> bool {
    address.is_loopback()
}

/// Who connects to nobody in particular means this machine (ip(7)).
pub(super) fn meant(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}
