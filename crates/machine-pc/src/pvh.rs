//! What the loader tells us: `hvm_start_info`, its memory map and module list.

use alloc::vec::Vec;
use core::ops::Range;

use crate::layout::{RAM_END_MAX, direct};

const MAGIC: u32 = 0x336E_C578;
const RAM: u32 = 1;

/// The loader's records, copied out of its memory.
pub struct BootInfo {
    /// Usable RAM, physical bytes, page-aligned inwards, in the loader's order.
    pub ram: Vec<Range<u64>>,
    /// The boot archive, physical bytes.
    pub archive: Option<Range<u64>>,
    pub command_line: Vec<u8>,
    /// Where ACPI's root pointer is; 0 without ACPI.
    pub acpi_root: u64,
}

/// Fixed-size first look, before there is a heap.
pub struct StartInfo {
    physical: u64,
}

impl StartInfo {
    /// # Safety
    /// `physical` must be what a PVH loader put in `ebx`.
    pub unsafe fn new(physical: u64) -> Option<StartInfo> {
        let info = StartInfo { physical };
        (info.u32(0) == MAGIC && info.u32(4) >= 1).then_some(info)
    }

    fn u32(&self, offset: u64) -> u32 {
        read(self.physical + offset)
    }

    fn u64(&self, offset: u64) -> u64 {
        read(self.physical + offset)
    }

    /// Usable RAM below [`RAM_END_MAX`].
    pub fn ram(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let entries = self.u64(40);
        (0..self.u32(48) as u64).filter_map(move |index| {
            let entry = entries + index * 24;
            let (start, bytes, kind): (u64, u64, u32) = (read(entry), read(entry + 8), read(entry + 16));
            let from = start.checked_next_multiple_of(4096)?;
            let to = start.saturating_add(bytes).min(RAM_END_MAX) & !4095;
            (kind == RAM && from < to).then_some(from..to)
        })
    }

    /// The boot archive: where `archive=START,BYTES` says, which may be above 4 GB, else the first module.
    pub fn archive(&self) -> Option<Range<u64>> {
        let named = self.command_line().split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(b"archive="));
        if let Some(place) = named {
            return range_of(place);
        }
        if self.u32(12) == 0 {
            return None;
        }
        let module = self.u64(16);
        let (start, bytes): (u64, u64) = (read(module), read(module + 8));
        Some(start..start + bytes)
    }

    /// The command line where the loader left it: only until memory is given away.
    pub fn command_line(&self) -> &[u8] {
        const BYTES_MAX: u64 = 4096;
        let text = self.u64(24);
        if text == 0 {
            return &[];
        }
        let count = (0..BYTES_MAX).find(|offset| read::<u8>(text + offset) == 0).unwrap_or(BYTES_MAX);
        // SAFETY: these bytes were just read, and nobody writes to the loader's records.
        unsafe { core::slice::from_raw_parts(direct(text) as *const u8, count as usize) }
    }

    pub fn copy(&self) -> BootInfo {
        let command_line = self.command_line().to_vec();
        BootInfo { ram: self.ram().collect(), archive: self.archive(), command_line, acpi_root: self.u64(32) }
    }
}

/// `START,BYTES` in decimal digits.
fn range_of(text: &[u8]) -> Option<Range<u64>> {
    let (start, bytes) = core::str::from_utf8(text).ok()?.split_once(',')?;
    let start: u64 = start.parse().ok()?;
    Some(start..start.checked_add(bytes.parse().ok()?)?)
}

/// Reads loader memory through the boot direct map (first 4 GB).
fn read<T: Copy>(physical: u64) -> T {
    assert!(physical < (4 << 30), "loader record above 4 GB");
    // SAFETY: 1. the boot tables map the first 4 GB. 2. The loader's records are plain integers.
    unsafe { (direct(physical) as *const T).read_unaligned() }
}
