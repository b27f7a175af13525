//! Where things are in the kernel half, and the symbols of the linker script.
//!
//! ```text
//! 0x0000_0000_0000_0000 .. 0x0000_7fff_ffff_f000   the active quaspace
//! 0xffff_8880_0000_0000 ..                         direct map of physical memory (RW, NX)
//! 0xffff_ffff_8020_0000 ..                         kernel image (RX, R, RW)
//! 0xffff_ffff_a000_0000 .. +512 MB                 heap (RW, NX)
//! 0xffff_ffff_c000_0000 .. +64 MB                  code store (RX)
//! 0xffff_ffff_c400_0000 .. +64 MB                  the same frames, writable (RW, NX): only `codestore` writes here
//! 0xffff_ffff_c800_0000 .. +4 KB                   the local APIC once more, for the handlers of samples
//! 0xffff_ffff_d000_0000 .. +512 MB                 thread areas (RW, NX), 32 KB each
//! ```
//! Everything that synthesized code names lies in the top 2 GB, so a 32-bit displacement reaches it.

use core::ops::Range;

use machine::PAGE_BYTES;
use machine_x86::{GUARD_OFFSET, THREAD_AREA_BYTES};

pub const DIRECT_MAP: u64 = 0xFFFF_8880_0000_0000;
pub const IMAGE_WINDOW: u64 = 0xFFFF_FFFF_8000_0000;
pub const HEAP: u64 = 0xFFFF_FFFF_A000_0000;
pub const HEAP_BYTES: u64 = 512 << 20;
/// RAM above this physical address is not used: the frame pool's tables, 8 bytes for each frame below it, lie in the heap and take
/// no more than half of it. One GB above 128 GB, so that a machine with that much and a hole below 4 GB is used whole.
pub const RAM_END_MAX: u64 = 129 << 30;
const _: () = assert!(RAM_END_MAX / 4096 * 8 <= HEAP_BYTES / 2 + (2 << 20));
pub const CODE: u64 = 0xFFFF_FFFF_C000_0000;
pub const CODE_BYTES: u64 = 64 << 20;
/// Where handlers reach the local APIC without a register.
pub const NEAR_APIC: u64 = 0xFFFF_FFFF_C800_0000;
pub const THREADS: u64 = 0xFFFF_FFFF_D000_0000;
pub const THREAD_AREAS: u64 = (512 << 20) / THREAD_AREA_BYTES;

pub const KERNEL_CODE: u16 = 0x10;
pub const KERNEL_DATA: u16 = 0x18;
pub const TSS_SELECTOR: u16 = 0x40;

unsafe extern "C" {
    static image_start: u8;
    static text_end: u8;
    static rodata_end: u8;
    static image_end: u8;
    static boot_guard_page: u8;
}

/// The image's bounds: start, end of text, end of read-only data, end.
pub fn image() -> [u64; 4] {
    [
        &raw const image_start as u64,
        &raw const text_end as u64,
        &raw const rodata_end as u64,
        &raw const image_end as u64,
    ]
}

/// The page below boot's stack, which is not there.
pub fn boot_guard() -> Range<u64> {
    let start = &raw const boot_guard_page as u64;
    start..start + PAGE_BYTES as u64
}

/// The page below the stack that an address of a thread's area belongs to.
pub const fn thread_guard(address: u64) -> Range<u64> {
    let start = (address & !(THREAD_AREA_BYTES - 1)) + GUARD_OFFSET;
    start..start + PAGE_BYTES as u64
}

/// The direct-map address of a physical address.
pub const fn direct(physical: u64) -> u64 {
    DIRECT_MAP + physical
}
