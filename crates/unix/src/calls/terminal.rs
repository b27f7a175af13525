//! ioctl, and the terminal.

use super::Entry;

pub const CALLS: &[Entry] = &[];
