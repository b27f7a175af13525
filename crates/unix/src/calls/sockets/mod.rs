//! Sockets. There is no network: of the families only the local one is there, and another is `EAFNOSUPPORT`, as
//! on a Linux built without it.

mod unix;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::siginfo::SigInfo;
use abi::socket::{
    AF_UNIX, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_TRUNC, Msghdr, SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_PEERCRED,
    SO_PROTOCOL, SO_RCVBUF, SO_SNDBUF, SO_TYPE, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_SEQPACKET, SOCK_STREAM,
    SOL_SOCKET, UNIX_PATH_MAX, Ucred,
};
use kernel::file::{Access, FinalLink, NewSpecial, NodeKind};
use kernel::symtab::{AddError, SymbolTable};
use machine::KernelCell;

use super::times::add_file;
use super::{Entry, signals};
use crate::call::{Call, CallResult};
use crate::files::{Descriptor, OpenFile};
use abi::nr;
use unix::UnixSocket;

/// Bytes of one message at most that go through the kernel's memory at once.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Sockets by their abstract names (those that begin with a zero byte).
pub struct SocketNames(KernelCell<SymbolTable<Vec<u8>, Weak<UnixSocket>>>);

impl SocketNames {
    pub const fn new() -> SocketNames {
        SocketNames(KernelCell::new(SymbolTable::new()))
    }
}

fn owner(call: &Call<'_>) -> (u32, u32, u32) {
    (call.process().pid, call.process().user_ids.get().effective, call.process().group_ids.get().effective)
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
    add_socket(call, UnixSocket::new(call.unix.scheduler, kind, owner(call)), flags)
}

fn socketpair(call: &Call<'_>, family: u32, kind: u32, protocol: u32, into: u64) -> CallResult {
    let (kind, flags) = kind_of(family, kind, protocol)?;
    let make = || UnixSocket::new(call.unix.scheduler, kind, owner(call));
    let (one, other) = (make(), make());
    one.join(&other);
    let first = add_socket(call, one, flags)?;
    let take_back = |descriptor: u64| drop(call.files().remove(Descriptor::from_register(descriptor)));
    let second = add_socket(call, other, flags).inspect_err(|_| take_back(first))?;
    call.write(into, &[first as u32, second as u32]).inspect_err(|_| {
        take_back(first);
        take_back(second);
    })?;
    Ok(0)
}

/// Errors: `EBADF`, `ENOTSOCK`.
/// `sockaddr_storage`: no address is longer.
const ADDRESS_BYTES_MAX: usize = 128;

fn find(call: &Call<'_>, descriptor: u64) -> Result<(Arc<OpenFile>, Arc<UnixSocket>), Errno> {
    let file = call.file(descriptor)?;
    let socket = file.stream_of::<UnixSocket>().and_then(|socket| socket.weak().upgrade()).ok_or(Errno::ENOTSOCK)?;
    Ok((file, socket))
}

/// The path bytes of a local address: a path without its zero, or an abstract name with its leading zero.
///
/// Errors: `EINVAL` for a bad length or family, `EFAULT`.
fn read_address(call: &Call<'_>, address: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
    if !(2..=2 + UNIX_PATH_MAX as u64).contains(&bytes) {
        return Err(Errno::EINVAL);
    }
    let record = call.read_bytes(address, bytes as usize)?;
    if u16::from_le_bytes([record[0], record[1]]) != AF_UNIX {
        return Err(Errno::EINVAL);
    }
    let mut name = record[2..].to_vec();
    if name.first().is_some_and(|first| *first != 0) {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        name.truncate(end);
    }
    Ok(name)
}

/// Writes an address and its size, cut to the room there is.
fn write_address(call: &Call<'_>, name: &[u8], into: u64, size: u64) -> Result<(), Errno> {
    if into == 0 {
        return Ok(());
    }
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let mut record = AF_UNIX.to_le_bytes().to_vec();
    record.extend_from_slice(name);
    if name.first().is_some_and(|first| *first != 0) {
        record.push(0);
    }
    call.copy_out(into, &record[..record.len().min(room)])?;
    call.write(size, &(record.len() as u32))
}

/// Errors: `EINVAL` for a socket with a name, `EADDRINUSE`, and those of making a name.
fn bind(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = read_address(call, address, bytes)?;
    if !socket.name.borrow().is_empty() || name.is_empty() {
        return Err(Errno::EINVAL);
    }
    if name[0] == 0 {
        let mut names = call.unix.socket_names.0.borrow_mut();
        names.retain(|socket| socket.strong_count() > 0);
        names.add(name.clone(), socket.weak()).map_err(|error| match error {
            AddError::Taken => Errno::EADDRINUSE,
            AddError::BadName => Errno::EINVAL,
            AddError::Full => Errno::ENOMEM,
        })?;
    } else {
        let umask = call.process().umask.load(core::sync::atomic::Ordering::Relaxed);
        let special = NewSpecial { kind: NodeKind::Socket, mode: 0o777 & !umask };
        let at = abi::file::AT_FDCWD as u64;
        let made = call.with_view(at, &name, |view| call.unix.names.make_special(view, &name, special, call.now()));
        let node = made.map_err(|error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error })?;
        *node.attachment().borrow_mut() = Some(Arc::new(socket.weak()));
    }
    *socket.name.borrow_mut() = name;
    Ok(0)
}

/// The socket that has this name. Errors: `ECONNREFUSED`, `EACCES`, and those of looking up a path.
fn named(call: &Call<'_>, name: &[u8]) -> Result<Arc<UnixSocket>, Errno> {
    let found = match name.first() {
        None => return Err(Errno::ECONNREFUSED),
        Some(0) => call.unix.socket_names.0.borrow().lookup(name).cloned(),
        Some(_) => {
            let at = abi::file::AT_FDCWD as u64;
            let node = call.with_view(at, name, |view| call.unix.names.lookup(view, name, FinalLink::Follow))?;
            call.permit(&node, Access { read: false, write: true, execute: false })?;
            let attachment = node.attachment().borrow();
            attachment.as_ref().and_then(|it| it.downcast_ref::<Weak<UnixSocket>>()).cloned()
        }
    };
    found.and_then(|socket| socket.upgrade()).ok_or(Errno::ECONNREFUSED)
}

fn connect(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    // Linux fetches the address before it asks what the descriptor is.
    call.file(descriptor)?;
    call.copy_in(address, [0; ADDRESS_BYTES_MAX].get_mut(..bytes as u32 as usize).ok_or(Errno::EINVAL)?)?;
    let (file, socket) = find(call, descriptor)?;
    let name = read_address(call, address, bytes)?;
    let other = named(call, &name)?;
    if other.kind != socket.kind {
        return Err(Errno::EPROTOTYPE);
    }
    if socket.kind == SOCK_DGRAM {
        socket.lead_to(&other);
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
    let server = UnixSocket::new(call.unix.scheduler, socket.kind, other.owner);
    *server.name.borrow_mut() = other.name.borrow().clone();
    socket.join(&server);
    other.waiting.borrow_mut().push_back(server);
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
        let next = socket.waiting.borrow_mut().pop_front();
        if let Some(connection) = next {
            break connection;
        }
        call.with_io(file.is_nonblocking(), |io| io.wait(&socket.changed))?;
    };
    call.unix.scheduler.wake(&socket.changed);
    let name = connection.peer().map(|peer| peer.name.borrow().clone()).unwrap_or_default();
    write_address(call, &name, into, size)?;
    add_socket(call, connection, flags)
}

/// Sends bytes of the kernel; a broken connection raises `SIGPIPE` unless the flags say not to.
fn send(
    call: &Call<'_>,
    (file, socket): &(Arc<OpenFile>, Arc<UnixSocket>),
    bytes: &[u8],
    flags: u32,
    to: Option<Vec<u8>>,
) -> CallResult {
    let to = match to {
        Some(_) if socket.kind != SOCK_DGRAM => {
            return Err(if socket.standing.get().connected { Errno::EISCONN } else { Errno::ENOTSUP });
        }
        Some(name) => Some(named(call, &name)?),
        None => None,
    };
    let nonblocking = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let sent = call.with_io(nonblocking, |io| socket.send(io, bytes, to.as_ref()));
    if sent == Err(Errno::EPIPE) && flags & MSG_NOSIGNAL == 0 && socket.is_stream() {
        signals::send_to_task(call.unix, call.task, &SigInfo::kill(abi::signal::SIGPIPE, 0, 0));
    }
    sent.map(|bytes| bytes as u64)
}

fn sendto(call: &Call<'_>, [descriptor, from, bytes, flags, address, size]: [u64; 6]) -> CallResult {
    let found = find(call, descriptor)?;
    let to = if address == 0 { None } else { Some(read_address(call, address, size)?) };
    let range = call.range(from, bytes)?;
    let data = call.read_bytes(from, range.bytes.min(MESSAGE_BYTES_MAX as usize))?;
    send(call, &found, &data, flags as u32, to)
}

fn recvfrom(call: &Call<'_>, [descriptor, into, bytes, flags, address, size]: [u64; 6]) -> CallResult {
    let (file, socket) = find(call, descriptor)?;
    let range = call.range(into, bytes)?;
    let flags = flags as u32;
    let nonblocking = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let give = |data: &[u8]| call.copy_out(into, data);
    let (bytes, whole) =
        call.with_io(nonblocking, |io| socket.deliver(io, range.bytes, flags & MSG_PEEK != 0, give))?;
    if address != 0 {
        call.write(size, &0u32)?;
    }
    Ok(if flags & MSG_TRUNC != 0 { whole } else { bytes } as u64)
}

/// Address and length of the parts of a message. Errors: `EMSGSIZE` for more than 1024, `EFAULT`, `EINVAL`.
fn parts(call: &Call<'_>, message: &Msghdr) -> Result<Vec<[u64; 2]>, Errno> {
    if message.msg_iovlen > 1024 {
        return Err(Errno::EMSGSIZE);
    }
    (0..message.msg_iovlen).map(|index| call.read(message.msg_iov.wrapping_add(index * 16))).collect()
}

/// Control data is not carried: sending some is `EINVAL`, so that nobody waits for a descriptor that never comes.
fn sendmsg(call: &Call<'_>, descriptor: u64, message: u64, flags: u32) -> CallResult {
    let found = find(call, descriptor)?;
    let message: Msghdr = call.read(message)?;
    if message.msg_control != 0 && message.msg_controllen > 0 {
        return Err(Errno::EINVAL);
    }
    let named = message.msg_name != 0 && message.msg_namelen > 0;
    let to = if named { Some(read_address(call, message.msg_name, message.msg_namelen as u64)?) } else { None };
    let mut data = Vec::new();
    for [address, bytes] in parts(call, &message)? {
        let room = MESSAGE_BYTES_MAX - data.len() as u64;
        data.try_reserve(bytes.min(room) as usize).map_err(|_| Errno::ENOMEM)?;
        data.extend_from_slice(&call.read_bytes(address, bytes.min(room) as usize)?);
    }
    send(call, &found, &data, flags, to)
}

fn recvmsg(call: &Call<'_>, descriptor: u64, message: u64, flags: u32) -> CallResult {
    let (file, socket) = find(call, descriptor)?;
    let mut record: Msghdr = call.read(message)?;
    let parts = parts(call, &record)?;
    let room = parts.iter().fold(0u64, |sum, [_, bytes]| sum.saturating_add(*bytes)).min(MESSAGE_BYTES_MAX);
    let nonblocking = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let peek = flags & MSG_PEEK != 0;
    let give = |data: &[u8]| {
        let mut done = 0;
        for [address, bytes] in parts {
            let part = (bytes as usize).min(data.len() - done);
            call.copy_out(address, &data[done..done + part])?;
            done += part;
        }
        Ok(())
    };
    let (bytes, whole) = call.with_io(nonblocking, |io| socket.deliver(io, room as usize, peek, give))?;
    record.msg_namelen = 0;
    record.msg_controllen = 0;
    record.msg_flags = if whole > bytes { MSG_TRUNC } else { 0 };
    call.write(message, &record)?;
    Ok(if flags & MSG_TRUNC != 0 { whole } else { bytes } as u64)
}

fn shutdown(call: &Call<'_>, descriptor: u64, how: u32) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if how > 2 {
        return Err(Errno::EINVAL);
    }
    if !socket.standing.get().connected {
        return Err(Errno::ENOTCONN);
    }
    socket.shut_down(how != 1, how != 0);
    Ok(0)
}

fn getsockname(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = socket.name.borrow().clone();
    write_address(call, &name, into, size).map(|()| 0)
}

fn getpeername(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = socket.peer_name.borrow().clone().ok_or(Errno::ENOTCONN)?;
    write_address(call, &name, into, size).map(|()| 0)
}

/// Options are checked by level only and have no effect.
fn setsockopt(call: &Call<'_>, descriptor: u64, level: u32) -> CallResult {
    find(call, descriptor)?;
    if level == SOL_SOCKET { Ok(0) } else { Err(Errno::ENOTSUP) }
}

fn getsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if level != SOL_SOCKET {
        return Err(Errno::ENOTSUP);
    }
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let word: u32 = match option {
        SO_TYPE => socket.kind,
        SO_DOMAIN => AF_UNIX.into(),
        SO_ERROR | SO_PROTOCOL => 0,
        SO_SNDBUF | SO_RCVBUF => 212_992,
        SO_ACCEPTCONN => socket.standing.get().backlog.is_some().into(),
        SO_PEERCRED => {
            let (pid, uid, gid) = socket.peer().map_or((0, u32::MAX, u32::MAX), |peer| peer.owner);
            let bytes = Ucred { pid: pid as i32, uid, gid }.to_bytes();
            let bytes = &bytes[..bytes.len().min(room)];
            call.copy_out(into, bytes)?;
            return call.write(size, &(bytes.len() as u32)).map(|()| 0);
        }
        1..=60 => 0,
        _ => return Err(Errno::ENOPROTOOPT),
    };
    let bytes = &word.to_le_bytes()[..room.min(4)];
    call.copy_out(into, bytes)?;
    call.write(size, &(bytes.len() as u32)).map(|()| 0)
}

pub const CALLS: &[Entry] = &[
    (nr::SOCKET, |call, [a, b, c, ..]| socket(call, a as u32, b as u32, c as u32)),
    (nr::SOCKETPAIR, |call, [a, b, c, d, ..]| socketpair(call, a as u32, b as u32, c as u32, d)),
    (nr::BIND, |call, [a, b, c, ..]| bind(call, a, b, c as u32 as u64)),
    (nr::CONNECT, |call, [a, b, c, ..]| connect(call, a, b, c as u32 as u64)),
    (nr::LISTEN, |call, [a, b, ..]| listen(call, a, b as i32)),
    (nr::ACCEPT, |call, [a, b, c, ..]| accept(call, a, b, c, 0)),
    (nr::ACCEPT4, |call, [a, b, c, d, ..]| accept(call, a, b, c, d as u32)),
    (nr::SENDTO, |call, arguments| sendto(call, arguments)),
    (nr::RECVFROM, |call, arguments| recvfrom(call, arguments)),
    (nr::SENDMSG, |call, [a, b, c, ..]| sendmsg(call, a, b, c as u32)),
    (nr::RECVMSG, |call, [a, b, c, ..]| recvmsg(call, a, b, c as u32)),
    (nr::SHUTDOWN, |call, [a, b, ..]| shutdown(call, a, b as u32)),
    (nr::GETSOCKNAME, |call, [a, b, c, ..]| getsockname(call, a, b, c)),
    (nr::GETPEERNAME, |call, [a, b, c, ..]| getpeername(call, a, b, c)),
    (nr::SETSOCKOPT, |call, [a, b, ..]| setsockopt(call, a, b as u32)),
    (nr::GETSOCKOPT, |call, [a, b, c, d, e, _]| getsockopt(call, a, [b as u32, c as u32], d, e)),
];
