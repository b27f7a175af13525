//! Futexes and the scheduling calls.

use super::Entry;

pub const CALLS: &[Entry] = &[];
