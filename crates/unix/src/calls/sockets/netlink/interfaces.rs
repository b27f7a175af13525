//! The machine's interfaces, as all ways to ask for them show them.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use abi::Errno;
use machine::{NoMemory, TryGrow, try_to_vec};

use crate::emulator::Unix;

pub const LOOPBACK: u32 = 1;
pub const LINK: u32 = 2;

/// `IFF_…` (netdevice(7)).
const UP: u32 = 1;
const BROADCAST: u32 = 2;
const IS_LOOPBACK: u32 = 8;
const RUNNING: u32 = 0x40;
const MULTICAST: u32 = 0x1000;
const LOWER_UP: u32 = 0x1_0000;

pub struct Shown {
    pub index: u32,
    pub name: &'static str,
    pub flags: u32,
    pub mtu: u32,
    pub hardware: [u8; 6],
    /// `ARPHRD_…`
    pub kind: u16,
    pub addresses: Vec<(IpAddr, u8)>,
    pub gateways: Vec<IpAddr>,
    /// Packets and bytes that came, and that went.
    pub received: [u64; 2],
    pub sent: [u64; 2],
}

impl Shown {
    pub fn is_loopback(&self) -> bool {
        self.index == LOOPBACK
    }
}

/// All interfaces. Error: no memory.
pub fn all(unix: &'static Unix) -> Result<Vec<Shown>, NoMemory> {
    let mut shown = Vec::new();
    shown.room_for_exact(2)?;
    let looped = unix.network.looped();
    let own = [(IpAddr::V4(Ipv4Addr::LOCALHOST), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];
    shown.put(Shown {
        index: LOOPBACK,
        name: "lo",
        flags: UP | IS_LOOPBACK | RUNNING | LOWER_UP,
        mtu: 65_536,
        hardware: [0; 6],
        kind: 772,
        addresses: try_to_vec(&own)?,
        gateways: Vec::new(),
        received: looped,
        sent: looped,
    });
    if let Some(link) = unix.network.interface() {
        shown.put(Shown {
            index: LINK,
            name: "eth0",
            flags: UP | BROADCAST | RUNNING | MULTICAST | LOWER_UP,
            mtu: link.mtu.into(),
            hardware: link.hardware,
            kind: 1,
            addresses: link.addresses,
            gateways: link.gateways,
            received: link.received,
            sent: link.sent,
        });
    }
    Ok(shown)
}

pub fn index_of(unix: &'static Unix, name: &[u8]) -> Option<u32> {
    all(unix).ok()?.iter().find(|shown| shown.name.as_bytes() == name).map(|shown| shown.index)
}

/// The name with its zero; nothing for no interface.
pub fn name_of(unix: &'static Unix, index: u32) -> Result<Vec<u8>, Errno> {
    let mut name = Vec::new();
    if let Some(shown) = all(unix)?.iter().find(|shown| shown.index == index) {
        name.try_extend_from_slice(shown.name.as_bytes())?;
        name.try_push(0)?;
    }
    Ok(name)
}

/// The mask of a network of IP 4 with this length.
pub fn mask(length: u8) -> [u8; 4] {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0).to_be_bytes()
}

/// The address to all in the network of an address of IP 4.
pub fn broadcast(address: Ipv4Addr, length: u8) -> [u8; 4] {
    let mask = u32::from_be_bytes(mask(length));
    (u32::from(address) | !mask).to_be_bytes()
}

/// The network that an address is in.
pub fn network(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip) & u32::from_be_bytes(mask(length))).into(),
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
            Ipv6Addr::from(u128::from(ip) & mask).into()
        }
    }
}
