//! Options that sockets of all families have (socket(7)); a family has its own beside them.
//!
//! Who has none of what an option is about keeps it and tells of it, as on Linux: a local socket has no ports that it could share.

use alloc::vec::Vec;

use abi::process::{CAP_NET_ADMIN, CAP_NET_RAW};
use abi::socket::{
    AF_INET, AF_INET6, SO_ACCEPTCONN, SO_BINDTODEVICE, SO_BROADCAST, SO_DEBUG, SO_DOMAIN, SO_DONTROUTE, SO_ERROR,
    SO_INCOMING_CPU, SO_KEEPALIVE, SO_LINGER, SO_MARK, SO_NO_CHECK, SO_OOBINLINE, SO_PASSCRED, SO_PEERCRED,
    SO_PRIORITY, SO_PROTOCOL, SO_RCVBUF, SO_RCVBUFFORCE, SO_RCVLOWAT, SO_RCVTIMEO_OLD, SO_REUSEADDR, SO_REUSEPORT,
    SO_SNDBUF, SO_SNDBUFFORCE, SO_SNDLOWAT, SO_SNDTIMEO_OLD, SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SO_TYPE, SOL_SOCKET,
    Ucred,
};
use abi::{Errno, Field};
use kernel::net::{Options, Stamp};
use kernel::stream::UserRange;
use machine::{Nanos, VirtAddr, try_to_vec};

use super::family::Socket;
use super::find;
use super::netlink::interfaces;
use crate::call::{Call, CallResult};

const SO_RCVTIMEO_NEW: u32 = 66;
const SO_SNDTIMEO_NEW: u32 = 67;
/// Least and most bytes of a buffer, as Linux keeps them.
const SEND_BUFFER_LEAST: u32 = 4608;
const RECEIVE_BUFFER_LEAST: u32 = 2304;
const BUFFER_MOST: u32 = 212_992;
const NAME_BYTES: usize = 16;

pub fn setsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], from: u64, bytes: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let value = UserRange { address: VirtAddr(from), bytes: bytes as u32 as usize };
    if level != SOL_SOCKET {
        return socket.set_own_option(call, [level, option], value).map(|()| 0);
    }
    if option == SO_PASSCRED {
        return socket.pass_credentials(number(call, value)? != 0).map(|()| 0);
    }
    let is_of_ports = [AF_INET, AF_INET6].contains(&socket.domain());
    let mut changed = socket.options().get();
    set(call, &mut changed, option, value)?;
    if changed.reuses_port && !is_of_ports {
        return Err(Errno::ENOTSUP);
    }
    socket.options().set(changed);
    socket.options_changed();
    Ok(0)
}

pub fn getsockopt(call: &Call<'_>, descriptor: u64, [level, option]: [u32; 2], into: u64, size: u64) -> CallResult {
    let (_, socket) = find(call, descriptor)?;
    let value = match level {
        SOL_SOCKET => get(call, &*socket, option),
        _ => socket.own_option(call, [level, option]).map(Value::Bytes),
    }?;
    let room: i32 = call.read(size)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    match value {
        Value::Word(word) => give(call, &word.to_le_bytes(), room, into, size),
        Value::Bytes(bytes) => give(call, &bytes, room, into, size),
    }
}

/// As much of the value as there is room for, and how much that is.
fn give(call: &Call<'_>, value: &[u8], room: usize, into: u64, size: u64) -> CallResult {
    let value = &value[..value.len().min(room)];
    call.copy_out(into, value)?;
    call.write(size, &(value.len() as u32)).map(|()| 0)
}

/// What a socket is, and what was set of it. Errors: `ENOPROTOOPT`, `ENOMEM`.
fn get(call: &Call<'_>, socket: &dyn Socket, option: u32) -> Result<Value, Errno> {
    Ok(Value::Word(match option {
        SO_TYPE => socket.kind(),
        SO_DOMAIN => socket.domain().into(),
        SO_PROTOCOL => socket.protocol(),
        SO_ERROR => socket.take_error().map_or(0, |error| error as u32),
        SO_PASSCRED => socket.passes_credentials().into(),
        SO_ACCEPTCONN => socket.is_listening().into(),
        SO_PEERCRED => {
            let nobody = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
            let owner = socket.peer_owner().unwrap_or(nobody);
            return Ok(Value::Bytes(try_to_vec(&owner.to_bytes())?));
        }
        _ => return of_socket(call, &socket.options().get(), option),
    }))
}

pub fn number(call: &Call<'_>, value: UserRange) -> Result<i32, Errno> {
    if value.bytes < 4 { Err(Errno::EINVAL) } else { call.read(value.address.0) }
}

/// A time as seconds and microseconds. Errors: `EINVAL`, `EDOM`.
fn time(call: &Call<'_>, value: UserRange) -> Result<Nanos, Errno> {
    if value.bytes < 16 {
        return Err(Errno::EINVAL);
    }
    let [seconds, micros]: [i64; 2] = call.read::<[u64; 2]>(value.address.0)?.map(|word| word as i64);
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno::EDOM);
    }
    Ok(Nanos((seconds.max(0) as u64).saturating_mul(Nanos::PER_SECOND).saturating_add(micros as u64 * 1000)))
}

fn buffer(wanted: i32, least: u32, most: u32) -> u32 {
    (wanted.max(0) as u32).min(most).saturating_mul(2).max(least)
}

/// Errors: `ENOPROTOOPT` for one that is not known, `EINVAL`, `EPERM`, `EDOM`, `ENODEV`, `EFAULT`.
fn set(call: &Call<'_>, options: &mut Options, option: u32, value: UserRange) -> Result<(), Errno> {
    let can = |capability| if call.process().can(capability) { Ok(()) } else { Err(Errno::EPERM) };
    match option {
        SO_LINGER => {
            if value.bytes < 8 {
                return Err(Errno::EINVAL);
            }
            let [on, seconds]: [u32; 2] = call.read(value.address.0)?;
            options.linger = (on != 0).then_some(seconds);
            return Ok(());
        }
        SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => {
            options.receive_timeout = time(call, value)?;
            return Ok(());
        }
        SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => {
            options.send_timeout = time(call, value)?;
            return Ok(());
        }
        SO_BINDTODEVICE => {
            can(CAP_NET_RAW)?;
            let name = call.read_bytes(value.address.0, value.bytes.min(NAME_BYTES - 1))?;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            options.interface = match &name[..end] {
                b"" => 0,
                name => interfaces::index_of(call.unix, name).ok_or(Errno::ENODEV)?,
            };
            return Ok(());
        }
        _ => {}
    }
    let given = number(call, value)?;
    let is_on = given != 0;
    match option {
        SO_REUSEADDR => options.reuses_address = is_on,
        SO_REUSEPORT => options.reuses_port = is_on,
        SO_BROADCAST => options.broadcasts = is_on,
        SO_KEEPALIVE => options.keeps_alive = is_on,
        SO_OOBINLINE => options.out_of_band_inline = is_on,
        SO_SNDBUF => options.send_buffer = Some(buffer(given, SEND_BUFFER_LEAST, BUFFER_MOST)),
        SO_RCVBUF => options.receive_buffer = Some(buffer(given, RECEIVE_BUFFER_LEAST, BUFFER_MOST)),
        SO_SNDBUFFORCE => {
            can(CAP_NET_ADMIN)?;
            options.send_buffer = Some(buffer(given, SEND_BUFFER_LEAST, 1 << 26));
        }
        SO_RCVBUFFORCE => {
            can(CAP_NET_ADMIN)?;
            options.receive_buffer = Some(buffer(given, RECEIVE_BUFFER_LEAST, 1 << 26));
        }
        SO_RCVLOWAT => options.low_water = given.max(1) as u32,
        SO_PRIORITY if (0..=6).contains(&given) || call.process().can(CAP_NET_ADMIN) => options.priority = given as u32,
        SO_PRIORITY => return Err(Errno::EPERM),
        SO_DONTROUTE => options.only_near = is_on,
        SO_NO_CHECK => options.sends_no_sums = is_on,
        SO_TIMESTAMP_OLD => options.stamp = if is_on { Stamp::Micros } else { Stamp::Never },
        SO_TIMESTAMPNS_OLD => options.stamp = if is_on { Stamp::Nanos } else { Stamp::Never },
        // What is not there can be switched off.
        SO_DEBUG | SO_MARK | SO_INCOMING_CPU if !is_on => {}
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

/// An option's value, as bytes or as the word that most are.
pub enum Value {
    Word(u32),
    Bytes(Vec<u8>),
}

fn of_socket(call: &Call<'_>, options: &Options, option: u32) -> Result<Value, Errno> {
    let timeout = |time: Nanos| -> Result<Value, Errno> {
        let (seconds, micros) = (time.0 / Nanos::PER_SECOND, time.0 % Nanos::PER_SECOND / 1000);
        let mut bytes = [0; 16];
        [seconds, micros].put(&mut bytes);
        Ok(Value::Bytes(try_to_vec(&bytes)?))
    };
    Ok(Value::Word(match option {
        SO_REUSEADDR => options.reuses_address.into(),
        SO_REUSEPORT => options.reuses_port.into(),
        SO_BROADCAST => options.broadcasts.into(),
        SO_KEEPALIVE => options.keeps_alive.into(),
        SO_OOBINLINE => options.out_of_band_inline.into(),
        SO_SNDBUF => options.send_bytes() as u32,
        SO_RCVBUF => options.receive_bytes() as u32,
        SO_RCVLOWAT => options.low_water,
        SO_SNDLOWAT => 1,
        SO_PRIORITY => options.priority,
        SO_DONTROUTE => options.only_near.into(),
        SO_NO_CHECK => options.sends_no_sums.into(),
        SO_TIMESTAMP_OLD => (options.stamp == Stamp::Micros).into(),
        SO_TIMESTAMPNS_OLD => (options.stamp == Stamp::Nanos).into(),
        // All frames come to the first processor.
        SO_DEBUG | SO_MARK | SO_INCOMING_CPU => 0,
        SO_LINGER => {
            let mut bytes = [0; 8];
            [u32::from(options.linger.is_some()), options.linger.unwrap_or(0)].put(&mut bytes);
            return Ok(Value::Bytes(try_to_vec(&bytes)?));
        }
        SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => return timeout(options.receive_timeout),
        SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => return timeout(options.send_timeout),
        SO_BINDTODEVICE => return Ok(Value::Bytes(interfaces::name_of(call.unix, options.interface)?)),
        _ => return Err(Errno::ENOPROTOOPT),
    }))
}
