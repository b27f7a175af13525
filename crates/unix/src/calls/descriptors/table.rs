//! The numbers of these calls.

use abi::nr;

use super::{close_range, control, dup, dup2, dup3, locks, pipe2};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::DUP, |call, [a, ..]| dup(call, a)),
    (nr::DUP2, |call, [a, b, ..]| dup2(call, a, b)),
    (nr::DUP3, |call, [a, b, c, ..]| dup3(call, a, b, c as u32)),
    (nr::CLOSE_RANGE, |call, [a, b, c, ..]| close_range(call, a, b, c)),
    (nr::PIPE, |call, [a, ..]| pipe2(call, a, 0)),
    (nr::PIPE2, |call, [a, b, ..]| pipe2(call, a, b as u32)),
    (nr::FCNTL, |call, [a, b, c, ..]| control::fcntl(call, a, b as u32, c)),
    (nr::FLOCK, |call, [a, b, ..]| locks::flock(call, a, b as u32)),
];
