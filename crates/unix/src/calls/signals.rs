//! Sending, blocking and handling signals.

use super::Entry;

pub const CALLS: &[Entry] = &[];
