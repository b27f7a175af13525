//! The host's calls about names and what they name. Everything is reached from a directory's descriptor and one name,
//! or by a descriptor alone; nothing depends on the process's working directory.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use machine::{About, Extended, Hold, LastLink, LockedRange, Refused, Room, Stamp};

use crate::host::{self, HostError};

/// Longest name and symlink target of the host, with its NUL.
const NAME_BYTES: usize = 256;
const TARGET_BYTES: usize = 4096;

mod nr {
    pub const LSEEK: u64 = 8;
    pub const PREAD64: u64 = 17;
    pub const PWRITE64: u64 = 18;
    pub const FCNTL: u64 = 72;
    pub const FLOCK: u64 = 73;
    pub const FSYNC: u64 = 74;
    pub const FDATASYNC: u64 = 75;
    pub const TRUNCATE: u64 = 76;
    pub const FTRUNCATE: u64 = 77;
    pub const UMASK: u64 = 95;
    pub const FSTATFS: u64 = 138;
    pub const SETXATTR: u64 = 188;
    pub const GETXATTR: u64 = 191;
    pub const LISTXATTR: u64 = 194;
    pub const REMOVEXATTR: u64 = 197;
    pub const GETDENTS64: u64 = 217;
    pub const INOTIFY_ADD_WATCH: u64 = 254;
    pub const INOTIFY_RM_WATCH: u64 = 255;
    pub const OPENAT: u64 = 257;
    pub const MKDIRAT: u64 = 258;
    pub const MKNODAT: u64 = 259;
    pub const FCHOWNAT: u64 = 260;
    pub const UNLINKAT: u64 = 263;
    pub const LINKAT: u64 = 265;
    pub const SYMLINKAT: u64 = 266;
    pub const READLINKAT: u64 = 267;
    pub const FCHMODAT: u64 = 268;
    pub const UTIMENSAT: u64 = 280;
    pub const FALLOCATE: u64 = 285;
    pub const INOTIFY_INIT1: u64 = 294;
    pub const PRLIMIT64: u64 = 302;
    pub const RENAMEAT2: u64 = 316;
    pub const STATX: u64 = 332;
    pub const OPENAT2: u64 = 437;
    pub const FACCESSAT2: u64 = 439;
    pub const GETXATTRAT: u64 = 464;
}

/// Host calls that move bytes to the program and from it.
pub const MOVES: [u64; 2] = [nr::PREAD64, nr::PWRITE64];

const O_DIRECTORY: u32 = 0o200_000;
const O_NOFOLLOW: u32 = 0o400_000;
const O_CLOEXEC: u32 = 0o2_000_000;
const O_PATH: u32 = 0o10_000_000;
const AT_FDCWD: u64 = -100i64 as u64;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EACCESS: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_NO_AUTOMOUNT: u64 = 0x800;
const AT_EMPTY_PATH: u64 = 0x1000;

impl From<HostError> for Refused {
    fn from(error: HostError) -> Refused {
        Refused(error.0 as u16)
    }
}

type Answer<T> = Result<T, HostError>;

/// A call that a signal may have cut short is made again.
///
/// # Safety
/// As [`host::call`].
unsafe fn call(number: u64, arguments: [u64; 6]) -> Answer<u64> {
    loop {
        // SAFETY: the caller vouches for the call.
        match unsafe { host::call(number, arguments) } {
            Err(HostError(host::EINTR)) => {}
            other => return other,
        }
    }
}

/// Bytes with a NUL behind them.
struct Terminated<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Terminated<BYTES> {
    fn new(bytes: &[u8]) -> Answer<Terminated<BYTES>> {
        const ENAMETOOLONG: i32 = 36;
        if bytes.len() >= BYTES {
            return Err(HostError(ENAMETOOLONG));
        }
        let mut text = Terminated([0; BYTES]);
        text.0[..bytes.len()].copy_from_slice(bytes);
        Ok(text)
    }

    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

fn name(bytes: &[u8]) -> Answer<Terminated<NAME_BYTES>> {
    Terminated::new(bytes)
}

/// `/proc/self/fd/N`: what a descriptor is of, as a path, also when it has no name any more.
fn path_of(fd: i32) -> Terminated<32> {
    let mut path = Terminated([0; 32]);
    let front = b"/proc/self/fd/";
    path.0[..front.len()].copy_from_slice(front);
    let mut digits = [0; 10];
    let (mut rest, mut count) = (fd.max(0) as u32, 0);
    loop {
        digits[count] = b'0' + (rest % 10) as u8;
        (rest, count) = (rest / 10, count + 1);
        if rest == 0 {
            break;
        }
    }
    for (index, digit) in digits[..count].iter().rev().enumerate() {
        path.0[front.len() + index] = *digit;
    }
    path
}

/// Modes of new things come with the program's umask taken off already, and the host's limits are not the program's.
pub fn prepare() {
    const RLIMIT_NOFILE: u64 = 7;
    let mut limit = [0u64; 2];
    // SAFETY: the host writes two words and reads them back.
    unsafe {
        let _ = call(nr::UMASK, [0; 6]);
        if call(nr::PRLIMIT64, [0, RLIMIT_NOFILE, 0, (&raw mut limit) as u64, 0, 0]).is_ok() {
            limit[0] = limit[1];
            let _ = call(nr::PRLIMIT64, [0, RLIMIT_NOFILE, (&raw const limit) as u64, 0, 0, 0]);
        }
    }
}

pub fn open_at(directory: i32, file: &[u8], flags: u32, mode: u32) -> Answer<i32> {
    let name = name(file)?;
    let flags = u64::from(flags | O_CLOEXEC);
    // SAFETY: the name ends with a NUL.
    unsafe { call(nr::OPENAT, [directory as u64, name.address(), flags, mode.into(), 0, 0]).map(|fd| fd as i32) }
}

/// What a name stands for, if that is no symlink. A fifo that stands there by now does not make the caller wait.
pub fn open_name(directory: i32, file: &[u8], flags: u32) -> Answer<i32> {
    const O_NONBLOCK: u32 = 0o4_000;
    open_at(directory, file, flags | O_NOFOLLOW | O_NONBLOCK, 0)
}

/// The place itself, symlink or not.
pub fn place_at(directory: i32, file: &[u8]) -> Answer<i32> {
    open_at(directory, file, O_PATH | O_NOFOLLOW, 0)
}

/// Opens anew what a descriptor is of.
pub fn open_again(fd: i32, flags: u32) -> Answer<i32> {
    let flags = u64::from(flags & !O_NOFOLLOW | O_CLOEXEC);
    if flags as u32 & O_DIRECTORY != 0 {
        return open_at(fd, b".", flags as u32, 0);
    }
    let path = path_of(fd);
    // SAFETY: the path ends with a NUL.
    unsafe { call(nr::OPENAT, [AT_FDCWD, path.address(), flags, 0, 0, 0]).map(|fd| fd as i32) }
}

pub fn place_again(fd: i32) -> Answer<i32> {
    open_again(fd, O_PATH)
}

pub fn about(fd: i32) -> Answer<About> {
    statx(fd, b"", AT_EMPTY_PATH)
}

pub fn about_name(directory: i32, file: &[u8]) -> Answer<About> {
    statx(directory, file, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)
}

/// What a path below a directory names, through directories alone.
pub fn about_below(directory: i32, path: &[u8]) -> Answer<About> {
    ask_below(directory, path, O_NOFOLLOW, about)
}

/// Extended attributes of what a path below a directory names, through directories alone.
pub fn extended_below(directory: i32, path: &[u8], last: LastLink, what: &mut Extended<'_>) -> Answer<usize> {
    if let Some(answer) = extended_name(directory, path, last, what) {
        return answer;
    }
    let flags = if last == LastLink::Itself { O_NOFOLLOW } else { 0 };
    ask_below(directory, path, flags, |place| extended(place, what))
}

/// Asks for an attribute of what has a name in a directory by one call (Linux 6.13). `None`: that cannot say it.
fn extended_name(directory: i32, file: &[u8], last: LastLink, what: &mut Extended<'_>) -> Option<Answer<usize>> {
    const ENOSYS: i32 = 38;
    const EOPNOTSUPP: i32 = 95;
    let Extended::Get { name: attribute, into } = what else { return None };
    // A symlink has no access lists: another answer is of something else.
    let tells_links = attribute.starts_with(b"system.posix_acl_");
    if file.contains(&b'/') || !(tells_links || last == LastLink::Itself) {
        return None;
    }
    let name = name(file).ok()?;
    // struct xattr_args: value, then its size and flags.
    let words = [into.as_mut_ptr() as u64, into.len() as u64];
    let [asked, bytes] = [attribute.as_ptr() as u64, size_of_val(&words) as u64];
    let arguments = [directory as u64, name.address(), AT_SYMLINK_NOFOLLOW, asked, words.as_ptr() as u64, bytes];
    // SAFETY: the names end with a NUL; the host writes only into the slice.
    match unsafe { call(nr::GETXATTRAT, arguments) } {
        Err(HostError(ENOSYS)) => None,
        Err(HostError(EOPNOTSUPP)) if last != LastLink::Itself => None,
        answer => Some(answer.map(|bytes| bytes as usize)),
    }
}

/// Asks about what a path below a directory names. Without `O_NOFOLLOW` a last name that is a symlink is refused, too.
fn ask_below<T>(directory: i32, path: &[u8], flags: u32, question: impl FnOnce(i32) -> Answer<T>) -> Answer<T> {
    const RESOLVE_NO_SYMLINKS: u64 = 4;
    let path = Terminated::<{ 4 * NAME_BYTES }>::new(path)?;
    // struct open_how: flags, mode, resolve.
    let how = [u64::from(O_PATH | O_CLOEXEC | flags), 0, RESOLVE_NO_SYMLINKS];
    let arguments = [directory as u64, path.address(), how.as_ptr() as u64, size_of_val(&how) as u64, 0, 0];
    // SAFETY: the path ends with a NUL; the host only reads it and the three words.
    let place = unsafe { call(nr::OPENAT2, arguments)? } as i32;
    let answer = question(place);
    host::close(place);
    answer
}

fn statx(fd: i32, file: &[u8], flags: u64) -> Answer<About> {
    const BASIC_AND_BIRTH: u64 = 0xFFF;
    let name = name(file)?;
    let mut words = [0u64; 32];
    // SAFETY: the name ends with a NUL; `struct statx` has 256 bytes.
    unsafe { call(nr::STATX, [fd as u64, name.address(), flags, BASIC_AND_BIRTH, (&raw mut words) as u64, 0])? };
    let halves = |index: usize| (words[index] as u32, (words[index] >> 32) as u32);
    let moment = |index: usize| (words[index] as i64, words[index + 1] as u32);
    Ok(About {
        links: halves(2).0,
        user: halves(2).1,
        group: halves(3).0,
        mode: halves(3).1 & 0xFFFF,
        number: words[4],
        bytes: words[5],
        blocks_512: words[6],
        accessed: moment(8),
        born: moment(10),
        changed: moment(12),
        modified: moment(14),
        special: halves(16),
        device: halves(17),
    })
}

pub fn room(fd: i32) -> Answer<Room> {
    let mut words = [0u64; 15];
    // SAFETY: `struct statfs` has 120 bytes.
    unsafe { call(nr::FSTATFS, [fd as u64, (&raw mut words) as u64, 0, 0, 0, 0])? };
    let [magic, block_bytes, blocks, blocks_free, blocks_available, nodes, nodes_free, _, name_bytes_max, _, flags, ..] =
        words;
    Ok(Room { magic, block_bytes, blocks, blocks_free, blocks_available, nodes, nodes_free, name_bytes_max, flags })
}

pub fn may(fd: i32, access: u32) -> Answer<()> {
    // SAFETY: the name is a constant.
    unsafe {
        call(nr::FACCESSAT2, [fd as u64, c"".as_ptr() as u64, access.into(), AT_EMPTY_PATH | AT_EACCESS, 0, 0])
            .map(drop)
    }
}

pub fn link_target(fd: i32, into: &mut [u8]) -> Answer<usize> {
    let (address, bytes) = (into.as_mut_ptr() as u64, into.len() as u64);
    // SAFETY: the host writes only into the slice.
    unsafe { call(nr::READLINKAT, [fd as u64, c"".as_ptr() as u64, address, bytes, 0, 0]).map(|bytes| bytes as usize) }
}

pub fn make_directory(directory: i32, file: &[u8], mode: u32) -> Answer<()> {
    let name = name(file)?;
    // SAFETY: the name ends with a NUL.
    unsafe { call(nr::MKDIRAT, [directory as u64, name.address(), mode.into(), 0, 0, 0]).map(drop) }
}

pub fn make_special(directory: i32, file: &[u8], mode: u32, (major, minor): (u32, u32)) -> Answer<()> {
    let name = name(file)?;
    let device = u64::from(minor & 0xFF | (major & 0xFFF) << 8 | (minor & !0xFF) << 12);
    // SAFETY: the name ends with a NUL.
    unsafe { call(nr::MKNODAT, [directory as u64, name.address(), mode.into(), device, 0, 0]).map(drop) }
}

pub fn make_symlink(directory: i32, file: &[u8], target: &[u8]) -> Answer<()> {
    let name = name(file)?;
    let target = Terminated::<TARGET_BYTES>::new(target)?;
    // SAFETY: both end with a NUL.
    unsafe { call(nr::SYMLINKAT, [target.address(), directory as u64, name.address(), 0, 0, 0]).map(drop) }
}

pub fn link(place: i32, directory: i32, file: &[u8]) -> Answer<()> {
    let name = name(file)?;
    let old = path_of(place);
    // SAFETY: both end with a NUL.
    unsafe {
        call(nr::LINKAT, [AT_FDCWD, old.address(), directory as u64, name.address(), AT_SYMLINK_FOLLOW, 0]).map(drop)
    }
}

pub fn remove(directory: i32, file: &[u8]) -> Answer<()> {
    unlink(directory, file, 0)
}

pub fn remove_directory(directory: i32, file: &[u8]) -> Answer<()> {
    unlink(directory, file, AT_REMOVEDIR)
}

fn unlink(directory: i32, file: &[u8], flags: u64) -> Answer<()> {
    let name = name(file)?;
    // SAFETY: the name ends with a NUL.
    unsafe { call(nr::UNLINKAT, [directory as u64, name.address(), flags, 0, 0, 0]).map(drop) }
}

pub fn rename(old: (i32, &[u8]), new: (i32, &[u8]), flags: u32) -> Answer<()> {
    let (from, to) = (name(old.1)?, name(new.1)?);
    let arguments = [old.0 as u64, from.address(), new.0 as u64, to.address(), flags.into(), 0];
    // SAFETY: both names end with a NUL.
    unsafe { call(nr::RENAMEAT2, arguments).map(drop) }
}

pub fn set_mode(place: i32, mode: u32) -> Answer<()> {
    let path = path_of(place);
    // SAFETY: the path ends with a NUL.
    unsafe { call(nr::FCHMODAT, [AT_FDCWD, path.address(), mode.into(), 0, 0, 0]).map(drop) }
}

pub fn set_owner(place: i32, user: Option<u32>, group: Option<u32>) -> Answer<()> {
    let [user, group] = [user, group].map(|id| u64::from(id.unwrap_or(u32::MAX)));
    // SAFETY: the name is a constant.
    unsafe { call(nr::FCHOWNAT, [place as u64, c"".as_ptr() as u64, user, group, AT_EMPTY_PATH, 0]).map(drop) }
}

pub fn set_times(place: i32, times: [Stamp; 2]) -> Answer<()> {
    const UTIME_NOW: i64 = 0x3FFF_FFFF;
    const UTIME_OMIT: i64 = 0x3FFF_FFFE;
    let words = times.map(|stamp| match stamp {
        Stamp::Now => [0, UTIME_NOW],
        Stamp::Omit => [0, UTIME_OMIT],
        Stamp::At((seconds, nanos)) => [seconds, i64::from(nanos)],
    });
    let path = path_of(place);
    // SAFETY: the path ends with a NUL; two `struct timespec`.
    unsafe { call(nr::UTIMENSAT, [AT_FDCWD, path.address(), words.as_ptr() as u64, 0, 0, 0]).map(drop) }
}

pub fn extended(place: i32, what: &mut Extended<'_>) -> Answer<usize> {
    let path = path_of(place);
    let (number, arguments) = match what {
        Extended::Get { name, into } => {
            (nr::GETXATTR, [path.address(), name.as_ptr() as u64, into.as_mut_ptr() as u64, into.len() as u64, 0, 0])
        }
        Extended::Set { name, value, flags } => {
            let bytes = value.len() as u64;
            (nr::SETXATTR, [path.address(), name.as_ptr() as u64, value.as_ptr() as u64, bytes, (*flags).into(), 0])
        }
        Extended::List { into } => {
            (nr::LISTXATTR, [path.address(), into.as_mut_ptr() as u64, into.len() as u64, 0, 0, 0])
        }
        Extended::Remove { name } => (nr::REMOVEXATTR, [path.address(), name.as_ptr() as u64, 0, 0, 0, 0]),
    };
    // SAFETY: names come with their NUL; the host writes only into the slice.
    unsafe { call(number, arguments).map(|bytes| bytes as usize) }
}

/// # Safety
/// The host may write to the range; where nothing is mapped it stops.
pub unsafe fn read_at(fd: i32, position: u64, address: u64, bytes: usize) -> Answer<usize> {
    // SAFETY: the caller vouches for the range.
    unsafe { call(nr::PREAD64, [fd as u64, address, bytes as u64, position, 0, 0]).map(|bytes| bytes as usize) }
}

/// # Safety
/// The range may be read; where nothing is mapped the host stops.
pub unsafe fn write_at(fd: i32, position: u64, address: u64, bytes: usize) -> Answer<usize> {
    // SAFETY: the caller vouches for the range.
    unsafe { call(nr::PWRITE64, [fd as u64, address, bytes as u64, position, 0, 0]).map(|bytes| bytes as usize) }
}

pub fn seek(fd: i32, position: u64, whence: u32) -> Answer<u64> {
    // SAFETY: a position is no memory.
    unsafe { call(nr::LSEEK, [fd as u64, position, whence.into(), 0, 0, 0]) }
}

pub fn resize(fd: i32, bytes: u64) -> Answer<()> {
    const EBADF: i32 = 9;
    const EINVAL: i32 = 22;
    // SAFETY: the size of a file is no memory of ours.
    match unsafe { call(nr::FTRUNCATE, [fd as u64, bytes, 0, 0, 0, 0]) } {
        Err(HostError(EBADF | EINVAL)) => {
            let path = path_of(fd);
            // SAFETY: the path ends with a NUL.
            unsafe { call(nr::TRUNCATE, [path.address(), bytes, 0, 0, 0, 0]).map(drop) }
        }
        other => other.map(drop),
    }
}

pub fn allocate(fd: i32, mode: u32, position: u64, bytes: u64) -> Answer<()> {
    // SAFETY: as above.
    unsafe { call(nr::FALLOCATE, [fd as u64, mode.into(), position, bytes, 0, 0]).map(drop) }
}

/// A descriptor that gives the changes of what is watched, without waiting.
pub fn changes() -> Answer<i32> {
    const IN_NONBLOCK: u64 = 0o4000;
    // SAFETY: no memory is touched.
    unsafe { call(nr::INOTIFY_INIT1, [IN_NONBLOCK | u64::from(O_CLOEXEC), 0, 0, 0, 0, 0]).map(|fd| fd as i32) }
}

pub fn watch(changes: i32, place: i32, events: u32) -> Answer<i32> {
    let path = path_of(place);
    let arguments = [changes as u64, path.address(), events.into(), 0, 0, 0];
    // SAFETY: the host only reads the path.
    unsafe { call(nr::INOTIFY_ADD_WATCH, arguments).map(|number| number as i32) }
}

/// `process` gets `signal` when `changes` has something to tell.
pub fn signal_owner(changes: i32, process: i32, signal: i32) {
    const F_SETFL: u64 = 4;
    const F_SETOWN: u64 = 8;
    const F_SETSIG: u64 = 10;
    const NONBLOCK_ASYNC: u64 = 0o24_000;
    for (what, value) in [(F_SETSIG, signal as u64), (F_SETOWN, process as u64), (F_SETFL, NONBLOCK_ASYNC)] {
        // SAFETY: no memory is touched.
        let _ = unsafe { call(nr::FCNTL, [changes as u64, what, value, 0, 0, 0]) };
    }
}

/// Whether the file system of a place tells what happens there, whoever does it: it is this host's alone.
pub fn tells_moves(place: i32) -> Answer<bool> {
    /// ext, xfs, btrfs, f2fs, tmpfs, overlayfs, squashfs (linux/magic.h).
    const LOCAL: [u64; 7] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630, 0x7371_7368];
    Ok(LOCAL.contains(&room(place)?.magic))
}

pub fn unwatch(changes: i32, number: i32) {
    // SAFETY: no memory is touched.
    let _ = unsafe { call(nr::INOTIFY_RM_WATCH, [changes as u64, number as u32 as u64, 0, 0, 0, 0]) };
}

pub fn sync(fd: i32, data_only: bool) -> Answer<()> {
    let number = if data_only { nr::FDATASYNC } else { nr::FSYNC };
    // SAFETY: no memory is touched.
    unsafe { call(number, [fd as u64, 0, 0, 0, 0, 0]).map(drop) }
}

/// Where the directory stands is left alone if it is the right place: some file systems remember more than a number.
pub fn list(fd: i32, cookie: u64, into: &mut [u8]) -> Answer<usize> {
    const SET: u32 = 0;
    const CURRENT: u32 = 1;
    if seek(fd, 0, CURRENT)? != cookie || cookie == 0 {
        seek(fd, cookie, SET)?;
    }
    let (address, bytes) = (into.as_mut_ptr() as u64, into.len() as u64);
    // SAFETY: the host writes only into the slice.
    unsafe { call(nr::GETDENTS64, [fd as u64, address, bytes, 0, 0, 0]).map(|bytes| bytes as usize) }
}

pub fn set_flags(fd: i32, flags: u32) -> Answer<()> {
    const F_SETFL: u64 = 4;
    // SAFETY: no memory is touched.
    unsafe { call(nr::FCNTL, [fd as u64, F_SETFL, flags.into(), 0, 0, 0]).map(drop) }
}

/// `struct flock`.
#[repr(C)]
struct Flock {
    kind: i16,
    whence: i16,
    start: i64,
    bytes: i64,
    process: i32,
}

impl Flock {
    fn new(hold: Hold, first: u64, last: u64) -> Flock {
        let kind = match hold {
            Hold::Shared => 0,
            Hold::Exclusive => 1,
            Hold::None => 2,
        };
        let bytes = if last >= i64::MAX as u64 { 0 } else { (last - first + 1) as i64 };
        Flock { kind, whence: 0, start: first as i64, bytes, process: 0 }
    }
}

pub fn lock(fd: i32, hold: Hold, first: u64, last: u64) -> Answer<()> {
    const F_OFD_SETLK: u64 = 37;
    let record = Flock::new(hold, first, last);
    // SAFETY: the host reads the record.
    unsafe { call(nr::FCNTL, [fd as u64, F_OFD_SETLK, (&raw const record) as u64, 0, 0, 0]).map(drop) }
}

pub fn lock_in_the_way(fd: i32, hold: Hold, first: u64, last: u64) -> Answer<Option<LockedRange>> {
    const F_OFD_GETLK: u64 = 36;
    let mut record = Flock::new(hold, first, last);
    // SAFETY: the host reads and writes the record.
    unsafe { call(nr::FCNTL, [fd as u64, F_OFD_GETLK, (&raw mut record) as u64, 0, 0, 0])? };
    let hold = match record.kind {
        0 => Hold::Shared,
        1 => Hold::Exclusive,
        _ => return Ok(None),
    };
    let first = record.start as u64;
    let last = if record.bytes == 0 { i64::MAX as u64 } else { first + record.bytes as u64 - 1 };
    Ok(Some(LockedRange { hold, first, last, process: record.process }))
}

pub fn lock_whole(fd: i32, hold: Hold) -> Answer<()> {
    const LOCK_NB: u64 = 4;
    let operation = match hold {
        Hold::Shared => 1 | LOCK_NB,
        Hold::Exclusive => 2 | LOCK_NB,
        Hold::None => 8,
    };
    // SAFETY: no memory is touched.
    unsafe { call(nr::FLOCK, [fd as u64, operation, 0, 0, 0, 0]).map(drop) }
}
