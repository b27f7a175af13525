//! The numbers of these calls.

use abi::nr;

use super::{
    capabilities, get_robust_list, getpid, getppid, gettid, groups, set_robust_list, set_tid_address, settings, users,
};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::GETPID, |call, _| getpid(call)),
    (nr::GETPPID, |call, _| getppid(call)),
    (nr::GETTID, |call, _| gettid(call)),
    (nr::SET_TID_ADDRESS, |call, [a, ..]| set_tid_address(call, a)),
    (nr::SET_ROBUST_LIST, |call, [a, b, ..]| set_robust_list(call, a, b)),
    (nr::GET_ROBUST_LIST, |call, [a, b, c, ..]| get_robust_list(call, a, b, c)),
    (nr::GETPGRP, |call, _| groups::getpgid(call, 0)),
    (nr::GETPGID, |call, [a, ..]| groups::getpgid(call, a)),
    (nr::SETPGID, |call, [a, b, ..]| groups::setpgid(call, a, b)),
    (nr::GETSID, |call, [a, ..]| groups::getsid(call, a)),
    (nr::SETSID, |call, _| groups::setsid(call)),
    (nr::GETUID, |call, _| Ok(call.process().user_ids.get().real.into())),
    (nr::GETEUID, |call, _| Ok(call.process().user_ids.get().effective.into())),
    (nr::GETGID, |call, _| Ok(call.process().group_ids.get().real.into())),
    (nr::GETEGID, |call, _| Ok(call.process().group_ids.get().effective.into())),
    (nr::GETRESUID, |call, [a, b, c, ..]| users::get_three(call, call.process().user_ids.get(), [a, b, c])),
    (nr::GETRESGID, |call, [a, b, c, ..]| users::get_three(call, call.process().group_ids.get(), [a, b, c])),
    (nr::SETUID, |call, [a, ..]| users::setuid(call, a)),
    (nr::SETGID, |call, [a, ..]| users::setgid(call, a)),
    (nr::SETREUID, |call, [a, b, ..]| users::setreuid(call, a, b)),
    (nr::SETREGID, |call, [a, b, ..]| users::setregid(call, a, b)),
    (nr::SETRESUID, |call, [a, b, c, ..]| users::setresuid(call, [a, b, c])),
    (nr::SETRESGID, |call, [a, b, c, ..]| users::setresgid(call, [a, b, c])),
    (nr::SETFSUID, |call, [a, ..]| users::setfsuid(call, a)),
    (nr::SETFSGID, |call, [a, ..]| users::setfsgid(call, a)),
    (nr::GETGROUPS, |call, [a, b, ..]| users::getgroups(call, a, b)),
    (nr::SETGROUPS, |call, [a, b, ..]| users::setgroups(call, a, b)),
    (nr::CAPGET, |call, [a, b, ..]| capabilities::capget(call, a, b)),
    (nr::CAPSET, |call, [a, b, ..]| capabilities::capset(call, a, b)),
    (nr::PRCTL, |call, [a, b, c, d, e, _]| settings::prctl(call, [a, b, c, d, e])),
];
