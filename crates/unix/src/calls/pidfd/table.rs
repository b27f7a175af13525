//! The numbers of these calls.

use abi::nr;

use super::{advice, compare, pidfd_getfd, pidfd_open, pidfd_send_signal};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::PIDFD_OPEN, |call, [a, b, ..]| pidfd_open(call, a as i32, b as u32)),
    (nr::PIDFD_SEND_SIGNAL, |call, arguments| pidfd_send_signal(call, arguments)),
    (nr::PIDFD_GETFD, |call, [a, b, c, ..]| pidfd_getfd(call, a, b, c as u32)),
    (nr::PROCESS_MADVISE, |call, arguments| advice::process_madvise(call, arguments)),
    (nr::PROCESS_MRELEASE, |call, [a, b, ..]| advice::process_mrelease(call, a, b as u32)),
    (nr::KCMP, |call, arguments| compare::kcmp(call, arguments)),
];
