//! Sockets. There is no network: of the families only the local one is there, and another is `EAFNOSUPPORT`, as
//! on a Linux built without it.

mod ancillary;
mod carried;
mod flight;
mod garbage;
mod messages;
mod names;
mod options;
mod parcel;
mod unix;

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::socket::{AF_UNIX, AF_UNSPEC, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_SEQPACKET, SOCK_STREAM, Ucred};

use machine::{TryQueue, try_to_vec};

use super::Entry;
use super::times::add_file;
use crate::call::{Call, CallResult};
use crate::files::{Descriptor, OpenFile};
use abi::nr;
pub use carried::Carried;
pub use flight::Flight;
pub use names::SocketNames;
use unix::UnixSocket;

fn owner(call: &Call<'_>) -> Ucred {
    let process = call.process();
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    Ucred { pid: process.pid as i32, uid: user.effective, gid: group.effective }
}

/// Checks family, kind and protocol; gives the kind and the flags beside it.
fn kind_of(family: u32, kind: u32, protocol: u32) -> Result<(u32, u32), Errno> {
    let (kind, flags) = (kind & 15, kind & !15);
    if flags & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    if family != AF_UNIX.into() {
        return Err(Errno::EAFNOSUPPORT);
    }
    if kind > 10 {
        return Err(Errno::EINVAL);
    }
    if protocol != 0 && protocol != AF_UNIX.into() {
        return Err(Errno::EPROTONOSUPPORT);
    }
    match kind {
        SOCK_STREAM | SOCK_DGRAM | SOCK_SEQPACKET => Ok((kind, flags)),
        3 => Ok((SOCK_DGRAM, flags)), // Linux takes SOCK_RAW for datagrams here.
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

fn add_socket(call: &Call<'_>, socket: Arc<UnixSocket>, flags: u32) -> CallResult {
    add_file(call, OpenFile::stream(socket, O_RDWR | flags & O_NONBLOCK), flags & O_CLOEXEC != 0)
}

fn socket(call: &Call<'_>, family: u32, kind: u32, protocol: u32) -> CallResult {
    let (kind, flags) = kind_of(family, kind, protocol)?;
    add_socket(call, UnixSocket::new(call.unix, kind, owner(call))?, flags)
}

fn take_back(call: &Call<'_>, descriptor: u64) {
    drop(call.files().remove(Descriptor::from_register(descriptor)));
}

fn socketpair(call: &Call<'_>, family: u32, kind: u32, protocol: u32, into: u64) -> CallResult {
    let (kind, flags) = kind_of(family, kind, protocol)?;
    let make = || UnixSocket::new(call.unix, kind, owner(call));
    let (one, other) = (make()?, make()?);
    one.join(&other)?;
    let first = add_socket(call, one, flags)?;
    let second = add_socket(call, other, flags).inspect_err(|_| take_back(call, first))?;
    call.write(into, &[first as u32, second as u32]).inspect_err(|_| {
        take_back(call, first);
        take_back(call, second);
    })?;
    Ok(0)
}

/// `sockaddr_storage`: no address is longer.
const ADDRESS_BYTES_MAX: usize = 128;

/// Errors: `EBADF`, `ENOTSOCK`.
fn find(call: &Call<'_>, descriptor: u64) -> Result<(Arc<OpenFile>, Arc<UnixSocket>), Errno> {
    let file = call.file(descriptor)?;
    let socket = file.stream_of::<UnixSocket>().and_then(|socket| socket.counted()).ok_or(Errno::ENOTSOCK)?;
    Ok((file, socket))
}

fn connect(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    // Linux fetches the address before it asks what the descriptor is.
    call.file(descriptor)?;
    call.copy_in(address, [0; ADDRESS_BYTES_MAX].get_mut(..bytes as u32 as usize).ok_or(Errno::EINVAL)?)?;
    let (file, socket) = find(call, descriptor)?;
    if socket.kind == SOCK_DGRAM && bytes >= 2 && call.read::<u16>(address)? == AF_UNSPEC {
        socket.lead_nowhere();
        return Ok(0);
    }
    let name = names::read_address(call, address, bytes)?;
    if socket.passes_credentials.get() {
        names::name_itself(call, &socket)?;
    }
    let other = names::named(call, &name)?;
    if other.kind != socket.kind {
        return Err(Errno::EPROTOTYPE);
    }
    if socket.kind == SOCK_DGRAM {
        if !other.hears(&socket) {
            return Err(Errno::EPERM);
        }
        // All that needs memory comes before the old peer is left.
        let name = try_to_vec(&other.name.borrow())?;
        socket.lead_nowhere();
        socket.lead_to(&other, name);
        return Ok(0);
    }
    if socket.standing.get().connected {
        return Err(Errno::EISCONN);
    }
    if socket.standing.get().backlog.is_some() {
        return Err(Errno::EINVAL);
    }
    loop {
        let backlog = other.standing.get().backlog.ok_or(Errno::ECONNREFUSED)?;
        if other.waiting.borrow().len() <= backlog {
            break;
        }
        call.with_io(file.is_nonblocking(), |io| io.wait(&other.changed))?;
    }
    let server = UnixSocket::new(call.unix, socket.kind, other.owner.get())?;
    *server.name.borrow_mut() = try_to_vec(&other.name.borrow())?;
    other.waiting.borrow_mut().room_for(1)?;
    socket.join(&server)?;
    other.waiting.borrow_mut().try_push_back(server)?;
    call.unix.scheduler.wake(&other.changed);
    Ok(0)
}

fn listen(call: &Call<'_>, descriptor: u64, backlog: i32) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if socket.kind == SOCK_DGRAM {
        return Err(Errno::ENOTSUP);
    }
    if socket.name.borrow().is_empty() || socket.standing.get().connected {
        return Err(Errno::EINVAL);
    }
    socket.owner.set(owner(call));
    socket.standing.borrow_mut().backlog = Some(backlog.clamp(0, 4096) as usize);
    Ok(0)
}

fn accept(call: &Call<'_>, descriptor: u64, into: u64, size: u64, flags: u32) -> CallResult {
    if flags & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let (file, socket) = find(call, descriptor)?;
    if socket.kind == SOCK_DGRAM {
        return Err(Errno::ENOTSUP);
    }
    if socket.standing.get().backlog.is_none() {
        return Err(Errno::EINVAL);
    }
    let connection = loop {
        let next = socket.waiting.borrow().front().cloned();
        if let Some(connection) = next {
            break connection;
        }
        call.with_io(file.is_nonblocking(), |io| io.wait(&socket.changed))?;
    };
    let name = connection.peer().map(|peer| try_to_vec(&peer.name.borrow())).transpose()?.unwrap_or_default();
    connection.passes_credentials.set(socket.passes_credentials.get());
    // Where there is no room for it, the connection waits on.
    let descriptor = add_socket(call, connection, flags)?;
    drop(socket.waiting.borrow_mut().pop_front());
    call.unix.scheduler.wake(&socket.changed);
    names::write_address(call, &name, into, size).inspect_err(|_| take_back(call, descriptor))?;
    Ok(descriptor)
}

fn shutdown(call: &Call<'_>, descriptor: u64, how: u32) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if how > 2 {
        return Err(Errno::EINVAL);
    }
    socket.shut_down(how != 1, how != 0);
    Ok(0)
}

pub const CALLS: &[Entry] = &[
    (nr::SOCKET, |call, [a, b, c, ..]| socket(call, a as u32, b as u32, c as u32)),
    (nr::SOCKETPAIR, |call, [a, b, c, d, ..]| socketpair(call, a as u32, b as u32, c as u32, d)),
    (nr::BIND, |call, [a, b, c, ..]| names::bind(call, a, b, c as u32 as u64)),
    (nr::CONNECT, |call, [a, b, c, ..]| connect(call, a, b, c as u32 as u64)),
    (nr::LISTEN, |call, [a, b, ..]| listen(call, a, b as i32)),
    (nr::ACCEPT, |call, [a, b, c, ..]| accept(call, a, b, c, 0)),
    (nr::ACCEPT4, |call, [a, b, c, d, ..]| accept(call, a, b, c, d as u32)),
    (nr::SENDTO, |call, arguments| messages::sendto(call, arguments)),
    (nr::RECVFROM, |call, arguments| messages::recvfrom(call, arguments)),
    (nr::SENDMSG, |call, [a, b, c, ..]| messages::sendmsg(call, a, b, c as u32)),
    (nr::RECVMSG, |call, [a, b, c, ..]| messages::recvmsg(call, a, b, c as u32)),
    (nr::SENDMMSG, |call, [a, b, c, d, ..]| messages::sendmmsg(call, a, b, c as u32 as u64, d as u32)),
    (nr::RECVMMSG, |call, arguments| messages::recvmmsg(call, arguments)),
    (nr::SHUTDOWN, |call, [a, b, ..]| shutdown(call, a, b as u32)),
    (nr::GETSOCKNAME, |call, [a, b, c, ..]| names::getsockname(call, a, b, c)),
    (nr::GETPEERNAME, |call, [a, b, c, ..]| names::getpeername(call, a, b, c)),
    (nr::SETSOCKOPT, |call, [a, b, c, d, e, _]| options::setsockopt(call, a, [b as u32, c as u32], d, e)),
    (nr::GETSOCKOPT, |call, [a, b, c, d, e, _]| options::getsockopt(call, a, [b as u32, c as u32], d, e)),
];
