//! Limits of the emulator, and what happens when they are reached.

/// Longest path, its NUL counted; longer ones are `ENAMETOOLONG`.
pub const PATH_BYTES_MAX: usize = 4096;

/// Most bytes one read or write moves, as on Linux (`MAX_RW_COUNT`); more is cut.
pub const TRANSFER_BYTES_MAX: usize = 0x7FFF_F000;

/// Descriptors a process may have by default (soft RLIMIT_NOFILE); then `EMFILE`.
pub const DESCRIPTORS_DEFAULT: u64 = 1024;

/// Descriptors a process may ask for (hard RLIMIT_NOFILE).
pub const DESCRIPTORS_MAX: u64 = 65_536;

/// Largest process id; ids are used again after it.
pub const PROCESS_ID_MAX: u32 = 32_768;

/// Tasks in all; then `fork` is `EAGAIN`. Bounded so that a fork bomb leaves thread areas and memory.
pub const TASKS_MAX: usize = 4_096;

/// Frames that programs cannot take: what the kernel needs to end a program when memory is out.
pub const RESERVE_FRAMES: usize = 256;

/// Buffers of at most this many bytes are copied through the kernel's own memory at once.
pub const PIECE_BYTES: usize = 16_384;
