//! Addresses of local sockets: paths, and abstract names that begin with a zero byte (unix(7)).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{AF_UNIX, UNIX_PATH_MAX};
use kernel::file::{Access, FinalLink, NewSpecial, NodeKind};
use kernel::symtab::{AddError, SymbolTable};
use machine::{KernelCell, TryGrow, try_arc, try_text, try_to_vec};

use super::unix::UnixSocket;
use crate::call::Call;

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
/// Errors: `EINVAL` for a bad length or family, `ENOMEM`.
pub fn name_in(address: &[u8]) -> Result<Vec<u8>, Errno> {
    let (family, path) = address.split_first_chunk().ok_or(Errno::EINVAL)?;
    if u16::from_le_bytes(*family) != AF_UNIX || path.len() > UNIX_PATH_MAX {
        return Err(Errno::EINVAL);
    }
    let mut name = try_to_vec(path)?;
    if name.first().is_some_and(|first| *first != 0) {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        name.truncate(end);
    }
    Ok(name)
}

/// The address with these path bytes. Error: `ENOMEM`.
pub fn address_of(name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut record = try_to_vec(&AF_UNIX.to_le_bytes())?;
    record.try_extend_from_slice(name)?;
    if name.first().is_some_and(|first| *first != 0) {
        record.try_push(0)?;
    }
    Ok(record)
}

/// Errors: `EINVAL` for a socket with a name, `EADDRINUSE`, and those of making a name.
pub fn bind(call: &Call<'_>, socket: &UnixSocket, name: Vec<u8>) -> Result<(), Errno> {
    if !socket.name.borrow().is_empty() {
        return Err(Errno::EINVAL);
    }
    if name.is_empty() {
        return name_itself(call, socket);
    }
    if name[0] == 0 {
        call.unix.socket_names.add(&name, socket)?;
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
    Ok(())
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
