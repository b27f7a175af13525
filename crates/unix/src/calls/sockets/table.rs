//! The numbers of these calls.

use abi::nr;

use super::{accept, bind, connect, getpeername, getsockname, listen, messages, options, shutdown, socket, socketpair};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::SOCKET, |call, [a, b, c, ..]| socket(call, a as u32, b as u32, c as u32)),
    (nr::SOCKETPAIR, |call, [a, b, c, d, ..]| socketpair(call, a as u32, b as u32, c as u32, d)),
    (nr::BIND, |call, [a, b, c, ..]| bind(call, a, b, c as u32 as u64)),
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
    (nr::GETSOCKNAME, |call, [a, b, c, ..]| getsockname(call, a, b, c)),
    (nr::GETPEERNAME, |call, [a, b, c, ..]| getpeername(call, a, b, c)),
    (nr::SETSOCKOPT, |call, [a, b, c, d, e, _]| options::setsockopt(call, a, [b as u32, c as u32], d, e)),
    (nr::GETSOCKOPT, |call, [a, b, c, d, e, _]| options::getsockopt(call, a, [b as u32, c as u32], d, e)),
];
