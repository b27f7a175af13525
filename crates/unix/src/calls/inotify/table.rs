//! The numbers of these calls.

use abi::nr;

use super::{add_watch, inotify_init, rm_watch};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::INOTIFY_INIT, |call, _| inotify_init(call, 0)),
    (nr::INOTIFY_INIT1, |call, [a, ..]| inotify_init(call, a as u32)),
    (nr::INOTIFY_ADD_WATCH, |call, [a, b, c, ..]| add_watch(call, a, b, c as u32)),
    (nr::INOTIFY_RM_WATCH, |call, [a, b, ..]| rm_watch(call, a, b as i32)),
];
