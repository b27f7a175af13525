//! Requests that sockets know (netdevice(7), `ioctl`): interfaces, and what is on its way.

use core::net::IpAddr;

use abi::socket::AF_INET;
use abi::{Errno, Field};
use kernel::net::Tcp;

use super::netlink::interfaces::{self, Shown};
use super::socket_of;
use crate::call::{Call, CallResult};
use crate::files::open_file::OpenFile;

const SIOCGIFNAME: u32 = 0x8910;
const SIOCGIFCONF: u32 = 0x8912;
const SIOCGIFFLAGS: u32 = 0x8913;
const SIOCGIFADDR: u32 = 0x8915;
const SIOCGIFDSTADDR: u32 = 0x8917;
const SIOCGIFBRDADDR: u32 = 0x8919;
const SIOCGIFNETMASK: u32 = 0x891b;
const SIOCGIFMETRIC: u32 = 0x891d;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCGIFHWADDR: u32 = 0x8927;
const SIOCGIFINDEX: u32 = 0x8933;
const SIOCGIFTXQLEN: u32 = 0x8942;
const SIOCOUTQ: u32 = 0x5411;
/// `struct ifreq`: a name, and what is asked for.
const RECORD_BYTES: usize = 40;
const NAME_BYTES: usize = 16;

/// `None` where it is no socket, or none of these requests.
pub fn serve(call: &Call<'_>, file: &OpenFile, request: u32, argument: u64) -> Option<CallResult> {
    let stream = file.as_stream()?;
    socket_of(&**stream)?;
    match request {
        SIOCOUTQ => {
            let tcp = stream.as_any().downcast_ref::<Tcp>()?;
            Some(call.write(argument, &(tcp.unsent() as u32)).map(|()| 0))
        }
        SIOCGIFCONF => Some(list(call, argument)),
        SIOCGIFNAME..=SIOCGIFTXQLEN => Some(one(call, request, argument)),
        _ => None,
    }
}

fn record(shown: &Shown) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..shown.name.len()].copy_from_slice(shown.name.as_bytes());
    record
}

fn put_address(record: &mut [u8], octets: [u8; 4]) {
    AF_INET.put(&mut record[NAME_BYTES..]);
    record[NAME_BYTES + 4..NAME_BYTES + 8].copy_from_slice(&octets);
}

/// Interfaces with an address of IP 4: those are listed.
fn address_4(shown: &Shown) -> Option<([u8; 4], u8)> {
    shown.addresses.iter().find_map(|(address, length)| match address {
        IpAddr::V4(ip) => Some((ip.octets(), *length)),
        IpAddr::V6(_) => None,
    })
}

/// `struct ifconf`: room, and where it is.
fn list(call: &Call<'_>, argument: u64) -> CallResult {
    let room: i32 = call.read(argument)?;
    let into: u64 = call.read(argument + 8)?;
    let all = interfaces::all(call.unix)?;
    let mut bytes = 0;
    for (shown, (address, _)) in all.iter().filter_map(|shown| Some((shown, address_4(shown)?))) {
        let mut record = record(shown);
        put_address(&mut record, address);
        if into != 0 {
            if bytes + RECORD_BYTES > room.max(0) as usize {
                break;
            }
            call.copy_out(into + bytes as u64, &record)?;
        }
        bytes += RECORD_BYTES;
    }
    call.write(argument, &(bytes as u32)).map(|()| 0)
}

fn one(call: &Call<'_>, request: u32, argument: u64) -> CallResult {
    let asked: [u8; RECORD_BYTES] = call.read(argument)?;
    let all = interfaces::all(call.unix)?;
    let end = asked[..NAME_BYTES].iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    let index = <u32 as Field>::get(&asked[NAME_BYTES..]);
    let is_meant = |shown: &&Shown| {
        if request == SIOCGIFNAME { shown.index == index } else { shown.name.as_bytes() == &asked[..end] }
    };
    let shown = all.iter().find(is_meant).ok_or(Errno::ENODEV)?;
    let mut record = record(shown);
    let value = &mut record[NAME_BYTES..];
    let own = || address_4(shown).ok_or(Errno::EADDRNOTAVAIL);
    match request {
        SIOCGIFNAME => index.put(value),
        SIOCGIFFLAGS => (shown.flags as u16).put(value),
        SIOCGIFADDR | SIOCGIFDSTADDR => put_address(&mut record, own()?.0),
        SIOCGIFBRDADDR => {
            let (address, length) = own()?;
            let wide = if shown.is_loopback() { [0; 4] } else { interfaces::broadcast(address.into(), length) };
            put_address(&mut record, wide);
        }
        SIOCGIFNETMASK => put_address(&mut record, interfaces::mask(own()?.1)),
        SIOCGIFMETRIC => 0u32.put(value),
        SIOCGIFMTU => shown.mtu.put(value),
        SIOCGIFHWADDR => {
            shown.kind.put(value);
            value[2..8].copy_from_slice(&shown.hardware);
        }
        SIOCGIFINDEX => shown.index.put(value),
        SIOCGIFTXQLEN => 1000u32.put(value),
        _ => return Err(Errno::EPERM),
    }
    call.copy_out(argument, &record).map(|()| 0)
}
