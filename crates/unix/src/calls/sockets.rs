//! Sockets, as far as programs without a network ask for them.

use super::Entry;

pub const CALLS: &[Entry] = &[];
