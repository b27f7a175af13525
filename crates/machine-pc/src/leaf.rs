//! Looking for used entries in a leaf table, most of which are not.

use machine::PAGE_BYTES;

use crate::paging::{LEAF_BYTES, index, load};

/// Entries of a leaf table that are looked at together: a line of the cache.
const LINE_ENTRIES: usize = 8;

/// How many entries from that of `page` on are unused, by whole lines up to `end`; `None` where no line begins, or the first is used.
#[inline(always)]
pub fn empty_entries(at: *mut u64, page: u64, end: u64) -> Option<usize> {
    let line_bytes = (LINE_ENTRIES * PAGE_BYTES) as u64;
    if page & (line_bytes - 1) != 0 {
        return None;
    }
    let lines = ((end - page) / line_bytes) as usize;
    let is_empty = |line: &usize| {
        let first = at.wrapping_add(line * LINE_ENTRIES);
        (0..LINE_ENTRIES).fold(0, |used, entry| used | load(first.wrapping_add(entry))) == 0
    };
    let empty = (0..lines).take_while(is_empty).count();
    (empty > 0).then_some(empty * LINE_ENTRIES)
}

/// The first page from `address` on in a leaf table that is used, and its entry; else where to go on.
pub fn first_used(leaf: *mut u64, address: u64, end: u64) -> Result<(u64, u64), u64> {
    let end = end.min((address & !(LEAF_BYTES - 1)) + LEAF_BYTES);
    let mut page = address;
    let mut at = leaf.wrapping_add(index(address, 0));
    while page < end {
        let value = load(at);
        if value != 0 {
            return Ok((page, value));
        }
        if let Some(empty) = empty_entries(at, page, end) {
            at = at.wrapping_add(empty);
            page += empty as u64 * PAGE_BYTES as u64;
            continue;
        }
        at = at.wrapping_add(1);
        page += PAGE_BYTES as u64;
    }
    Err(end)
}
