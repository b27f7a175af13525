//! The numbers of these calls.

use abi::nr;

use super::{epoll, eventfd, poll, ppoll, select};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::POLL, |call, [a, b, c, ..]| poll(call, a, b, c as i32)),
    (nr::PPOLL, |call, arguments| ppoll(call, arguments)),
    (nr::SELECT, |call, [a, b, c, d, e, _]| select::select(call, a as i32, [b, c, d], e)),
    (nr::PSELECT6, |call, [a, b, c, d, e, f]| select::pselect6(call, a as i32, [b, c, d], e, f)),
    (nr::EPOLL_CREATE, |call, [a, ..]| epoll::epoll_create(call, a as i32)),
    (nr::EPOLL_CREATE1, |call, [a, ..]| epoll::epoll_create1(call, a as u32)),
    (nr::EPOLL_CTL, |call, [a, b, c, d, ..]| epoll::epoll_ctl(call, a, b as u32, c, d)),
    (nr::EPOLL_WAIT, |call, [a, b, c, d, ..]| epoll::epoll_wait(call, a, b, c as i32, d as i32)),
    (nr::EPOLL_PWAIT, |call, arguments| epoll::epoll_pwait(call, arguments)),
    (nr::EPOLL_PWAIT2, |call, arguments| epoll::epoll_pwait2(call, arguments)),
    (nr::EVENTFD, |call, [a, ..]| eventfd::eventfd(call, a as u32, 0)),
    (nr::EVENTFD2, |call, [a, b, ..]| eventfd::eventfd(call, a as u32, b as u32)),
];
