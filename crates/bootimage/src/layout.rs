//! The numbers of the format: offsets inside the records, limits, and how to read a number from bytes.

/// Alignment of file data, and of the whole archive in memory.
pub const PAGE_BYTES: u64 = 4096;
/// Version of the format. A reader accepts its own version only: tool and kernel are built together.
pub const VERSION: u32 = 1;
/// Most entries in an archive; more is taken for damage.
pub const ENTRIES_MAX: u32 = 1 << 20;
/// Longest path and longest symlink target (Linux `PATH_MAX` with its terminator).
pub const PATH_BYTES_MAX: usize = 4095;
/// Longest name inside a path (Linux `NAME_MAX`).
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Largest configuration record: Linux allows 2 MiB of arguments and environment.
pub(crate) const CONFIG_BYTES_MAX: usize = 4 << 20;

pub(crate) const MAGIC: [u8; 8] = *b"SYNBOOT\0";
pub(crate) const HEADER_BYTES: usize = 96;
pub(crate) const RECORD_BYTES: usize = 72;

/// Offsets of the header's fields.
pub(crate) mod header {
    pub const VERSION: usize = 8;
    pub const ENTRY_COUNT: usize = 12;
    pub const INDEX_OFFSET: usize = 16;
    pub const STRINGS_OFFSET: usize = 24;
    pub const STRINGS_BYTES: usize = 32;
    pub const CONFIG_OFFSET: usize = 40;
    pub const CONFIG_BYTES: usize = 48;
    pub const DATA_OFFSET: usize = 56;
    pub const TOTAL_BYTES: usize = 64;
}

/// Offsets of an index record's fields. `A` and `B` depend on the kind:
/// file: data offset, data length; symlink: target offset in strings, length;
/// character device: major, minor; hard link: index of the file entry, zero.
pub(crate) mod record {
    pub const PATH_OFFSET: usize = 0;
    pub const PATH_BYTES: usize = 4;
    pub const KIND: usize = 8;
    pub const MODE: usize = 12;
    pub const UID: usize = 16;
    pub const GID: usize = 20;
    pub const MTIME_S: usize = 24;
    pub const MTIME_NS: usize = 32;
    pub const A: usize = 40;
    pub const B: usize = 48;
}

/// Values of the kind field.
pub(crate) mod kind {
    pub const DIRECTORY: u32 = 1;
    pub const FILE: u32 = 2;
    pub const SYMLINK: u32 = 3;
    pub const CHAR_DEVICE: u32 = 4;
    pub const FIFO: u32 = 5;
    pub const HARD_LINK: u32 = 6;
}

/// The `N` bytes at `offset`, if they are there.
fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// `value` rounded up to a page; `None` when that overflows.
pub(crate) fn page_up(value: u64) -> Option<u64> {
    value.checked_next_multiple_of(PAGE_BYTES)
}

/// Whether `path` is absolute and in the one spelling the archive allows: no empty, `.` or `..` component,
/// no trailing slash, no NUL, names and whole within Linux's limits.
pub(crate) fn is_plain_path(path: &[u8]) -> bool {
    if path == b"/" {
        return true;
    }
    let [b'/', names @ ..] = path else { return false };
    path.len() <= PATH_BYTES_MAX
        && !path.contains(&0)
        && names
            .split(|&byte| byte == b'/')
            .all(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX && name != b"." && name != b"..")
}

/// The directory that contains `path`; `None` for the root. `path` must be plain.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    if path == b"/" {
        return None;
    }
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) | None => Some(b"/"),
        Some(slash) => Some(&path[..slash]),
    }
}
