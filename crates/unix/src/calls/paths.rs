//! Calls that name files: stat and its kin, directories, links, times, owners.

mod extended;
mod listing;
mod locate;
mod names;
mod ownership;
mod place;
mod stat;
mod times;
mod volumes;

use abi::file::AT_FDCWD;
use abi::nr;

use super::Entry;

/// What calls without a directory argument start at.
const HERE: u64 = AT_FDCWD as u64;
/// `AT_SYMLINK_NOFOLLOW`, as it comes in a register.
const NO_FOLLOW: u64 = abi::file::AT_SYMLINK_NOFOLLOW as u64;

pub const CALLS: &[Entry] = &[
    (nr::STAT, |call, [a, b, ..]| stat::newfstatat(call, HERE, a, b, 0)),
    (nr::LSTAT, |call, [a, b, ..]| stat::newfstatat(call, HERE, a, b, NO_FOLLOW)),
    (nr::FSTAT, |call, [a, b, ..]| stat::fstat(call, a, b)),
    (nr::NEWFSTATAT, |call, [a, b, c, d, ..]| stat::newfstatat(call, a, b, c, d)),
    (nr::STATX, |call, [a, b, c, d, e, _]| stat::statx(call, a, b, c, d, e)),
    (nr::STATFS, |call, [a, b, ..]| volumes::statfs(call, a, b)),
    (nr::FSTATFS, |call, [a, b, ..]| volumes::fstatfs(call, a, b)),
    (nr::ACCESS, |call, [a, b, ..]| ownership::access(call, HERE, a, b, 0)),
    (nr::FACCESSAT, |call, [a, b, c, ..]| ownership::access(call, a, b, c, 0)),
    (nr::FACCESSAT2, |call, [a, b, c, d, ..]| ownership::access(call, a, b, c, d)),
    (nr::CHMOD, |call, [a, b, ..]| ownership::chmod(call, HERE, a, b, 0)),
    (nr::FCHMOD, |call, [a, b, ..]| ownership::fchmod(call, a, b)),
    (nr::FCHMODAT, |call, [a, b, c, ..]| ownership::chmod(call, a, b, c, 0)),
    (nr::FCHMODAT2, |call, [a, b, c, d, ..]| ownership::chmod(call, a, b, c, d)),
    (nr::CHOWN, |call, [a, b, c, ..]| ownership::chown(call, HERE, a, [b, c], 0)),
    (nr::LCHOWN, |call, [a, b, c, ..]| ownership::chown(call, HERE, a, [b, c], NO_FOLLOW)),
    (nr::FCHOWN, |call, [a, b, c, ..]| ownership::fchown(call, a, [b, c])),
    (nr::FCHOWNAT, |call, [a, b, c, d, e, _]| ownership::chown(call, a, b, [c, d], e)),
    (nr::UMASK, |call, [a, ..]| ownership::umask(call, a)),
    (nr::UTIME, |call, [a, b, ..]| times::utime(call, a, b)),
    (nr::UTIMES, |call, [a, b, ..]| times::futimesat(call, HERE, a, b)),
    (nr::FUTIMESAT, |call, [a, b, c, ..]| times::futimesat(call, a, b, c)),
    (nr::UTIMENSAT, |call, [a, b, c, d, ..]| times::utimensat(call, a, b, c, d)),
    (nr::CHDIR, |call, [a, ..]| place::chdir(call, a)),
    (nr::FCHDIR, |call, [a, ..]| place::fchdir(call, a)),
    (nr::CHROOT, |call, [a, ..]| place::chroot(call, a)),
    (nr::GETCWD, |call, [a, b, ..]| place::getcwd(call, a, b)),
    (nr::MKDIR, |call, [a, b, ..]| names::mkdir(call, HERE, a, b)),
    (nr::MKDIRAT, |call, [a, b, c, ..]| names::mkdir(call, a, b, c)),
    (nr::RMDIR, |call, [a, ..]| names::rmdir(call, HERE, a)),
    (nr::UNLINK, |call, [a, ..]| names::unlink(call, HERE, a)),
    (nr::UNLINKAT, |call, [a, b, c, ..]| names::unlinkat(call, a, b, c)),
    (nr::RENAME, |call, [a, b, ..]| names::rename(call, [HERE, a], [HERE, b], 0)),
    (nr::RENAMEAT, |call, [a, b, c, d, ..]| names::rename(call, [a, b], [c, d], 0)),
    (nr::RENAMEAT2, |call, [a, b, c, d, e, _]| names::rename(call, [a, b], [c, d], e)),
    (nr::LINK, |call, [a, b, ..]| names::link(call, [HERE, a], [HERE, b], 0)),
    (nr::LINKAT, |call, [a, b, c, d, e, _]| names::link(call, [a, b], [c, d], e)),
    (nr::SYMLINK, |call, [a, b, ..]| names::symlink(call, a, HERE, b)),
    (nr::SYMLINKAT, |call, [a, b, c, ..]| names::symlink(call, a, b, c)),
    (nr::READLINK, |call, [a, b, c, ..]| names::readlink(call, HERE, a, b, c)),
    (nr::READLINKAT, |call, [a, b, c, d, ..]| names::readlink(call, a, b, c, d)),
    (nr::MKNOD, |call, [a, b, c, ..]| names::mknod(call, HERE, a, b, c)),
    (nr::MKNODAT, |call, [a, b, c, d, ..]| names::mknod(call, a, b, c, d)),
    (nr::GETDENTS, |call, [a, b, c, ..]| listing::getdents(call, a, b, c)),
    (nr::GETDENTS64, |call, [a, b, c, ..]| listing::getdents64(call, a, b, c)),
    (nr::SETXATTR, |call, [a, b, c, d, e, _]| extended::set(call, extended::At::Path(a), [b, c, d, e])),
    (nr::LSETXATTR, |call, [a, b, c, d, e, _]| extended::set(call, extended::At::Link(a), [b, c, d, e])),
    (nr::FSETXATTR, |call, [a, b, c, d, e, _]| extended::set(call, extended::At::Descriptor(a), [b, c, d, e])),
    (nr::GETXATTR, |call, [a, b, c, d, ..]| extended::get(call, extended::At::Path(a), b, [c, d])),
    (nr::LGETXATTR, |call, [a, b, c, d, ..]| extended::get(call, extended::At::Link(a), b, [c, d])),
    (nr::FGETXATTR, |call, [a, b, c, d, ..]| extended::get(call, extended::At::Descriptor(a), b, [c, d])),
    (nr::LISTXATTR, |call, [a, b, c, ..]| extended::list(call, extended::At::Path(a), [b, c])),
    (nr::LLISTXATTR, |call, [a, b, c, ..]| extended::list(call, extended::At::Link(a), [b, c])),
    (nr::FLISTXATTR, |call, [a, b, c, ..]| extended::list(call, extended::At::Descriptor(a), [b, c])),
    (nr::REMOVEXATTR, |call, [a, b, ..]| extended::remove(call, extended::At::Path(a), b)),
    (nr::LREMOVEXATTR, |call, [a, b, ..]| extended::remove(call, extended::At::Link(a), b)),
    (nr::FREMOVEXATTR, |call, [a, b, ..]| extended::remove(call, extended::At::Descriptor(a), b)),
    (nr::NAME_TO_HANDLE_AT, |_, _| Err(abi::Errno::ENOTSUP)),
    (nr::OPEN_BY_HANDLE_AT, |_, _| Err(abi::Errno::ENOTSUP)),
];
