//! Clocks, sleeping, timers.

use super::Entry;

pub const CALLS: &[Entry] = &[];
