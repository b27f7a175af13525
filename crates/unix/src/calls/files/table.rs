//! The numbers of these calls.

use abi::file::{AT_FDCWD, O_CREAT, O_TRUNC, O_WRONLY};
use abi::nr;

use super::{cached, close, nameless, openat, resolve};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::CLOSE, |call, [a, ..]| close(call, a)),
    (nr::OPENAT, |call, [a, b, c, d, ..]| openat(call, a, b, c as u32, d as u32)),
    (nr::OPEN, |call, [a, b, c, ..]| openat(call, AT_FDCWD as u64, a, b as u32, c as u32)),
    (nr::CREAT, |call, [a, b, ..]| openat(call, AT_FDCWD as u64, a, O_CREAT | O_WRONLY | O_TRUNC, b as u32)),
    (nr::CACHESTAT, |call, [a, b, c, d, ..]| cached::cachestat(call, a, b, c, d as u32)),
    (nr::OPENAT2, |call, [a, b, c, d, ..]| resolve::openat2(call, a, b, c, d)),
    (nr::MEMFD_CREATE, |call, [a, b, ..]| nameless::memfd_create(call, a, b as u32)),
];
