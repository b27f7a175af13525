//! What the system says about itself: names, memory, random bytes.

use super::Entry;

pub const CALLS: &[Entry] = &[];
