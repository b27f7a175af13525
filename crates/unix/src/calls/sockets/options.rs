//! Options of sockets (socket(7)).

use abi::Errno;
use abi::socket::{
    SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_PASSCRED, SO_PEERCRED, SO_PROTOCOL, SO_RCVBUF, SO_SNDBUF, SO_TYPE,
    SOL_SOCKET, Ucred,
};

use kernel::stream::UserRange;
use machine::VirtAddr;

use super::find;
use crate::call::{Call, CallResult};

/// Of local sockets all but `SO_PASSCRED` are checked by level only and have no effect.
pub fn setsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], from: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    if level != SOL_SOCKET || socket.has_all_options() {
        let value = UserRange { address: VirtAddr(from), bytes: bytes as u32 as usize };
        return socket.set_own_option(call, [level, option], value).map(|()| 0);
    }
    if option == SO_PASSCRED {
        if (bytes as i32) < 4 {
            return Err(Errno::EINVAL);
        }
        socket.pass_credentials(call.read::<u32>(from)? != 0)?;
    }
    Ok(0)
}

/// Options that are the same for all families.
const SAYS_WHAT_IT_IS: [u32; 6] = [SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ERROR, SO_ACCEPTCONN, SO_PEERCRED];

pub fn getsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let is_general = level == SOL_SOCKET && (!socket.has_all_options() || SAYS_WHAT_IT_IS.contains(&option));
    let own = if is_general { None } else { Some(socket.own_option(call, [level, option])?) };
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    if let Some(value) = own {
        return give(call, &value, room, into, size);
    }
    let word: u32 = match option {
        SO_TYPE => socket.kind(),
        SO_DOMAIN => socket.domain().into(),
        SO_PROTOCOL => socket.protocol(),
        SO_ERROR => socket.take_error().map_or(0, |error| error as u32),
        SO_PASSCRED => socket.passes_credentials().into(),
        SO_SNDBUF | SO_RCVBUF => 212_992,
        SO_ACCEPTCONN => socket.is_listening().into(),
        SO_PEERCRED => {
            let nobody = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
            let bytes = socket.peer_owner().unwrap_or(nobody).to_bytes();
            return give(call, &bytes, room, into, size);
        }
        1..=60 => 0,
        _ => return Err(Errno::ENOPROTOOPT),
    };
    give(call, &word.to_le_bytes(), room, into, size)
}

/// As much of the value as there is room for, and how much that is.
fn give(call: &Call<'_>, value: &[u8], room: usize, into: u64, size: u64) -> CallResult {
    let value = &value[..value.len().min(room)];
    call.copy_out(into, value)?;
    call.write(size, &(value.len() as u32)).map(|()| 0)
}
