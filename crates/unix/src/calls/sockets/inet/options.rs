//! Options of sockets of the internet families (ip(7), ipv6(7), tcp(7)).

use alloc::vec::Vec;

use abi::socket::{
    SOL_IP, SOL_IPV6, SOL_TCP, TCP_CONGESTION, TCP_CORK, TCP_DEFER_ACCEPT, TCP_FASTOPEN, TCP_INFO, TCP_KEEPCNT,
    TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_LINGER2, TCP_MAXSEG, TCP_NODELAY, TCP_QUICKACK, TCP_SYNCNT, TCP_USER_TIMEOUT,
    TCP_WINDOW_CLAMP,
};
use abi::{Errno, Field};
use kernel::net::Options;
use kernel::stream::UserRange;
use machine::try_to_vec;

use crate::call::Call;
use crate::calls::sockets::options::{Value, number};

const IP_TOS: u32 = 1;
const IP_TTL: u32 = 2;
const IP_PKTINFO: u32 = 8;
const IP_MTU_DISCOVER: u32 = 10;
const IP_RECVERR: u32 = 11;
const IP_RECVTTL: u32 = 12;
const IP_RECVTOS: u32 = 13;
const IP_FREEBIND: u32 = 15;
const IP_BIND_ADDRESS_NO_PORT: u32 = 24;
const IP_MULTICAST_TTL: u32 = 33;
const IPV6_UNICAST_HOPS: u32 = 16;
const IPV6_MULTICAST_HOPS: u32 = 18;
const IPV6_MTU_DISCOVER: u32 = 23;
const IPV6_RECVERR: u32 = 25;
const IPV6_V6ONLY: u32 = 26;
const IPV6_RECVPKTINFO: u32 = 49;
const IPV6_RECVHOPLIMIT: u32 = 51;
const IPV6_RECVTCLASS: u32 = 66;
const IPV6_TCLASS: u32 = 67;
/// The only way in which it is found out how fast the other side is.
const CONGESTION: &[u8] = b"reno";
const NAME_BYTES: usize = 16;

/// What there is to know of a stream beside its options.
#[derive(Clone, Copy, Default)]
pub struct Facts {
    pub is_stream: bool,
    pub is_bound: bool,
    pub is_6: bool,
    /// Linux's number of its state.
    pub state: u8,
}

/// Some options of IP may be one byte.
fn small_number(call: &Call<'_>, value: UserRange) -> Result<i32, Errno> {
    match value.bytes {
        0 => Err(Errno::EINVAL),
        1..4 => Ok(call.read::<u8>(value.address.0)?.into()),
        _ => call.read(value.address.0),
    }
}

/// Sets an option of a protocol. Errors: `ENOPROTOOPT` for one that is not known, `EINVAL`, `EFAULT`.
pub fn set(
    call: &Call<'_>,
    options: &mut Options,
    facts: Facts,
    [level, option]: [u32; 2],
    value: UserRange,
) -> Result<(), Errno> {
    match level {
        SOL_TCP if facts.is_stream => set_of_tcp(call, options, option, value),
        SOL_IP => set_of_ip(call, options, facts, option, value),
        SOL_IPV6 if facts.is_6 => set_of_ip_6(call, options, facts, option, value),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

fn set_of_tcp(call: &Call<'_>, options: &mut Options, option: u32, value: UserRange) -> Result<(), Errno> {
    if option == TCP_CONGESTION {
        let name = call.read_bytes(value.address.0, value.bytes.min(NAME_BYTES))?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        return if name[..end] == *CONGESTION { Ok(()) } else { Err(Errno::ENOENT) };
    }
    let given = number(call, value)?;
    let within = |least: i32, most: i32| {
        if (least..=most).contains(&given) { Ok(given as u32) } else { Err(Errno::EINVAL) }
    };
    match option {
        TCP_NODELAY => options.is_quick = given != 0,
        TCP_CORK => options.is_corked = given != 0,
        TCP_KEEPIDLE => options.keep_idle = within(1, 32_767)?,
        TCP_KEEPINTVL => options.keep_interval = within(1, 32_767)?,
        TCP_KEEPCNT => options.keep_count = within(1, 127)?,
        TCP_SYNCNT => options.syn_count = within(1, 127)?,
        TCP_LINGER2 => options.linger_2 = given.clamp(0, 120) as u32,
        TCP_QUICKACK => options.acknowledges_at_once = Some(given != 0),
        TCP_USER_TIMEOUT => options.user_timeout = within(0, i32::MAX)?,
        // What is not there can be switched off.
        TCP_DEFER_ACCEPT | TCP_WINDOW_CLAMP | TCP_FASTOPEN if given == 0 => {}
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

fn set_of_ip(call: &Call<'_>, options: &mut Options, facts: Facts, option: u32, value: UserRange) -> Result<(), Errno> {
    let given = small_number(call, value)?;
    match option {
        IP_TOS => options.service = service(given, options.service, facts),
        IP_TTL => {
            options.hops = match given {
                -1 => 64,
                1..=255 => given as u8,
                _ => return Err(Errno::EINVAL),
            }
        }
        IP_MULTICAST_TTL => {
            options.multicast_hops = match given {
                -1 => 1,
                0..=255 => given as u8,
                _ => return Err(Errno::EINVAL),
            }
        }
        IP_PKTINFO => options.tells_destination = given != 0,
        IP_RECVTTL => options.tells_hops = given != 0,
        IP_RECVTOS => options.tells_service = given != 0,
        IP_MTU_DISCOVER if !(0..=5).contains(&given) => return Err(Errno::EINVAL),
        IP_MTU_DISCOVER => options.path_discovery = given as u8,
        IP_RECVERR if !facts.is_stream => options.queues_errors = given != 0,
        // A stream hears of them by its calls.
        IP_RECVERR if given == 0 => {}
        IP_FREEBIND => options.binds_anywhere = given != 0,
        IP_BIND_ADDRESS_NO_PORT => options.binds_no_port = given != 0,
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

fn set_of_ip_6(
    call: &Call<'_>,
    options: &mut Options,
    facts: Facts,
    option: u32,
    value: UserRange,
) -> Result<(), Errno> {
    let given = number(call, value)?;
    match option {
        IPV6_V6ONLY if facts.is_bound => return Err(Errno::EINVAL),
        IPV6_V6ONLY => options.only_6 = given != 0,
        IPV6_UNICAST_HOPS | IPV6_MULTICAST_HOPS if !(-1..=255).contains(&given) => return Err(Errno::EINVAL),
        IPV6_UNICAST_HOPS => options.hops = u8::try_from(given).unwrap_or(64),
        IPV6_MULTICAST_HOPS => options.multicast_hops = u8::try_from(given).unwrap_or(1),
        IPV6_TCLASS if !(-1..=255).contains(&given) => return Err(Errno::EINVAL),
        IPV6_TCLASS => options.service = service(given.max(0), options.service, facts),
        IPV6_RECVPKTINFO => options.tells_destination = given != 0,
        IPV6_RECVHOPLIMIT => options.tells_hops = given != 0,
        IPV6_RECVTCLASS => options.tells_service = given != 0,
        IPV6_MTU_DISCOVER if !(0..=5).contains(&given) => return Err(Errno::EINVAL),
        // Nobody cuts a packet of IP 6 on its way, and nobody here does: that is what these say.
        IPV6_MTU_DISCOVER if (1..=3).contains(&given) => options.path_discovery = given as u8,
        IPV6_RECVERR if !facts.is_stream => options.queues_errors = given != 0,
        IPV6_RECVERR if given == 0 => {}
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

/// Of a stream the two bits that tell of congestion are not the program's (RFC 3168).
fn service(given: i32, before: u8, facts: Facts) -> u8 {
    const CONGESTION_BITS: u8 = 3;
    let given = given as u8;
    if facts.is_stream { given & !CONGESTION_BITS | before & CONGESTION_BITS } else { given }
}

/// An option's value. Error: `ENOPROTOOPT`.
pub fn get(options: &Options, facts: Facts, [level, option]: [u32; 2]) -> Result<Vec<u8>, Errno> {
    let word = match level {
        SOL_TCP if facts.is_stream => match of_tcp(options, facts, option)? {
            Value::Word(word) => word,
            Value::Bytes(bytes) => return Ok(bytes),
        },
        SOL_IP => of_ip(options, option)?,
        SOL_IPV6 if facts.is_6 => of_ip_6(options, option)?,
        _ => return Err(Errno::ENOPROTOOPT),
    };
    Ok(try_to_vec(&word.to_le_bytes())?)
}

fn of_tcp(options: &Options, facts: Facts, option: u32) -> Result<Value, Errno> {
    Ok(Value::Word(match option {
        TCP_NODELAY => options.is_quick.into(),
        TCP_CORK => options.is_corked.into(),
        TCP_KEEPIDLE => options.keep_idle,
        TCP_KEEPINTVL => options.keep_interval,
        TCP_KEEPCNT => options.keep_count,
        TCP_SYNCNT => options.syn_count,
        TCP_LINGER2 => options.linger_2,
        TCP_DEFER_ACCEPT | TCP_WINDOW_CLAMP | TCP_FASTOPEN => 0,
        TCP_MAXSEG if facts.state == 1 => 1460,
        TCP_MAXSEG => 536,
        TCP_USER_TIMEOUT => options.user_timeout,
        TCP_QUICKACK => options.acknowledges_at_once.unwrap_or(true).into(),
        TCP_CONGESTION => {
            let mut name = [0; NAME_BYTES];
            name[..CONGESTION.len()].copy_from_slice(CONGESTION);
            return Ok(Value::Bytes(try_to_vec(&name)?));
        }
        TCP_INFO => {
            // `struct tcp_info`: the state, and what is the same for all connections (window scales, times in microseconds).
            let mut info = [0; 104];
            info[0] = facts.state;
            1460u32.put(&mut info[16..]);
            1460u32.put(&mut info[20..]);
            return Ok(Value::Bytes(try_to_vec(&info)?));
        }
        _ => return Err(Errno::ENOPROTOOPT),
    }))
}

fn of_ip(options: &Options, option: u32) -> Result<u32, Errno> {
    Ok(match option {
        IP_TOS => options.service.into(),
        IP_TTL => options.hops.into(),
        IP_MULTICAST_TTL => options.multicast_hops.into(),
        IP_PKTINFO => options.tells_destination.into(),
        IP_RECVTTL => options.tells_hops.into(),
        IP_RECVTOS => options.tells_service.into(),
        IP_MTU_DISCOVER => options.path_discovery.into(),
        IP_RECVERR => options.queues_errors.into(),
        IP_FREEBIND => options.binds_anywhere.into(),
        IP_BIND_ADDRESS_NO_PORT => options.binds_no_port.into(),
        _ => return Err(Errno::ENOPROTOOPT),
    })
}

fn of_ip_6(options: &Options, option: u32) -> Result<u32, Errno> {
    Ok(match option {
        IPV6_V6ONLY => options.only_6.into(),
        IPV6_UNICAST_HOPS => options.hops.into(),
        IPV6_MULTICAST_HOPS => options.multicast_hops.into(),
        IPV6_TCLASS => options.service.into(),
        IPV6_RECVPKTINFO => options.tells_destination.into(),
        IPV6_RECVHOPLIMIT => options.tells_hops.into(),
        IPV6_RECVTCLASS => options.tells_service.into(),
        IPV6_MTU_DISCOVER => options.path_discovery.into(),
        IPV6_RECVERR => options.queues_errors.into(),
        _ => return Err(Errno::ENOPROTOOPT),
    })
}
