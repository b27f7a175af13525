//! Limits of names, paths and files, and what happens when each is reached.

/// Longest name of a directory entry in bytes; a longer one is `ENAMETOOLONG` (Linux `NAME_MAX`).
pub const NAME_BYTES_MAX: usize = 255;
/// Longest path and longest symlink target in bytes, without the closing zero; a longer one is
/// `ENAMETOOLONG` (Linux `PATH_MAX` counts the zero).
pub const PATH_BYTES_MAX: usize = 4095;
/// Symlinks that one walk follows; the next one is `ELOOP` (Linux `MAXSYMLINKS`).
pub const LINKS_FOLLOWED_MAX: u32 = 40;
/// Largest file offset; writing at it is `EFBIG` (`off_t` is signed).
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;
/// Most bytes that one read or write moves; a larger count is cut (Linux `MAX_RW_COUNT`).
pub const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;
/// Record locks on one node; one more is `ENOLCK`.
pub const RECORD_LOCKS_MAX: usize = 8192;
