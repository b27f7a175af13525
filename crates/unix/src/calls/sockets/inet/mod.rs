//! The internet families, as the calls see them: `kernel::net` has what they do.

mod address;
pub(super) mod beside;
mod options;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::process::{CAP_NET_BIND_SERVICE, CAP_NET_RAW};
use abi::socket::{
    AF_INET, AF_INET6, AF_UNSPEC, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, SOCK_DGRAM, SOCK_RAW, SOCK_STREAM,
};
use abi::{Errno, Field};
use kernel::net::{Options, Protocol, Tcp, Udp};
use kernel::stream::{Io, Stream, UserRange};
use machine::KernelValue;

use super::family::{Family, Socket};
use super::parcel::{Parcel, Received};
use crate::call::Call;
use address::{Named, address_in, record_of};
use options::Facts;

const IPPROTO_ICMPV6: u32 = 58;
/// Ports below are for who may (`ip_unprivileged_port_start`).
const FREE_PORTS: u16 = 1024;

pub const FAMILY_4: Family = Family {
    number: AF_INET,
    make: |call, kind, protocol| make(call, false, kind, protocol),
    make_pair: |_, _, _| Err(Errno::ENOTSUP),
    of,
};

pub const FAMILY_6: Family = Family {
    number: AF_INET6,
    make: |call, kind, protocol| make(call, true, kind, protocol),
    make_pair: |_, _, _| Err(Errno::ENOTSUP),
    of: |_| None,
};

fn of(stream: &dyn Stream) -> Option<Arc<dyn Socket>> {
    if let Some(tcp) = stream.as_any().downcast_ref::<Tcp>() {
        return Some(tcp.counted()?);
    }
    Some(stream.as_any().downcast_ref::<Udp>()?.counted()?)
}

fn make(call: &Call<'_>, is_6: bool, kind: u32, protocol: u32) -> Result<Arc<dyn Socket>, Errno> {
    let process = call.process();
    let owner = (process.user_ids.get().effective, process.group_ids.get().effective);
    let network = call.unix.network;
    let echo = if is_6 { IPPROTO_ICMPV6 } else { IPPROTO_ICMP };
    let spoken = match (kind, protocol) {
        (SOCK_STREAM, 0 | IPPROTO_TCP) => return Ok(Tcp::new(network, is_6, owner.0, owner.1)?),
        (SOCK_DGRAM, 0 | IPPROTO_UDP) => Protocol::Udp,
        (SOCK_DGRAM, number) if number == echo => Protocol::Echo,
        (SOCK_RAW, 0) => return Err(Errno::EPROTONOSUPPORT),
        (SOCK_RAW, 1..=254) if process.can(CAP_NET_RAW) => Protocol::Raw(protocol as u8),
        (SOCK_RAW, _) => return Err(Errno::EPERM),
        (SOCK_STREAM | SOCK_DGRAM, _) => return Err(Errno::EPROTONOSUPPORT),
        _ => return Err(Errno::ESOCKTNOSUPPORT),
    };
    Ok(Udp::new(network, spoken, is_6, owner)?)
}

/// The address to bind to. Errors: `EINVAL`, `EAFNOSUPPORT`, `EACCES`.
fn to_bind(call: &Call<'_>, address: &[u8], is_6: bool) -> Result<core::net::SocketAddr, Errno> {
    let at = match address_in(address, is_6)? {
        Named::Somebody(at) => at,
        // Nobody in particular, if it says so in all of it (`inet_bind`).
        Named::Nobody if !is_6 && address.len() >= 16 && address[4..8] == [0; 4] => {
            let port = u16::from_be_bytes([address[2], address[3]]);
            core::net::SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), port)
        }
        Named::Nobody => return Err(Errno::EAFNOSUPPORT),
    };
    let is_low = (1..FREE_PORTS).contains(&at.port());
    if is_low && !call.process().can(CAP_NET_BIND_SERVICE) { Err(Errno::EACCES) } else { Ok(at) }
}

fn family_number(is_6: bool) -> u16 {
    if is_6 { AF_INET6 } else { AF_INET }
}

/// What streams and datagrams have alike.
macro_rules! of_both {
    () => {
        fn domain(&self) -> u16 {
            family_number(self.is_6())
        }

        fn bind(&self, call: &Call<'_>, address: &[u8]) -> Result<(), Errno> {
            self.bind(to_bind(call, address, self.is_6())?)
        }

        fn shut_down(&self, reads: bool, writes: bool) -> Result<(), Errno> {
            self.shut_down(reads, writes)
        }

        fn address(&self) -> Result<Vec<u8>, Errno> {
            Ok(record_of(self.local(), self.is_6())?)
        }

        fn peer_address(&self) -> Result<Vec<u8>, Errno> {
            Ok(record_of(self.remote().ok_or(Errno::ENOTCONN)?, self.is_6())?)
        }

        fn take_error(&self) -> Option<Errno> {
            self.take_error()
        }

        fn options(&self) -> &KernelValue<Options> {
            &self.options
        }

        fn options_changed(&self) {
            self.options_changed();
        }

        fn own_option(&self, _: &Call<'_>, option: [u32; 2]) -> Result<Vec<u8>, Errno> {
            options::get(&self.options.get(), self.facts(), option)
        }

        fn set_own_option(&self, call: &Call<'_>, option: [u32; 2], value: UserRange) -> Result<(), Errno> {
            let mut changed = self.options.get();
            options::set(call, &mut changed, self.facts(), option, value)?;
            self.options.set(changed);
            self.options_changed();
            Ok(())
        }
    };
}

impl Socket for Tcp {
    of_both!();

    fn kind(&self) -> u32 {
        SOCK_STREAM
    }

    fn protocol(&self) -> u32 {
        IPPROTO_TCP
    }

    fn connect(&self, call: &Call<'_>, address: &[u8], nonblocking: bool) -> Result<(), Errno> {
        let is_unspecified = address.first_chunk().is_some_and(|family| u16::from_le_bytes(*family) == AF_UNSPEC);
        if self.is_connected() && !is_unspecified {
            return Err(Errno::EISCONN);
        }
        match address_in(address, self.is_6())? {
            Named::Nobody => {
                self.disconnect();
                Ok(())
            }
            Named::Somebody(to) => call.with_io(nonblocking, |io| self.connect(io, to)),
        }
    }

    fn listen(&self, _: &Call<'_>, backlog: usize) -> Result<(), Errno> {
        self.listen(backlog)
    }

    fn is_listening(&self) -> bool {
        self.is_listening()
    }

    fn next_connection(&self, call: &Call<'_>, nonblocking: bool) -> Result<Arc<dyn Socket>, Errno> {
        Ok(call.with_io(nonblocking, |io| self.next_connection(io))?)
    }

    fn accepted(&self, _: &Call<'_>) {
        self.accepted();
    }

    fn check_writable(&self) -> Result<(), Errno> {
        self.check_writable()
    }

    fn send_to(&self, _: &Call<'_>, io: &Io<'_>, bytes: &[u8], _: Option<&[u8]>, _: Parcel) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return self.check_writable().map(|()| 0);
        }
        self.write_kernel(io, bytes)
    }

    fn receive(&self, _: &Call<'_>, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno> {
        let bytes = self.receive(io, room, peek)?;
        Ok(Received { whole: bytes.len(), bytes, ..Received::default() })
    }

    fn keep(&self, received: Received) {
        self.keep(received.bytes);
    }

    fn accepted_address(&self) -> Result<Vec<u8>, Errno> {
        Ok(record_of(self.caller(), self.is_6())?)
    }

    /// A stream's receiver is not told whom it has connected to.
    fn sender_of(&self, _: &Received) -> Result<Vec<u8>, Errno> {
        Ok(Vec::new())
    }
}

trait Known {
    fn facts(&self) -> Facts;
}

impl Known for Tcp {
    fn facts(&self) -> Facts {
        let is_bound = self.local().port() != 0;
        Facts { is_stream: true, is_bound, is_6: self.is_6(), state: self.show().state }
    }
}

impl Known for Udp {
    fn facts(&self) -> Facts {
        Facts { is_stream: false, is_bound: self.is_bound(), is_6: self.is_6(), state: 7 }
    }
}

impl Socket for Udp {
    of_both!();

    fn kind(&self) -> u32 {
        if matches!(self.protocol, Protocol::Raw(_)) { SOCK_RAW } else { SOCK_DGRAM }
    }

    fn protocol(&self) -> u32 {
        match self.protocol {
            Protocol::Udp => IPPROTO_UDP,
            Protocol::Echo if self.is_6() => IPPROTO_ICMPV6,
            Protocol::Echo => IPPROTO_ICMP,
            Protocol::Raw(number) => number.into(),
        }
    }

    fn connect(&self, _: &Call<'_>, address: &[u8], _: bool) -> Result<(), Errno> {
        match address_in(address, self.is_6())? {
            Named::Nobody => self.connect(None),
            Named::Somebody(to) => self.connect(Some(to)),
        }
    }

    fn send_to(
        &self,
        _: &Call<'_>,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<&[u8]>,
        parcel: Parcel,
    ) -> Result<usize, Errno> {
        let to = match to.map(|address| address_in(address, self.is_6())).transpose()? {
            Some(Named::Somebody(to)) => Some(to),
            // Linux takes one without a family for one of IP 4.
            Some(Named::Nobody) if !self.is_6() => match to.map(|address| (address.len(), address)) {
                Some((16.., address)) => {
                    let mut record = machine::try_to_vec(address)?;
                    AF_INET.put(&mut record);
                    match address_in(&record, false)? {
                        Named::Somebody(to) => Some(to),
                        Named::Nobody => None,
                    }
                }
                _ => return Err(Errno::EINVAL),
            },
            Some(Named::Nobody) | None => None,
        };
        let mut options = self.options.get();
        let source = beside::for_one(&parcel.beside, &mut options, self.is_6())?;
        self.send_by(io, bytes, to, &options, source)
    }

    fn receive(&self, call: &Call<'_>, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno> {
        let (datagram, whole) = self.receive(io, room, peek)?;
        let from = record_of(datagram.from, self.is_6())?;
        let beside = beside::of_datagram(call, &self.options.get(), &datagram, self.is_6())?;
        Ok(Received { whole, bytes: datagram.bytes, from, beside, ..Received::default() })
    }

    fn take_returned(&self, _: &Call<'_>) -> Result<Received, Errno> {
        let returned = self.errors.take().ok_or(Errno::EAGAIN)?;
        let beside = beside::of_returned(&returned, self.is_6())?;
        let from = record_of(returned.to, self.is_6())?;
        Ok(Received { whole: returned.bytes.len(), bytes: returned.bytes, from, beside, ..Received::default() })
    }

    /// What was received and not taken is gone, as on Linux.
    fn keep(&self, _: Received) {}

    fn sender_of(&self, received: &Received) -> Result<Vec<u8>, Errno> {
        Ok(machine::try_to_vec(&received.from)?)
    }
}
