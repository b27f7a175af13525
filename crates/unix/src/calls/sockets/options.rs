//! Options of sockets (socket(7)).

use abi::Errno;
use abi::socket::{
    AF_UNIX, SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_PASSCRED, SO_PEERCRED, SO_PROTOCOL, SO_RCVBUF, SO_SNDBUF, SO_TYPE,
    SOL_SOCKET, Ucred,
};

use super::find;
use crate::call::{Call, CallResult};

/// All but `SO_PASSCRED` are checked by level only and have no effect.
pub fn setsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], from: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if level != SOL_SOCKET {
        return Err(Errno::ENOTSUP);
    }
    if option == SO_PASSCRED {
        if (bytes as i32) < 4 {
            return Err(Errno::EINVAL);
        }
        socket.passes_credentials.set(call.read::<u32>(from)? != 0);
    }
    Ok(0)
}

pub fn getsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if level != SOL_SOCKET {
        return Err(Errno::ENOTSUP);
    }
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let word: u32 = match option {
        SO_TYPE => socket.kind,
        SO_DOMAIN => AF_UNIX.into(),
        SO_PROTOCOL => 0,
        SO_ERROR => socket.error.take().map_or(0, |error| error as u32),
        SO_PASSCRED => socket.passes_credentials.get().into(),
        SO_SNDBUF | SO_RCVBUF => 212_992,
        SO_ACCEPTCONN => socket.standing.get().backlog.is_some().into(),
        SO_PEERCRED => {
            let nobody = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
            let bytes = socket.peer_owner.get().unwrap_or(nobody).to_bytes();
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
