//! Arguments of the socket calls.

use alloc::format;
use alloc::string::String;

use abi::Field;
use abi::socket::*;

use super::call::Call;
use super::records;
use super::text;

/// `SOCK_STREAM|SOCK_CLOEXEC`.
pub fn kind(call: &Call, index: usize) -> Option<String> {
    let flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    let value = call.word(index);
    let base = text::choice((value & !flags).into(), SOCKET_TYPES);
    Some(text::base_and_flags(base, (value & flags).into(), SOCKET_FLAGS))
}

/// The protocol, by name in the internet families.
pub fn protocol(call: &Call, index: usize) -> Option<String> {
    Some(match call.word(0) as u16 {
        AF_INET | AF_INET6 => text::choice(call.word(index).into(), PROTOCOLS),
        _ => format!("{}", call.word(index)),
    })
}

/// An address of `length` bytes.
fn address(call: &Call, pointer: u64, length: u32) -> Option<String> {
    let bytes = call.bytes(pointer, (length as usize).min(128)).filter(|bytes| bytes.len() >= 2)?;
    let family = u16::get(&bytes);
    let name = text::choice(family.into(), FAMILIES);
    let rest = match family {
        AF_UNIX => unix_path(&bytes[2..]),
        AF_INET if bytes.len() >= SockaddrIn::BYTES => {
            let SockaddrIn { sin_port, sin_addr: [a, b, c, d], .. } = SockaddrIn::get(&bytes);
            format!(", sin_port=htons({}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")", u16::from_be_bytes(sin_port))
        }
        AF_INET6 if bytes.len() >= SockaddrIn6::BYTES => inet6(&SockaddrIn6::get(&bytes)),
        _ => format!(", sa_data={}", text::quoted(&bytes[2..], false)),
    };
    Some(format!("{{sa_family={name}{rest}}}"))
}

fn unix_path(path: &[u8]) -> String {
    match path {
        [] => String::new(),
        // An abstract name starts with a zero and has no end but the length.
        [0, name @ ..] => format!(", sun_path=@{}", text::quoted(name, false)),
        path => {
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            format!(", sun_path={}", text::quoted(&path[..end], false))
        }
    }
}

fn inet6(address: &SockaddrIn6) -> String {
    let port = u16::from_be_bytes(address.sin6_port);
    let flow = u32::from_be(address.sin6_flowinfo);
    let host = inet6_text(address.sin6_addr);
    format!(
        ", sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), inet_pton(AF_INET6, \"{host}\", &sin6_addr), \
         sin6_scope_id={}",
        address.sin6_scope_id
    )
}

/// The text of an address (RFC 5952): groups in hexadecimal, the longest run of zero groups left out, the last four bytes
/// of an IPv4 address (`::ffff:` before it) in decimal.
fn inet6_text(bytes: [u8; 16]) -> String {
    let groups: [u16; 8] = core::array::from_fn(|at| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]));
    if let [0, 0, 0, 0, 0, 0xffff, ..] = groups {
        let [.., a, b, c, d] = bytes;
        return format!("::ffff:{a}.{b}.{c}.{d}");
    }
    let zeros_from = |at: usize| groups[at..].iter().take_while(|group| **group == 0).count();
    // The first of the longest runs; one group alone is shown.
    let (run, start) = (0..8).rev().map(|at| (zeros_from(at), at)).max_by_key(|(run, _)| *run).unwrap_or((0, 0));
    let gap = if run > 1 { start..start + run } else { 8..8 };
    let mut text = String::new();
    for (at, group) in groups.iter().enumerate() {
        if at == gap.start {
            text.push_str("::");
        } else if !gap.contains(&at) {
            if !text.is_empty() && !text.ends_with(':') {
                text.push(':');
            }
            text.push_str(&format!("{group:x}"));
        }
    }
    text
}

#[cfg(test)]
#[test]
fn addresses_print_as_the_library_prints_them() {
    let mut random = 3u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Zero groups are usual; every thirty-second address is an IPv4 address in a longer one.
        let mut bytes = [0; 16];
        for (at, group) in bytes.chunks_exact_mut(2).enumerate() {
            if random >> (40 + at) & 1 != 0 {
                group.copy_from_slice(&((random >> at) as u16 & 0xfff).to_be_bytes());
            }
        }
        if random >> 59 == 0 {
            bytes[..12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        }
        assert_eq!(inet6_text(bytes), std::net::Ipv6Addr::from(bytes).to_string());
    }
    assert_eq!(inet6_text([0; 16]), "::");
}

/// An address that the program gives; its length is the next argument.
pub fn address_given(call: &Call, index: usize) -> Option<String> {
    let pointer = call.arguments[index];
    Some(address(call, pointer, call.word(index + 1)).unwrap_or_else(|| text::pointer(pointer)))
}

/// An address that the kernel gives; the next argument points to its length.
pub fn address_filled(call: &Call, index: usize) -> Option<String> {
    let pointer = call.arguments[index];
    let length = call.record::<u32>(call.arguments[index + 1]).filter(|_| call.succeeded());
    let line = length.and_then(|length| address(call, pointer, length));
    Some(line.unwrap_or_else(|| text::pointer(pointer)))
}

/// `[16]`: a length that the kernel writes.
pub fn address_length(call: &Call, index: usize) -> Option<String> {
    let pointer = call.arguments[index];
    Some(records::int(call, pointer).unwrap_or_else(|| text::pointer(pointer)))
}

/// `struct msghdr` with the bytes of `available`.
fn message(call: &Call, pointer: u64, available: u64) -> Option<String> {
    let header: Msghdr = call.record(pointer)?;
    let name = address(call, header.msg_name, header.msg_namelen as u32);
    let vectors = records::iovec(call, header.msg_iov, header.msg_iovlen, available);
    let control = match header.msg_control {
        0 => String::new(),
        address => format!(" msg_control={address:#x},"),
    };
    Some(format!(
        "{{msg_name={}, msg_namelen={}, msg_iov={}, msg_iovlen={},{control} msg_controllen={}, msg_flags={}}}",
        name.unwrap_or_else(|| text::pointer(header.msg_name)),
        header.msg_namelen,
        vectors.unwrap_or_else(|| text::pointer(header.msg_iov)),
        header.msg_iovlen,
        header.msg_controllen,
        text::flags(header.msg_flags.into(), MESSAGE_FLAGS),
    ))
}

/// The message of `sendmsg`.
pub fn message_given(call: &Call, pointer: u64) -> Option<String> {
    message(call, pointer, u64::MAX)
}

/// The message of `recvmsg`.
pub fn message_filled(call: &Call, pointer: u64) -> Option<String> {
    message(call, pointer, call.result? as u64)
}

/// The option's name; the argument before it is the level.
pub fn option(call: &Call, index: usize) -> Option<String> {
    let value = call.word(index).into();
    Some(match call.word(index - 1) {
        SOL_SOCKET => text::choice(value, SOCKET_OPTIONS),
        SOL_TCP => text::choice(value, TCP_OPTIONS),
        _ => text::hex(value),
    })
}

/// The value of `setsockopt`.
pub fn option_given(call: &Call, index: usize) -> Option<String> {
    let pointer = call.arguments[index];
    let line = option_value(call, pointer, call.word(index + 1));
    Some(line.unwrap_or_else(|| text::pointer(pointer)))
}

/// The value of `getsockopt`.
pub fn option_filled(call: &Call, index: usize) -> Option<String> {
    let pointer = call.arguments[index];
    let length = call.record::<u32>(call.arguments[index + 1]).filter(|_| call.succeeded());
    let line = length.and_then(|length| option_value(call, pointer, length));
    Some(line.unwrap_or_else(|| text::pointer(pointer)))
}

fn option_value(call: &Call, pointer: u64, length: u32) -> Option<String> {
    match (call.word(1), call.word(2), length) {
        (SOL_SOCKET, SO_LINGER, 8) => {
            let Linger { l_onoff, l_linger } = call.record(pointer)?;
            Some(format!("{{l_onoff={l_onoff}, l_linger={l_linger}}}"))
        }
        (SOL_SOCKET, SO_PEERCRED, 12) => {
            let Ucred { pid, uid, gid } = call.record(pointer)?;
            Some(format!("{{pid={pid}, uid={uid}, gid={gid}}}"))
        }
        (SOL_SOCKET, SO_ERROR, 4) => {
            let error = call.record::<u32>(pointer)?;
            let name = u16::try_from(error).ok().and_then(abi::Errno::from_number);
            Some(name.map_or_else(|| format!("[{error}]"), |errno| format!("[{}]", errno.name())))
        }
        (_, _, 4) => records::int(call, pointer),
        (_, _, length) => records::bytes(call, pointer, length.into()),
    }
}
