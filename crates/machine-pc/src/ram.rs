//! Who gets which of the machine's memory.

use alloc::vec::Vec;
use core::ops::Range;

use machine::{Frames, PAGE_BYTES};

use crate::frames::number;
use crate::pvh::BootInfo;

/// What boot hands to the kernel's pool: all RAM that boot has not used and that does not hold the archive. Boot may use up to
/// `used_to`.
///
/// # Safety
/// Called once; nobody uses the memory behind `used_to` but the archive's reader.
pub unsafe fn free_frames(info: &BootInfo, used_to: u64) -> Vec<Frames> {
    let archive = info.archive.clone().unwrap_or(0..0);
    // SAFETY: 1. The loader calls it RAM, and boot does not use it. 2. Its ranges are disjoint, and the archive is cut out.
    let frames =
        |range: Range<u64>| unsafe { Frames::new(number(range.start)..number(range.end).max(number(range.start))) };
    let mut free = Vec::new();
    for range in &info.ram {
        // The first megabyte holds the loader's records; the image's range is used up to `used_to`.
        let from = if range.contains(&(used_to - 1)) { used_to } else { range.start.max(1 << 20) };
        free.push(frames(from..range.end.min(archive.start.max(from))));
        free.push(frames(from.max(archive.end.next_multiple_of(PAGE_BYTES as u64))..range.end));
    }
    // The counts must reach every frame that may be adopted or given back later.
    let all = info.ram.iter().map(|range| range.end).max().unwrap_or(0);
    free.retain(|frames| frames.count() > 0);
    free.push(frames(all..all));
    free
}

/// The frames that the archive lies in.
///
/// # Safety
/// Called once.
pub unsafe fn archive_frames(info: &BootInfo) -> Frames {
    let range = info.archive.clone().unwrap_or(0..0);
    // SAFETY: the loader left the archive here; `free_frames` leaves these frames out.
    unsafe { Frames::new(number(range.start)..number(range.end.next_multiple_of(PAGE_BYTES as u64))) }
}
