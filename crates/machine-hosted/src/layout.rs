//! Where things are in the address spaces that programs share with the kernel. All host processes have the kernel at the same addresses.
//!
//! ```text
//! 0x0000_0001_0000 ..                     programs that are linked at a fixed address, their break
//! 0x0000_6000_0000                        the kernel: image, stubs, code store, thread areas, heap
//! 0x0000_7fff_7000 ..                     the program's again
//! 0x1100_0000_0000 .. 0x1400_0000_0000    writable aliases of code, each host process's own stacks, the frames (direct map)
//! 0x5554_0000_0000 + 16 MB                stubs within reach of position-independent programs
//! 0x5555_5555_4000 ..                     position-independent programs
//! 0x7fff_9000_0000 + 16 MB                stubs within reach of libraries
//! .. 0x7fff_ffff_f000                     maps and the stack of the program
//! ```
//! Everything that synthesized code names lies in the low 2 GB, so a sign-extended 32-bit address reaches it.
//! The host's own stack and its vDSO are unmapped at start: all else belongs to the program.

use core::ops::Range;

use machine_x86::USER_LIMIT;

pub const KERNEL: Range<u64> = 0x6000_0000..0x7FFF_7000;
pub const CODE: u64 = 0x6400_0000;
pub const CODE_BYTES: u64 = 64 << 20;
pub const THREADS: u64 = 0x6800_0000;
pub const THREAD_AREAS: u64 = (128 << 20) / machine_x86::THREAD_AREA_BYTES;
pub const HEAP: u64 = 0x7000_0000;
pub const HEAP_BYTES: u64 = 0x0FFF_0000;

/// Writable aliases and the direct map.
pub const HIGH: Range<u64> = 0x1100_0000_0000..0x1400_0000_0000;
pub const CODE_ALIAS: u64 = 0x1100_0000_0000;
pub const STUB_ALIAS: u64 = 0x1101_0000_0000;
/// What each host process has of its own: a page of words, a stack between guards, and a stack for signals.
pub const OWN: u64 = 0x1102_0000_0000;
pub const OWN_STACK_TOP: u64 = OWN + (64 << 10);
pub const SIGNAL_STACK: u64 = OWN + (128 << 10);
pub const SIGNAL_STACK_BYTES: u64 = 256 << 10;
/// The threads' window once more, without guard pages.
pub const THREADS_ALIAS: u64 = 0x1103_0000_0000;
pub const DIRECT_MAP: u64 = 0x1200_0000_0000;

pub const STUB_BYTES: u64 = 16 << 20;
/// Stub regions: each serves call sites within 2 GB.
pub const STUBS: [u64; 3] = [0x6300_0000, 0x5554_0000_0000, 0x7FFF_9000_0000];

/// What programs cannot have, ascending.
pub static RESERVED: [Range<u64>; 4] = [KERNEL, HIGH, STUBS[1]..STUBS[1] + STUB_BYTES, STUBS[2]..STUBS[2] + STUB_BYTES];

/// Below this the host maps nothing for an ordinary user (`vm.mmap_min_addr`).
pub const USER_START: u64 = 0x1_0000;

unsafe extern "C" {
    static text_start: u8;
    static text_end: u8;
    static data_start: u8;
    static bss_start: u8;
    static image_end: u8;
}

/// The image's data: what it begins with, and all of it.
pub fn data() -> [Range<u64>; 2] {
    let start = &raw const data_start as u64;
    [start..&raw const bss_start as u64, start..&raw const image_end as u64]
}

/// The image's text: host calls made from here pass.
pub fn text() -> Range<u64> {
    &raw const text_start as u64..&raw const text_end as u64
}

/// Synthesized code.
pub fn is_code(address: u64) -> bool {
    (CODE..CODE + CODE_BYTES).contains(&address)
}

/// A program could have this address.
pub fn is_user(address: u64) -> bool {
    address < USER_LIMIT && !RESERVED.iter().any(|range| range.contains(&address))
}

/// The direct-map address of a frame.
pub const fn direct(physical: u64) -> u64 {
    DIRECT_MAP + physical
}
