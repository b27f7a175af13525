//! Calls that name files: stat and its kin, directories, links, times, owners.

use super::Entry;

pub const CALLS: &[Entry] = &[];
