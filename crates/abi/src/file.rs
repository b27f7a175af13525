//! Files: open flags, modes, directory entries, `stat` and its kin
//! (`asm-generic/fcntl.h`, `linux/fcntl.h`, `linux/stat.h`, `linux/fs.h`).

use crate::record::{numbers, record};

/// Bits of `open` flags that hold the access mode.
pub const O_ACCMODE: u32 = 3;
/// Read only; the absence of `O_WRONLY` and `O_RDWR`.
pub const O_RDONLY: u32 = 0;

numbers! {
    /// Flags of `open`, composed ones before their parts.
    OPEN_FLAGS: u32 {
        O_WRONLY = 0o1, O_RDWR = 0o2, O_CREAT = 0o100, O_EXCL = 0o200, O_NOCTTY = 0o400, O_TRUNC = 0o1000,
        O_APPEND = 0o2000, O_NONBLOCK = 0o4000, O_SYNC = 0o4010000, O_DSYNC = 0o10000, O_ASYNC = 0o20000,
        O_DIRECT = 0o40000, O_LARGEFILE = 0o100000, O_NOFOLLOW = 0o400000, O_NOATIME = 0o1000000,
        O_CLOEXEC = 0o2000000, O_PATH = 0o10000000, O_TMPFILE = 0o20200000, O_DIRECTORY = 0o200000,
    }
}

/// Directory descriptor that stands for the current directory.
pub const AT_FDCWD: i32 = -100;

numbers! {
    /// Flags of the `…at` calls. `AT_EACCESS` and `AT_REMOVEDIR` share a bit: the call tells which is meant.
    AT_FLAGS: u32 {
        AT_SYMLINK_NOFOLLOW = 0x100, AT_REMOVEDIR = 0x200, AT_SYMLINK_FOLLOW = 0x400, AT_NO_AUTOMOUNT = 0x800,
        AT_EMPTY_PATH = 0x1000, AT_STATX_FORCE_SYNC = 0x2000, AT_STATX_DONT_SYNC = 0x4000, AT_RECURSIVE = 0x8000,
    }
}
/// `faccessat2`: check with the effective instead of the real ids.
pub const AT_EACCESS: u32 = 0x200;
/// `statx`: synchronize as `stat` does.
pub const AT_STATX_SYNC_AS_STAT: u32 = 0;

numbers! {
    /// File types in a mode, under the mask `S_IFMT`.
    FILE_TYPES: u32 {
        S_IFSOCK = 0o140000, S_IFLNK = 0o120000, S_IFREG = 0o100000, S_IFBLK = 0o060000, S_IFDIR = 0o040000,
        S_IFCHR = 0o020000, S_IFIFO = 0o010000,
    }
}
/// Mask of the file type in a mode.
pub const S_IFMT: u32 = 0o170000;

numbers! {
    /// Permission bits of a mode.
    MODE_BITS: u32 {
        S_ISUID = 0o4000, S_ISGID = 0o2000, S_ISVTX = 0o1000, S_IRUSR = 0o400, S_IWUSR = 0o200, S_IXUSR = 0o100,
        S_IRGRP = 0o040, S_IWGRP = 0o020, S_IXGRP = 0o010, S_IROTH = 0o004, S_IWOTH = 0o002, S_IXOTH = 0o001,
    }
}

numbers! {
    /// Modes of `access`; `F_OK` is the absence of the others.
    ACCESS_MODES: u32 { R_OK = 4, W_OK = 2, X_OK = 1 }
}
/// `access`: only ask whether the file exists.
pub const F_OK: u32 = 0;

numbers! {
    /// Whence of `lseek`.
    SEEKS: u32 { SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2, SEEK_DATA = 3, SEEK_HOLE = 4 }
}

numbers! {
    /// Commands of `fcntl`.
    FCNTL_COMMANDS: u32 {
        F_DUPFD = 0, F_GETFD = 1, F_SETFD = 2, F_GETFL = 3, F_SETFL = 4, F_GETLK = 5, F_SETLK = 6, F_SETLKW = 7,
        F_SETOWN = 8, F_GETOWN = 9, F_SETSIG = 10, F_GETSIG = 11, F_SETOWN_EX = 15, F_GETOWN_EX = 16,
        F_OFD_GETLK = 36, F_OFD_SETLK = 37, F_OFD_SETLKW = 38, F_SETLEASE = 1024, F_GETLEASE = 1025,
        F_NOTIFY = 1026, F_DUPFD_CLOEXEC = 1030, F_SETPIPE_SZ = 1031, F_GETPIPE_SZ = 1032, F_ADD_SEALS = 1033,
        F_GET_SEALS = 1034,
    }
}
numbers! {
    /// Kinds of `f_owner_ex`.
    OWNER_KINDS: i32 { F_OWNER_TID = 0, F_OWNER_PID = 1, F_OWNER_PGRP = 2 }
}
numbers! {
    /// Flags of a descriptor (`F_GETFD`).
    DESCRIPTOR_FLAGS: u32 { FD_CLOEXEC = 1 }
}
numbers! {
    /// Kinds of record locks.
    LOCK_TYPES: u16 { F_RDLCK = 0, F_WRLCK = 1, F_UNLCK = 2 }
}
numbers! {
    /// Operations of `flock`.
    FLOCK_OPERATIONS: u32 { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 }
}
numbers! {
    /// Advice of `fadvise64`.
    FADVICE: u32 {
        POSIX_FADV_NORMAL = 0, POSIX_FADV_RANDOM = 1, POSIX_FADV_SEQUENTIAL = 2, POSIX_FADV_WILLNEED = 3,
        POSIX_FADV_DONTNEED = 4, POSIX_FADV_NOREUSE = 5,
    }
}
numbers! {
    /// Modes of `fallocate`.
    FALLOCATE_FLAGS: u32 {
        FALLOC_FL_KEEP_SIZE = 1, FALLOC_FL_PUNCH_HOLE = 2, FALLOC_FL_COLLAPSE_RANGE = 8, FALLOC_FL_ZERO_RANGE = 16,
        FALLOC_FL_INSERT_RANGE = 32, FALLOC_FL_UNSHARE_RANGE = 64,
    }
}
numbers! {
    /// Flags of `renameat2`.
    RENAME_FLAGS: u32 { RENAME_NOREPLACE = 1, RENAME_EXCHANGE = 2, RENAME_WHITEOUT = 4 }
}
numbers! {
    /// Flags of `memfd_create`.
    MEMFD_FLAGS: u32 { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_HUGETLB = 4 }
}
numbers! {
    /// Seals of a memory file.
    SEALS: u32 { F_SEAL_SEAL = 1, F_SEAL_SHRINK = 2, F_SEAL_GROW = 4, F_SEAL_WRITE = 8, F_SEAL_FUTURE_WRITE = 16 }
}
numbers! {
    /// Flags of `close_range`.
    CLOSE_RANGE_FLAGS: u32 { CLOSE_RANGE_UNSHARE = 2, CLOSE_RANGE_CLOEXEC = 4 }
}
numbers! {
    /// Flags of `preadv2` and `pwritev2`.
    RW_FLAGS: u32 { RWF_HIPRI = 1, RWF_DSYNC = 2, RWF_SYNC = 4, RWF_NOWAIT = 8, RWF_APPEND = 16 }
}
numbers! {
    /// Flags of `mount`.
    MOUNT_FLAGS: u64 {
        MS_RDONLY = 1, MS_NOSUID = 2, MS_NODEV = 4, MS_NOEXEC = 8, MS_SYNCHRONOUS = 16, MS_REMOUNT = 32,
        MS_NOATIME = 1024, MS_NODIRATIME = 2048, MS_BIND = 4096, MS_MOVE = 8192, MS_REC = 16384, MS_SILENT = 32768,
        MS_PRIVATE = 1 << 18, MS_SLAVE = 1 << 19, MS_SHARED = 1 << 20, MS_RELATIME = 1 << 21,
    }
}
numbers! {
    /// Flags of `setxattr`.
    XATTR_FLAGS: u32 { XATTR_CREATE = 1, XATTR_REPLACE = 2 }
}

/// Longest path with its final zero, in bytes.
pub const PATH_MAX: usize = 4096;
/// Longest name of a directory entry, in bytes.
pub const NAME_MAX: usize = 255;
/// Most elements of an iovec array.
pub const IOV_MAX: usize = 1024;

/// The file type and permission string's type bits say a directory.
pub const fn is_directory(mode: u32) -> bool {
    mode & S_IFMT == S_IFDIR
}

/// A device number as `stat` gives it.
pub const fn makedev(major: u32, minor: u32) -> u64 {
    let (major, minor) = (major as u64, minor as u64);
    (major & 0xffff_f000) << 32 | (major & 0xfff) << 8 | (minor & 0xffff_ff00) << 12 | minor & 0xff
}

/// Major half of a device number.
pub const fn major(device: u64) -> u32 {
    ((device >> 32 & 0xffff_f000) | (device >> 8 & 0xfff)) as u32
}

/// Minor half of a device number.
pub const fn minor(device: u64) -> u32 {
    ((device >> 12 & 0xffff_ff00) | (device & 0xff)) as u32
}

record! {
    /// `struct stat` (`asm/stat.h`).
    Stat, 144 bytes {
        st_dev: u64, st_ino: u64, st_nlink: u64, st_mode: u32, st_uid: u32, st_gid: u32, _pad0: u32, st_rdev: u64,
        st_size: i64, st_blksize: i64,
        /// In units of 512 bytes.
        st_blocks: i64,
        st_atime: u64, st_atime_nsec: u64, st_mtime: u64, st_mtime_nsec: u64, st_ctime: u64, st_ctime_nsec: u64,
        _pad1: [i64; 3],
    }
}

record! {
    /// `struct statx_timestamp` (`linux/stat.h`).
    StatxTimestamp, 16 bytes { tv_sec: i64, tv_nsec: u32, _pad: i32 }
}

record! {
    /// `struct statx` (`linux/stat.h`).
    Statx, 256 bytes {
        stx_mask: u32, stx_blksize: u32, stx_attributes: u64, stx_nlink: u32, stx_uid: u32, stx_gid: u32,
        stx_mode: u16, _pad0: u16, stx_ino: u64, stx_size: u64, stx_blocks: u64, stx_attributes_mask: u64,
        stx_atime: StatxTimestamp, stx_btime: StatxTimestamp, stx_ctime: StatxTimestamp, stx_mtime: StatxTimestamp,
        stx_rdev_major: u32, stx_rdev_minor: u32, stx_dev_major: u32, stx_dev_minor: u32, stx_mnt_id: u64,
        stx_dio_mem_align: u32, stx_dio_offset_align: u32, _pad1: [u64; 12],
    }
}

numbers! {
    /// Bits of `statx`'s mask, composed ones first.
    STATX_MASKS: u32 {
        STATX_ALL = 0xfff, STATX_BASIC_STATS = 0x7ff, STATX_TYPE = 1, STATX_MODE = 2, STATX_NLINK = 4, STATX_UID = 8,
        STATX_GID = 0x10, STATX_ATIME = 0x20, STATX_MTIME = 0x40, STATX_CTIME = 0x80, STATX_INO = 0x100,
        STATX_SIZE = 0x200, STATX_BLOCKS = 0x400, STATX_BTIME = 0x800, STATX_MNT_ID = 0x1000, STATX_DIOALIGN = 0x2000,
    }
}
numbers! {
    /// Bits of `stx_attributes`.
    STATX_ATTRIBUTES: u64 {
        STATX_ATTR_COMPRESSED = 0x4, STATX_ATTR_IMMUTABLE = 0x10, STATX_ATTR_APPEND = 0x20, STATX_ATTR_NODUMP = 0x40,
        STATX_ATTR_ENCRYPTED = 0x800, STATX_ATTR_AUTOMOUNT = 0x1000, STATX_ATTR_MOUNT_ROOT = 0x2000,
        STATX_ATTR_VERITY = 0x10_0000, STATX_ATTR_DAX = 0x20_0000,
    }
}

record! {
    /// `struct statfs` (`asm-generic/statfs.h`).
    Statfs, 120 bytes {
        f_type: i64, f_bsize: i64, f_blocks: i64, f_bfree: i64, f_bavail: i64, f_files: i64, f_ffree: i64,
        f_fsid: [i32; 2], f_namelen: i64, f_frsize: i64, f_flags: i64, f_spare: [i64; 4],
    }
}
numbers! {
    /// Magic numbers of file systems, for `f_type` (`linux/magic.h`).
    FILE_SYSTEMS: u64 {
        TMPFS_MAGIC = 0x0102_1994, PROC_SUPER_MAGIC = 0x9fa0, SYSFS_MAGIC = 0x6265_6572, RAMFS_MAGIC = 0x8584_58f6,
        DEVPTS_SUPER_MAGIC = 0x1cd1, EXT2_SUPER_MAGIC = 0xef53, CGROUP2_SUPER_MAGIC = 0x6367_7270,
        OVERLAYFS_SUPER_MAGIC = 0x794c_7630, V9FS_MAGIC = 0x0102_1997, PIPEFS_MAGIC = 0x5049_5045,
        SOCKFS_MAGIC = 0x534f_434b,
    }
}

numbers! {
    /// Flags of `statfs`. The kernel sets `ST_VALID` to say that the field counts.
    STATFS_FLAGS: u32 {
        ST_VALID = 0x20, ST_RDONLY = 1, ST_NOSUID = 2, ST_NODEV = 4, ST_NOEXEC = 8, ST_SYNCHRONOUS = 16,
        ST_MANDLOCK = 64, ST_NOATIME = 1024, ST_NODIRATIME = 2048, ST_RELATIME = 4096, ST_NOSYMFOLLOW = 8192,
    }
}

record! {
    /// `struct iovec` (`linux/uio.h`).
    Iovec, 16 bytes { iov_base: u64, iov_len: u64 }
}

record! {
    /// `struct flock` (`asm-generic/fcntl.h`).
    Flock, 32 bytes { l_type: u16, l_whence: u16, _pad0: u32, l_start: i64, l_len: i64, l_pid: i32, _pad1: u32 }
}

record! {
    /// `struct f_owner_ex` (`asm-generic/fcntl.h`).
    OwnerEx, 8 bytes { r#type: i32, pid: i32 }
}

numbers! {
    /// File types in a directory entry: `S_IF…` shifted right by 12.
    DIRENT_TYPES: u8 {
        DT_UNKNOWN = 0, DT_FIFO = 1, DT_CHR = 2, DT_DIR = 4, DT_BLK = 6, DT_REG = 8, DT_LNK = 10, DT_SOCK = 12,
    }
}

/// The fixed part of `struct linux_dirent64`, followed in memory by the name and a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirent64 {
    /// Inode number.
    pub d_ino: u64,
    /// Position to continue from after this entry.
    pub d_off: i64,
    /// File type, one of `DT_…`.
    pub d_type: u8,
}

impl Dirent64 {
    /// Bytes before the name: inode, offset, record length, type.
    pub const HEADER_BYTES: usize = 19;

    /// Bytes that an entry with a name of `name_bytes` bytes takes: header, name, zero, padding to 8.
    pub const fn record_bytes(name_bytes: usize) -> usize {
        (Self::HEADER_BYTES + name_bytes + 1).next_multiple_of(8)
    }

    /// Writes the entry to the start of `out`; the bytes written, or `None` if `out` is too short.
    pub fn encode(&self, name: &[u8], out: &mut [u8]) -> Option<usize> {
        let bytes = Self::record_bytes(name.len());
        let record = out.get_mut(..bytes)?;
        record[..8].copy_from_slice(&self.d_ino.to_le_bytes());
        record[8..16].copy_from_slice(&self.d_off.to_le_bytes());
        record[16..18].copy_from_slice(&u16::try_from(bytes).ok()?.to_le_bytes());
        record[18] = self.d_type;
        let (text, padding) = record[Self::HEADER_BYTES..].split_at_mut(name.len());
        text.copy_from_slice(name);
        padding.fill(0);
        Some(bytes)
    }

    /// Reads the entry at the start of `bytes`: the entry, its name, its length in bytes.
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8], usize)> {
        let length = usize::from(u16::from_le_bytes(bytes.get(16..18)?.try_into().ok()?));
        let record = bytes.get(..length)?;
        let name = record.get(Self::HEADER_BYTES..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let entry = Self {
            d_ino: u64::from_le_bytes(record[..8].try_into().ok()?),
            d_off: i64::from_le_bytes(record[8..16].try_into().ok()?),
            d_type: record[18],
        };
        Some((entry, &name[..end], length))
    }
}
