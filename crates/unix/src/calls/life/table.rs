//! The numbers of these calls.

use abi::nr;

use super::{birth, end, unshare, wait};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::FORK, |call, _| birth::fork(call)),
    (nr::VFORK, |call, _| birth::vfork(call)),
    (nr::CLONE, |call, arguments| birth::clone(call, arguments)),
    (nr::CLONE3, |call, [a, b, ..]| birth::clone3(call, a, b)),
    (nr::EXIT, |call, [a, ..]| end::exit_thread(call, a)),
    (nr::EXIT_GROUP, |call, [a, ..]| end::exit_group(call, a)),
    (nr::UNSHARE, |call, [a, ..]| unshare::unshare(call, a)),
    (nr::SETNS, |call, [a, b, ..]| unshare::setns(call, a, b as u32)),
    (nr::WAIT4, |call, [a, b, c, d, ..]| wait::wait4(call, a, b, c, d)),
    (nr::WAITID, |call, [a, b, c, d, e, _]| wait::waitid(call, [a, b, c, d, e])),
];
