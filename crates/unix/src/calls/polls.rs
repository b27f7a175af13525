//! Waiting for several streams: poll, select, epoll, eventfd.

use super::Entry;

pub const CALLS: &[Entry] = &[];
