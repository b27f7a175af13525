//! Addresses of local sockets: paths, and abstract names that begin with a zero byte (unix(7)).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{AF_UNIX, UNIX_PATH_MAX};
use kernel::file::{Access, FinalLink, NewSpecial, NodeKind};
use kernel::symtab::{AddError, SymbolTable};
use machine::{KernelCell, TryGrow, try_arc, try_text, try_to_vec};

use super::find;
use super::unix::UnixSocket;
use crate::call::{Call, CallResult};

/// Bytes of the family, which stands before the name.
const FAMILY_BYTES: u64 = 2;

/// Sockets by their abstract names.
pub struct SocketNames(KernelCell<SymbolTable<Vec<u8>, Weak<UnixSocket>>>);

impl SocketNames {
    pub const fn new() -> SocketNames {
        SocketNames(KernelCell::new(SymbolTable::new()))
    }

    /// Errors: `EADDRINUSE`, `EINVAL`, `ENOMEM`.
    fn add(&self, name: &[u8], socket: &UnixSocket) -> Result<(), Errno> {
        let mut names = self.0.borrow_mut();
        names.retain(|socket| socket.strong_count() > 0);
        names.add(try_to_vec(name)?, socket.weak()).map_err(|error| match error {
            AddError::Taken => Errno::EADDRINUSE,
            AddError::BadName => Errno::EINVAL,
            AddError::Full => Errno::ENOMEM,
        })
    }
}

/// The path bytes of a local address: a path without its zero, or an abstract name with its leading zero.
///
/// Errors: `EINVAL` for a bad length or family, `EFAULT`.
pub fn read_address(call: &Call<'_>, address: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
    if !(FAMILY_BYTES..=FAMILY_BYTES + UNIX_PATH_MAX as u64).contains(&bytes) {
        return Err(Errno::EINVAL);
    }
    let record = call.read_bytes(address, bytes as usize)?;
    if u16::from_le_bytes([record[0], record[1]]) != AF_UNIX {
        return Err(Errno::EINVAL);
    }
    let mut name = try_to_vec(&record[2..])?;
    if name.first().is_some_and(|first| *first != 0) {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        name.truncate(end);
    }
    Ok(name)
}

/// Writes an address and its size, cut to the room there is.
pub fn write_address(call: &Call<'_>, name: &[u8], into: u64, size: u64) -> Result<(), Errno> {
    if into == 0 {
        return Ok(());
    }
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let mut record = try_to_vec(&AF_UNIX.to_le_bytes())?;
    record.try_extend_from_slice(name)?;
    if name.first().is_some_and(|first| *first != 0) {
        record.try_push(0)?;
    }
    call.copy_out(into, &record[..record.len().min(room)])?;
    call.write(size, &(record.len() as u32))
}

/// Errors: `EINVAL` for a socket with a name, `EADDRINUSE`, and those of making a name.
pub fn bind(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = read_address(call, address, bytes)?;
    if !socket.name.borrow().is_empty() {
        return Err(Errno::EINVAL);
    }
    if name.is_empty() {
        return name_itself(call, &socket).map(|()| 0);
    }
    if name[0] == 0 {
        call.unix.socket_names.add(&name, &socket)?;
    } else {
        let umask = call.process().place.borrow().borrow().umask;
        let attached = try_arc(socket.weak())?;
        let special = NewSpecial { kind: NodeKind::Socket, mode: 0o777 & !umask };
        let at = abi::file::AT_FDCWD as u64;
        let made = call.with_view(at, &name, |view| call.unix.names.make_special(view, &name, special, call.now()));
        let node = made.map_err(|error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error })?;
        *node.attachment().borrow_mut() = Some(attached);
        *socket.place.borrow_mut() = Some(node);
    }
    *socket.name.borrow_mut() = name;
    Ok(0)
}

/// The socket that has this name. Errors: `ECONNREFUSED`, `EACCES`, and those of looking up a path.
pub fn named(call: &Call<'_>, name: &[u8]) -> Result<Arc<UnixSocket>, Errno> {
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

/// Gives a socket without a name an abstract one that nobody has: five digits (unix(7), "Autobind feature").
///
/// Errors: `ENOMEM`, `ENOSPC` when all are taken.
pub fn name_itself(call: &Call<'_>, socket: &UnixSocket) -> Result<(), Errno> {
    if !socket.name.borrow().is_empty() {
        return Ok(());
    }
    for number in 0..=0xf_ffff {
        let name = try_text(format_args!("\0{number:05x}"))?.into_bytes();
        match call.unix.socket_names.add(&name, socket) {
            Err(Errno::EADDRINUSE) => {}
            Err(error) => return Err(error),
            Ok(()) => {
                *socket.name.borrow_mut() = name;
                return Ok(());
            }
        }
    }
    Err(Errno::ENOSPC)
}

pub fn getsockname(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = try_to_vec(&socket.name.borrow())?;
    write_address(call, &name, into, size).map(|()| 0)
}

pub fn getpeername(call: &Call<'_>, descriptor: u64, into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let name = try_to_vec(socket.peer_name.borrow().as_ref().ok_or(Errno::ENOTCONN)?)?;
    write_address(call, &name, into, size).map(|()| 0)
}
