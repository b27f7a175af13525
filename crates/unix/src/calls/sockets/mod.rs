//! Sockets. The calls know a [`Socket`] and a table of families; a family that is not there is `EAFNOSUPPORT`, as on a Linux built
//! without it.

mod ancillary;
pub(crate) mod carried;
mod family;
pub(crate) mod flight;
mod flow;
mod garbage;
mod inet;
mod local;
mod messages;
pub(crate) mod names;
pub(crate) mod netlink;
mod options;
mod parcel;
pub(crate) mod requests;
pub(super) mod table;
mod unix;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::socket::{SOCK_CLOEXEC, SOCK_NONBLOCK};
use abi::{Errno, nr};

use kernel::stream::Stream;

use crate::call::{Call, CallResult};
use crate::calls::times::timerfd::add_file;
use crate::files::descriptors::Descriptor;
use crate::files::open_file::OpenFile;
use family::{Family, Socket};
pub use messages::{read_parts, write_parts};

/// All families, a line for each.
static FAMILIES: &[&Family] = &[&local::FAMILY, &inet::FAMILY_4, &inet::FAMILY_6, &netlink::FAMILY];

/// Checks flags, family and kind; gives the family, the kind and the flags beside it.
fn family_of(family: u32, kind: u32) -> Result<(&'static Family, u32, u32), Errno> {
    let (kind, flags) = (kind & 15, kind & !15);
    if flags & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let family = FAMILIES.iter().find(|known| u32::from(known.number) == family).ok_or(Errno::EAFNOSUPPORT)?;
    if kind > 10 { Err(Errno::EINVAL) } else { Ok((family, kind, flags)) }
}

fn add_socket(call: &Call<'_>, socket: Arc<dyn Socket>, flags: u32) -> CallResult {
    add_file(call, OpenFile::stream(socket, O_RDWR | flags & O_NONBLOCK), flags & O_CLOEXEC != 0)
}

fn socket(call: &Call<'_>, family: u32, kind: u32, protocol: u32) -> CallResult {
    let (family, kind, flags) = family_of(family, kind)?;
    add_socket(call, (family.make)(call, kind, protocol)?, flags)
}

fn take_back(call: &Call<'_>, descriptor: u64) {
    drop(call.files().remove(Descriptor::from_register(descriptor)));
}

fn socketpair(call: &Call<'_>, family: u32, kind: u32, protocol: u32, into: u64) -> CallResult {
    let (family, kind, flags) = family_of(family, kind)?;
    let [one, other] = (family.make_pair)(call, kind, protocol)?;
    let first = add_socket(call, one, flags)?;
    let second = add_socket(call, other, flags).inspect_err(|_| take_back(call, first))?;
    call.write(into, &[first as u32, second as u32]).inspect_err(|_| {
        take_back(call, first);
        take_back(call, second);
    })?;
    Ok(0)
}

/// `sockaddr_storage`: no address is longer.
const ADDRESS_BYTES_MAX: u64 = 128;

/// An address that a program gives. Errors: `EINVAL` for one that is too long, `EFAULT`.
fn read_address(call: &Call<'_>, address: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
    if bytes > ADDRESS_BYTES_MAX { Err(Errno::EINVAL) } else { call.read_bytes(address, bytes as usize) }
}

/// Writes an address and its size, cut to the room there is.
fn write_address(call: &Call<'_>, record: &[u8], into: u64, size: u64) -> Result<(), Errno> {
    if into == 0 {
        return Ok(());
    }
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    call.copy_out(into, &record[..record.len().min(room)])?;
    call.write(size, &(record.len() as u32))
}

/// Errors: `EBADF`, `ENOTSOCK`.
fn find(call: &Call<'_>, descriptor: u64) -> Result<(Arc<OpenFile>, Arc<dyn Socket>), Errno> {
    let file = call.file(descriptor)?;
    let socket = file.as_stream().and_then(|stream| socket_of(&**stream)).ok_or(Errno::ENOTSOCK)?;
    Ok((file, socket))
}

/// The socket that a stream is.
pub fn socket_of(stream: &dyn Stream) -> Option<Arc<dyn Socket>> {
    FAMILIES.iter().find_map(|family| (family.of)(stream))
}

/// Whether call `number` is about a socket of which was set how long it waits: a signal ends it for good (signal(7)).
pub fn is_patient(call: &Call<'_>, number: u64) -> bool {
    let Ok((_, socket)) = find(call, call.registers.rdi) else { return false };
    let options = socket.options().get();
    match number {
        nr::READ | nr::READV | nr::RECVFROM | nr::RECVMSG | nr::RECVMMSG | nr::ACCEPT | nr::ACCEPT4 => {
            options.receive_timeout.0 > 0
        }
        nr::WRITE | nr::WRITEV | nr::SENDTO | nr::SENDMSG | nr::SENDMMSG | nr::CONNECT => options.send_timeout.0 > 0,
        _ => false,
    }
}

fn bind(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    socket.bind(call, &read_address(call, address, bytes)?).map(|()| 0)
}

fn connect(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    // Linux fetches the address before it asks what the descriptor is.
    call.file(descriptor)?;
    let address = read_address(call, address, bytes)?;
    let (file, socket) = find(call, descriptor)?;
    socket.connect(call, &address, file.is_nonblocking()).map(|()| 0)
}

fn listen(call: &Call<'_>, descriptor: u64, backlog: i32) -> CallResult {
    find(call, descriptor)?.1.listen(call, backlog.clamp(0, 4096) as usize).map(|()| 0)
}

fn accept(call: &Call<'_>, descriptor: u64, into: u64, size: u64, flags: u32) -> CallResult {
    if flags & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let (file, socket) = find(call, descriptor)?;
    let connection = socket.next_connection(call, file.is_nonblocking())?;
    let address = connection.accepted_address()?;
    // Where there is no room for it, the connection waits on.
    let descriptor = add_socket(call, connection, flags)?;
    socket.accepted(call);
    write_address(call, &address, into, size).inspect_err(|_| take_back(call, descriptor))?;
    Ok(descriptor)
}

fn shutdown(call: &Call<'_>, descriptor: u64, how: u32) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if how > 2 {
        return Err(Errno::EINVAL);
    }
    socket.shut_down(how != 1, how != 0).map(|()| 0)
}

fn getsockname(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let address = find(call, descriptor)?.1.address()?;
    write_address(call, &address, into, size).map(|()| 0)
}

fn getpeername(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let address = find(call, descriptor)?.1.peer_address()?;
    write_address(call, &address, into, size).map(|()| 0)
}
