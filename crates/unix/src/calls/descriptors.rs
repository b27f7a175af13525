//! Calls on descriptors: dup, fcntl, locks, pipes.

use super::Entry;

pub const CALLS: &[Entry] = &[];
