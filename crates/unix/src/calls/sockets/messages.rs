//! Sending and receiving: messages from several buffers, with addresses and control data.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{
    MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
    MSG_WAITFORONE, Msghdr,
};

use kernel::stream::UserRange;
use machine::{TryGrow, try_collect};

use super::family::Socket;
use super::parcel::{Parcel, Received};
use super::{ancillary, find, read_address, write_address};
use crate::call::{Call, CallResult};
use crate::calls::polls::read_deadline;
use crate::files::open_file::OpenFile;

/// Bytes of one message at most that go through the kernel's memory at once.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a message that need no memory of the heap on their way.
const PLACE_BYTES: usize = 64;

type Found = (Arc<OpenFile>, Arc<dyn Socket>);

/// Sends bytes of the kernel; a broken connection raises `SIGPIPE` unless the flags say not to.
fn send(
    call: &Call<'_>,
    (file, socket): &Found,
    bytes: &[u8],
    flags: u32,
    to: Option<Vec<u8>>,
    parcel: Parcel,
) -> CallResult {
    if flags & MSG_OOB != 0 {
        return Err(Errno::ENOTSUP);
    }
    let nonblocking = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let sent = call.with_io(nonblocking, |io| socket.send_to(call, io, bytes, to.as_deref(), parcel));
    if sent == Err(Errno::EPIPE) && flags & MSG_NOSIGNAL == 0 && socket.is_stream() {
        crate::calls::signals::kill::broken_pipe(call);
    }
    file.note_room(&sent, bytes.len());
    sent.map(|bytes| bytes as u64)
}

/// What is said before bytes are fetched that cannot be: a broken connection raises `SIGPIPE`, as in [`send`].
fn can_send(call: &Call<'_>, socket: &Arc<dyn Socket>, flags: u32) -> Result<(), Errno> {
    let checked = socket.check_writable();
    if checked == Err(Errno::EPIPE) && flags & MSG_NOSIGNAL == 0 && socket.is_stream() {
        crate::calls::signals::kill::broken_pipe(call);
    }
    checked
}

pub fn sendto(call: &Call<'_>, [descriptor, from, bytes, flags, address, size]: [u64; 6]) -> CallResult {
    let found = find(call, descriptor)?;
    let to = if address == 0 { None } else { Some(read_address(call, address, size)?) };
    let range = call.range(from, bytes)?;
    let (mut few, mut many);
    let bytes = range.bytes.min(MESSAGE_BYTES_MAX as usize);
    let data = if bytes <= PLACE_BYTES {
        few = [0; PLACE_BYTES];
        &mut few[..bytes]
    } else {
        many = call.buffer(bytes)?;
        &mut many[..]
    };
    if let Err(error) = call.copy_in(from, data) {
        return can_send(call, &found.1, flags as u32).and(Err(error));
    }
    send(call, &found, data, flags as u32, to, Parcel::default())
}

/// With `MSG_WAITALL` a stream's receiver waits until there are as many bytes as it has room for.
fn receive(call: &Call<'_>, (file, socket): &Found, room: usize, flags: u32) -> Result<Received, Errno> {
    if flags & MSG_OOB != 0 {
        return Err(if socket.is_stream() { Errno::EINVAL } else { Errno::ENOTSUP });
    }
    if flags & MSG_ERRQUEUE != 0 {
        return socket.take_returned(call);
    }
    let nonblocking = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let peek = flags & MSG_PEEK != 0;
    let mut received = call.with_io(nonblocking, |io| socket.receive(call, io, room, peek))?;
    if flags & MSG_WAITALL == 0 || peek || !socket.is_stream() {
        return Ok(received);
    }
    let more = |rest| call.with_io(nonblocking, |io| socket.receive(call, io, rest, false));
    received.fill_up([room, room], socket.passes_credentials(), more, |more| socket.keep(more));
    Ok(received)
}

/// Brings what was received to the program. Error: `EFAULT`; a stream's bytes can be received again then.
fn give(
    call: &Call<'_>,
    (_, socket): &Found,
    received: &mut Received,
    parts: &[[u64; 2]],
    flags: u32,
) -> Result<(), Errno> {
    let mut rest = &received.bytes[..];
    for [address, bytes] in parts {
        let (part, behind) = rest.split_at((*bytes as usize).min(rest.len()));
        if let Err(error) = call.copy_out(*address, part) {
            if flags & MSG_PEEK == 0 {
                socket.keep(core::mem::take(received));
            }
            return Err(error);
        }
        rest = behind;
    }
    Ok(())
}

/// Where the sender's address goes, and its size.
fn write_sender(call: &Call<'_>, socket: &dyn Socket, received: &Received, into: u64, size: u64) -> Result<(), Errno> {
    if into == 0 {
        return Ok(());
    }
    let address = socket.sender_of(received)?;
    if address.is_empty() { call.write(size, &0u32) } else { write_address(call, &address, into, size) }
}

pub fn recvfrom(call: &Call<'_>, [descriptor, into, bytes, flags, address, size]: [u64; 6]) -> CallResult {
    let found = find(call, descriptor)?;
    let range = call.range(into, bytes)?;
    let mut received = receive(call, &found, range.bytes, flags as u32)?;
    give(call, &found, &mut received, &[[into, range.bytes as u64]], flags as u32)?;
    write_sender(call, &*found.1, &received, address, size)?;
    Ok(if flags as u32 & MSG_TRUNC != 0 { received.whole } else { received.bytes.len() } as u64)
}

/// One message into several buffers (`readv`): not one for each.
pub fn read_parts(
    call: &Call<'_>,
    file: &Arc<OpenFile>,
    socket: Arc<dyn Socket>,
    buffers: impl Iterator<Item = UserRange>,
) -> Result<usize, Errno> {
    let found = (file.clone(), socket);
    let parts = try_collect(buffers.map(|part| [part.address.0, part.bytes as u64]))?;
    let room = parts.iter().fold(0u64, |sum, [_, bytes]| sum.saturating_add(*bytes)).min(MESSAGE_BYTES_MAX);
    let mut received = receive(call, &found, room as usize, 0)?;
    give(call, &found, &mut received, &parts, 0)?;
    Ok(received.bytes.len())
}

/// Several buffers as one message (`writev`). Error: `EMSGSIZE`.
pub fn write_parts(
    call: &Call<'_>,
    file: &Arc<OpenFile>,
    socket: Arc<dyn Socket>,
    buffers: impl Iterator<Item = UserRange>,
) -> Result<usize, Errno> {
    let mut data = Vec::new();
    can_send(call, &socket, 0)?;
    for part in buffers {
        if data.len() + part.bytes > MESSAGE_BYTES_MAX as usize {
            return Err(Errno::EMSGSIZE);
        }
        data.try_extend_from_slice(&call.read_bytes(part.address.0, part.bytes)?)?;
    }
    send(call, &(file.clone(), socket), &data, 0, None, Parcel::default()).map(|sent| sent as usize)
}

/// Address and length of the parts of a message. Errors: `EMSGSIZE` for more than 1024, `EFAULT`, `EINVAL`.
fn parts(call: &Call<'_>, message: &Msghdr) -> Result<Vec<[u64; 2]>, Errno> {
    if message.msg_iovlen > 1024 {
        return Err(Errno::EMSGSIZE);
    }
    let mut parts = Vec::new();
    parts.room_for_exact(message.msg_iovlen as usize)?;
    for index in 0..message.msg_iovlen {
        parts.try_push(call.read(message.msg_iov.wrapping_add(index * 16))?)?;
    }
    Ok(parts)
}

pub fn sendmsg(call: &Call<'_>, descriptor: u64, message: u64, flags: u32) -> CallResult {
    let found = find(call, descriptor)?;
    let message: Msghdr = call.read(message)?;
    let named = message.msg_name != 0 && message.msg_namelen > 0;
    let to = if named { Some(read_address(call, message.msg_name, message.msg_namelen as u64)?) } else { None };
    let parts = parts(call, &message)?;
    let parcel = if message.msg_controllen > 0 { ancillary::read(call, &message)? } else { Parcel::default() };
    let mut data = Vec::new();
    for [address, bytes] in parts {
        let room = MESSAGE_BYTES_MAX - data.len() as u64;
        data.try_extend_from_slice(&call.read_bytes(address, bytes.min(room) as usize)?)?;
    }
    send(call, &found, &data, flags, to, parcel)
}

pub fn recvmsg(call: &Call<'_>, descriptor: u64, message: u64, flags: u32) -> CallResult {
    let found = find(call, descriptor)?;
    let mut record: Msghdr = call.read(message)?;
    let parts = parts(call, &record)?;
    let room = parts.iter().fold(0u64, |sum, [_, bytes]| sum.saturating_add(*bytes)).min(MESSAGE_BYTES_MAX);
    let mut received = receive(call, &found, room as usize, flags)?;
    give(call, &found, &mut received, &parts, flags)?;
    let is_cut = received.whole > received.bytes.len();
    record.msg_flags = flags & (MSG_CMSG_CLOEXEC | MSG_ERRQUEUE) | if is_cut { MSG_TRUNC } else { 0 };
    ancillary::write(call, &received, found.1.passes_credentials(), flags, &mut record);
    write_sender(call, &*found.1, &received, record.msg_name, message + NAMELEN_AT)?;
    call.write(message + CONTROLLEN_AT, &record.msg_controllen)?;
    call.write(message + FLAGS_AT, &record.msg_flags)?;
    Ok(if flags & MSG_TRUNC != 0 { received.whole } else { received.bytes.len() } as u64)
}

/// Fields of `struct msghdr` that are the kernel's to write, and where `struct mmsghdr` has the count of bytes.
const NAMELEN_AT: u64 = core::mem::offset_of!(Msghdr, msg_namelen) as u64;
const CONTROLLEN_AT: u64 = core::mem::offset_of!(Msghdr, msg_controllen) as u64;
const FLAGS_AT: u64 = core::mem::offset_of!(Msghdr, msg_flags) as u64;
const COUNT_AT: u64 = Msghdr::BYTES as u64;
const MANY_BYTES: u64 = COUNT_AT + 8;
/// Messages of one call at most.
const MANY_MAX: u64 = 1024;

/// Sends or receives several messages; an error counts only where nothing went before it.
fn many(call: &Call<'_>, messages: u64, count: u64, mut one: impl FnMut(u64) -> CallResult) -> CallResult {
    for done in 0..count.min(MANY_MAX) {
        let message = messages + done * MANY_BYTES;
        let result = one(message).and_then(|bytes| call.write(message + COUNT_AT, &(bytes as u32)));
        if let Err(error) = result {
            return if done > 0 { Ok(done) } else { Err(error) };
        }
    }
    Ok(count.min(MANY_MAX))
}

pub fn sendmmsg(call: &Call<'_>, descriptor: u64, messages: u64, count: u64, flags: u32) -> CallResult {
    find(call, descriptor)?;
    many(call, messages, count, |message| sendmsg(call, descriptor, message, flags))
}

/// The time is looked at between two messages only, as on Linux.
pub fn recvmmsg(call: &Call<'_>, [descriptor, messages, count, flags, time, _]: [u64; 6]) -> CallResult {
    let deadline = read_deadline(call, time)?;
    find(call, descriptor)?;
    let mut flags = flags as u32;
    let waits_for_one = flags & MSG_WAITFORONE != 0;
    flags &= !MSG_WAITFORONE;
    let mut is_late = false;
    many(call, messages, count, |message| {
        if is_late {
            return Err(Errno::EAGAIN);
        }
        let result = recvmsg(call, descriptor, message, flags);
        flags |= if waits_for_one { MSG_DONTWAIT } else { 0 };
        is_late = deadline.is_some_and(|deadline| deadline <= call.unix.machine.now());
        result
    })
}
