//! Every limit of a quaspace, with what happens when it is reached.

use machine::PAGE_BYTES;

pub(super) const PAGE: u64 = PAGE_BYTES as u64;

/// First address a program may never use: one page below the canonical hole, as Linux has it, so
/// that no instruction of a program can end next to a non-canonical address. Faults there are
/// `Unmapped`; maps that would cross it are refused.
pub const USER_LIMIT: u64 = 0x0000_7fff_ffff_f000;

/// Lowest address that may be mapped (Linux `vm.mmap_min_addr`), so that a null pointer with a
/// small offset always faults. A fixed map below it is `NotPermitted`.
pub const LOWEST_ADDRESS: u64 = 0x1_0000;

/// End of the first stack. Placement is the same in every run: there is no address randomization
/// yet, which keeps runs repeatable.
pub const STACK_TOP: u64 = USER_LIMIT;

/// Unmapped bytes kept below a stack (Linux `stack_guard_gap`, 256 pages). A stack that would grow
/// closer to the area below it faults instead.
pub const STACK_GUARD_BYTES: u64 = 256 * PAGE;

/// Bytes below `STACK_TOP` that mmap leaves to the stack at least, and at most.
pub(super) const STACK_ROOM_MIN_BYTES: u64 = 128 << 20;
pub(super) const STACK_ROOM_MAX_BYTES: u64 = USER_LIMIT / 6 * 5;

/// Where the search upwards starts when nothing is free below the mmap base.
pub(super) const BOTTOM_UP_BASE: u64 = (USER_LIMIT / 3) & !(PAGE - 1);

/// Where maps go that must have a 31-bit address (MAP_32BIT); without room there they are `NoMemory`.
pub(super) const LOW_BASE: u64 = 1 << 30;
pub(super) const LOW_END: u64 = 2 << 30;

/// Pages that are supplied ahead of use between two safe points.
pub(super) const POPULATED_PAGES: u64 = 32;

/// Areas in one quaspace at first (Linux `vm.max_map_count`).
pub(super) const AREAS_MAX: u64 = 65_530;

/// Pages of a backing that can be mapped: offsets are signed 64-bit numbers of bytes. A map behind
/// that is `Overflow`.
pub(super) const BACKING_PAGES_MAX: u64 = i64::MAX as u64 / PAGE;

/// Pages of a file that one read fault maps at most, an aligned window around the address. With twice as many, children of a fork map and
/// unmap what they never touch: `x=$(echo)` in a shell 118,700 instructions instead of 110,300, fork+wait 38,750 instead of 35,510;
/// a static program's start is 1 % cheaper then.
pub(super) const AROUND_PAGES: u64 = 8;
/// So many times as many on a machine whose faults are dear (`Translation::ahead_pages`).
pub(super) const WINDOWS_WHERE_DEAR: u64 = 32;

/// Pages of a writable segment that a program gets with the rest of it, where faults are dear.
pub(super) const SEGMENT_PAGES_AHEAD: u64 = 32;
/// Pages that a fork copies at once, where faults are dear.
pub(super) const FORK_COPIES_MAX: u64 = 24;
/// Of so many forks of a quaspace the first copies nothing.
pub(super) const FORKS_UNTIL_SHARED: u32 = 32;

/// The process limits that a quaspace itself enforces, in bytes; `u64::MAX` is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceLimits {
    /// All areas together (RLIMIT_AS).
    pub address_space_bytes: u64,
    /// Private writable areas that are not stacks, and the break (RLIMIT_DATA).
    pub data_bytes: u64,
    /// One stack (RLIMIT_STACK).
    pub stack_bytes: u64,
}

impl Default for SpaceLimits {
    fn default() -> SpaceLimits {
        SpaceLimits { address_space_bytes: u64::MAX, data_bytes: u64::MAX, stack_bytes: 8 << 20 }
    }
}

/// The page that holds `address`.
pub(super) const fn page_of(address: u64) -> u64 {
    address & !(PAGE - 1)
}

pub(super) const fn is_page_aligned(address: u64) -> bool {
    address & (PAGE - 1) == 0
}

/// `bytes` rounded up to whole pages; `None` when that leaves 64 bits.
pub(super) const fn round_up(bytes: u64) -> Option<u64> {
    match bytes.checked_add(PAGE - 1) {
        Some(sum) => Some(page_of(sum)),
        None => None,
    }
}
