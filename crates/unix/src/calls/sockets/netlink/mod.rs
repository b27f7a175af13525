//! Netlink: questions to the kernel about its network (netlink(7), `NETLINK_ROUTE`), which are answered at once.

mod answers;
pub(crate) mod interfaces;

pub use answers::routes;

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

use abi::socket::{AF_NETLINK, SOCK_DGRAM, SOCK_RAW};
use abi::{Errno, Field};
use kernel::charge::{Held, Kept};
use kernel::net::Options;
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Progress, Ready, SocketRecord, Stream, UserRange};
use machine::{KernelCell, KernelValue, TryQueue, try_arc_cyclic, try_filled, try_to_vec};

use super::family::{Family, Socket};
use super::parcel::{Parcel, Received};
use crate::call::Call;
use crate::emulator::Unix;

const ROUTE: u32 = 0;
const PROTOCOLS: u32 = 32;
const HEADER_BYTES: usize = 16;
/// Bytes of one answer at most that are given at a time, as Linux does.
const PART_BYTES: usize = 32_768;
const MESSAGE_MOST: usize = 65_536;

pub const FAMILY: Family = Family {
    number: AF_NETLINK,
    make: |call, kind, protocol| {
        if ![SOCK_RAW, SOCK_DGRAM].contains(&kind) {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        if protocol != ROUTE || protocol >= PROTOCOLS {
            return Err(Errno::EPROTONOSUPPORT);
        }
        Ok(Netlink::new(call, kind)?)
    },
    make_pair: |_, _, _| Err(Errno::ENOTSUP),
    of: |stream| Some(stream.as_any().downcast_ref::<Netlink>()?.me.upgrade()?),
};

pub struct Netlink {
    me: Weak<Netlink>,
    unix: &'static Unix,
    kind: u32,
    /// What it is called; 0: not yet.
    port: KernelValue<u32>,
    groups: KernelValue<u32>,
    options: KernelValue<Options>,
    inbox: KernelCell<VecDeque<Vec<u8>>>,
    arrived: KernelValue<u64>,
    readable: WaitQueue,
    record: SocketRecord,
}

impl Netlink {
    fn new(call: &Call<'_>, kind: u32) -> Result<Arc<Netlink>, Errno> {
        Ok(try_arc_cyclic(|me| Netlink {
            me: me.clone(),
            unix: call.unix,
            kind,
            port: KernelValue::new(0),
            groups: KernelValue::new(0),
            options: KernelValue::new(Options::default()),
            inbox: KernelCell::new(VecDeque::new()),
            arrived: KernelValue::new(0),
            readable: WaitQueue::new(),
            record: SocketRecord::new(0, 0),
        })?)
    }

    /// The first socket of a process is called as the process.
    fn name_itself(&self, call: Option<&Call<'_>>) {
        if self.port.get() == 0 {
            let own = call.map_or(self.record.number as u32 | 0x8000_0000, |call| call.process().pid);
            self.port.set(own);
        }
    }

    fn ask(&self, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        while rest.len() >= HEADER_BYTES {
            let length = <u32 as Field>::get(rest) as usize;
            let Some(message) = rest.get(..length).filter(|_| length >= HEADER_BYTES) else { break };
            let answer = answers::answer(self.unix, message, self.port.get())?;
            self.put(&answer)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// What waits is given in parts of whole messages. Error: `ENOBUFS`.
    fn put(&self, answer: &[u8]) -> Result<(), Errno> {
        let mut inbox = self.inbox.borrow_mut();
        if inbox.iter().map(Vec::len).sum::<usize>() + answer.len() > self.options.get().receive_bytes() {
            return Err(Errno::ENOBUFS);
        }
        let mut rest = answer;
        while !rest.is_empty() {
            let mut end = 0;
            while end < rest.len() {
                let length = <u32 as Field>::get(&rest[end..]) as usize;
                // The end stands alone, as Linux has it: who reads one part at a time relies on that.
                let is_end = <u16 as Field>::get(&rest[end + 4..]) == 3;
                if end > 0 && (is_end || end + length > PART_BYTES) {
                    break;
                }
                end += length;
            }
            inbox.try_push_back(try_to_vec(&rest[..end])?)?;
            rest = &rest[end..];
        }
        drop(inbox);
        self.arrived.set(self.arrived.get() + 1);
        self.unix.scheduler.wake(&self.readable);
        Ok(())
    }

    fn take(&self, io: &Io<'_>, room: usize, peek: bool) -> Result<(Vec<u8>, usize), Errno> {
        let deadline = io.deadline(self.options.get().receive_timeout);
        loop {
            let mut inbox = self.inbox.borrow_mut();
            if let Some(first) = inbox.front() {
                let whole = first.len();
                if peek {
                    return Ok((try_to_vec(&first[..whole.min(room)])?, whole));
                }
                let mut first = inbox.pop_front().unwrap_or_default();
                first.truncate(room);
                return Ok((first, whole));
            }
            drop(inbox);
            io.wait_until(&self.readable, deadline)?;
        }
    }

    fn record(port: u32, groups: u32) -> Result<Vec<u8>, Errno> {
        let mut record = [0; 12];
        AF_NETLINK.put(&mut record);
        port.put(&mut record[4..]);
        groups.put(&mut record[8..]);
        Ok(try_to_vec(&record)?)
    }
}

impl Socket for Netlink {
    fn domain(&self) -> u16 {
        AF_NETLINK
    }

    fn kind(&self) -> u32 {
        self.kind
    }

    fn bind(&self, call: &Call<'_>, address: &[u8]) -> Result<(), Errno> {
        if address.len() < 12 || <u16 as Field>::get(address) != AF_NETLINK {
            return Err(Errno::EINVAL);
        }
        match <u32 as Field>::get(&address[4..]) {
            0 => self.name_itself(Some(call)),
            port if self.port.get() == 0 || self.port.get() == port => self.port.set(port),
            _ => return Err(Errno::EINVAL),
        }
        self.groups.set(<u32 as Field>::get(&address[8..]));
        Ok(())
    }

    fn connect(&self, call: &Call<'_>, address: &[u8], _: bool) -> Result<(), Errno> {
        if address.len() < 12 || <u16 as Field>::get(address) != AF_NETLINK {
            return Err(Errno::EINVAL);
        }
        self.name_itself(Some(call));
        // Only the kernel is there.
        if <u32 as Field>::get(&address[4..]) == 0 { Ok(()) } else { Err(Errno::ECONNREFUSED) }
    }

    fn send_to(&self, call: &Call<'_>, _: &Io<'_>, bytes: &[u8], to: Option<&[u8]>, _: Parcel) -> Result<usize, Errno> {
        self.name_itself(Some(call));
        if to.is_some_and(|to| to.len() >= 8 && <u32 as Field>::get(&to[4..]) != 0) {
            return Err(Errno::ECONNREFUSED);
        }
        self.ask(bytes)?;
        Ok(bytes.len())
    }

    fn receive(&self, _: &Call<'_>, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno> {
        let (bytes, whole) = self.take(io, room, peek)?;
        Ok(Received { bytes, whole, ..Received::default() })
    }

    fn keep(&self, _: Received) {}

    fn shut_down(&self, _: bool, _: bool) -> Result<(), Errno> {
        Err(Errno::ENOTSUP)
    }

    fn address(&self) -> Result<Vec<u8>, Errno> {
        Netlink::record(self.port.get(), self.groups.get())
    }

    fn peer_address(&self) -> Result<Vec<u8>, Errno> {
        Netlink::record(0, 0)
    }

    fn sender_of(&self, _: &Received) -> Result<Vec<u8>, Errno> {
        Netlink::record(0, 0)
    }

    fn take_error(&self) -> Option<Errno> {
        None
    }

    fn options(&self) -> &KernelValue<Options> {
        &self.options
    }

    /// Options of netlink ask for more checks and more told: what is answered is right either way.
    fn own_option(&self, _: &Call<'_>, _: [u32; 2]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOPROTOOPT)
    }

    fn set_own_option(&self, _: &Call<'_>, [level, _]: [u32; 2], _: UserRange) -> Result<(), Errno> {
        const SOL_NETLINK: u32 = 270;
        if level == SOL_NETLINK { Ok(()) } else { Err(Errno::ENOPROTOOPT) }
    }
}

impl Stream for Netlink {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.inbox.borrow().front().map_or(0, Vec::len))
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let (bytes, _) = self.take(io, to.bytes, false)?;
        io.copy_out(to.address, &bytes)?;
        Ok(bytes.len())
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut bytes = try_filled(0, from.bytes.min(MESSAGE_MOST))?;
        io.copy_in(from.address, &mut bytes)?;
        self.name_itself(None);
        self.ask(&bytes)?;
        Ok(bytes.len())
    }

    fn ready(&self) -> Ready {
        Ready::WRITABLE.with_if(!self.inbox.borrow().is_empty(), Ready::READABLE)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.readable);
    }

    fn progress(&self) -> Option<Progress> {
        Some(Progress { arrived: self.arrived.get(), departed: 0 })
    }

    fn held(&self) -> Held {
        let waiting: usize = self.inbox.borrow().iter().map(Vec::capacity).sum();
        Held::new(Kept::Sockets, size_of::<Netlink>() + waiting)
    }

    fn socket(&self) -> Option<&SocketRecord> {
        Some(&self.record)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
