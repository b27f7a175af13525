//! Pages of a large file that goes, or is cut: they are given back in parts, ahead of the end itself.

use alloc::sync::Arc;

use kernel::file::Node;
use kernel::schedule::Scheduler;
use machine::{Held, PAGE_BYTES};

const PAGE: u64 = PAGE_BYTES as u64;

/// Bytes of memory, or of a file, whose pages are given back between two safe points, and how many make it worth while.
pub const RELEASE_BYTES: u64 = 256 << 10;
pub const LARGE_BYTES: u64 = 512 << 10;

/// Whether a file has so many pages that they go in parts.
pub fn is_long_to_empty(node: &Node) -> bool {
    node.content().is_some_and(|content| content.pages_present() * PAGE > LARGE_BYTES)
}

/// Gives back the pages of a file from `size_bytes` on, which is about to be cut there, if they are many.
pub fn shorten(held: Held<'_>, scheduler: &Scheduler, node: &Node, size_bytes: u64) {
    let is_large = is_long_to_empty(node);
    let mut next = size_bytes;
    while is_large && let Some(at) = node.release_some(next, RELEASE_BYTES) {
        next = at;
        scheduler.breathe(held);
    }
}

/// A file whose last name has gone, if nobody else has it: its pages go before it does.
pub fn empty(held: Held<'_>, scheduler: &Scheduler, node: &Arc<Node>) {
    if Arc::strong_count(node) == 1 && node.attributes().links == 0 {
        shorten(held, scheduler, node, 0);
    }
}
