//! Limits of the emulator, and what happens when they are reached.

/// Longest path, its NUL counted; longer ones are `ENAMETOOLONG`.
pub const PATH_BYTES_MAX: usize = 4096;

/// Most bytes one read or write moves, as on Linux (`MAX_RW_COUNT`); more is cut.
pub const TRANSFER_BYTES_MAX: usize = 0x7FFF_F000;

/// Descriptors a process may have by default (soft RLIMIT_NOFILE); then `EMFILE`.
pub const DESCRIPTORS_DEFAULT: u64 = 1024;

/// Descriptors a process may ask for at most (hard RLIMIT_NOFILE; fs.nr_open).
pub const DESCRIPTORS_MAX: u64 = 65_536;

/// Tasks in all; then `fork` is `EAGAIN`. Bounded so that a fork bomb leaves thread areas and memory.
pub const TASKS_MAX: usize = 4_096;

/// The last tasks are for branches of processes that have few: a bomb of forks or threads leaves the others some.
pub const TASKS_FOR_FEW: usize = 64;

/// Frames that programs cannot take: what the kernel needs to end a program when memory is out.
pub const RESERVE_FRAMES: usize = 256;

/// Free frames below which calls that make the kernel keep more are refused (`ENOMEM`). Programs' pages
/// stop at `RESERVE_FRAMES`, so only the kernel's own records lead here.
pub const CALL_FRAMES_MIN: usize = 192;

/// Free frames below which there is no new process (`ENOMEM`): it would not live long.
pub const FORK_FRAMES_MIN: usize = RESERVE_FRAMES + 64;

/// Bytes that a forked child needs for each area and each descriptor of its parent, at most.
pub const FORK_RECORD_BYTES: usize = 256;

/// Bytes that a thread takes beside its record: its stack in the kernel, its table of calls, its vector registers.
pub const THREAD_BYTES: usize = 7 * machine::PAGE_BYTES;

/// Buffers of at most this many bytes are copied through the kernel's own memory at once.
pub const PIECE_BYTES: usize = 16_384;

const _: () = assert!(RESERVE_FRAMES > CALL_FRAMES_MIN && CALL_FRAMES_MIN > machine::KERNEL_FRAMES_MIN);
