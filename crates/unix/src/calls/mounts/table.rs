//! The numbers of these calls.

use abi::nr;

use super::{mount, umount};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::MOUNT, |call, [a, b, c, d, e, _]| mount(call, [a, b, c, d, e])),
    (nr::UMOUNT2, |call, [a, b, ..]| umount(call, a, b as u32)),
];
