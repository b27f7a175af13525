//! What a file is: stat, fstat, lstat, newfstatat, statx.

use abi::Errno;
use abi::file::{
    AT_EMPTY_PATH, AT_NO_AUTOMOUNT, AT_STATX_DONT_SYNC, AT_STATX_FORCE_SYNC, AT_SYMLINK_NOFOLLOW, S_IFIFO, S_IFSOCK,
    STATX_ATTR_MOUNT_ROOT, STATX_BASIC_STATS, STATX_BTIME, STATX_MNT_ID, Stat, Statx, StatxTimestamp, makedev,
};
use alloc::sync::Arc;
use kernel::file::{Attributes, Node, NodeKind, Seen, Time};
use kernel::stream::{Nameless, Ownership};

use super::locate::{Located, check_flags, final_link, locate_descriptor};
use crate::call::{Call, CallResult};
use crate::files::open_file::OpenFile;

/// The numbers of a file, and the bits of its mode.
struct Shown {
    attributes: Attributes,
    mode: u32,
}

impl Shown {
    fn of(attributes: Attributes) -> Shown {
        Shown { attributes, mode: attributes.kind.mode_bits() | attributes.mode }
    }
}

pub fn fstat(call: &Call<'_>, descriptor: u64, address: u64) -> CallResult {
    let file = call.any_file(descriptor)?;
    let shown = show(call, &Located::File(file));
    call.write(address, &record(&shown)).map(|()| 0)
}

/// Errors: `EINVAL` for unknown flags, those of a lookup, `EFAULT`.
pub fn newfstatat(call: &Call<'_>, directory: u64, path: u64, address: u64, flags: u64) -> CallResult {
    let flags = check_flags(flags, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH)?;
    let (shown, _) = look(call, directory, path, flags)?;
    call.write(address, &record(&shown)).map(|()| 0)
}

/// Errors: `EINVAL` for unknown flags or the reserved mask bit, those of a lookup, `EFAULT`.
pub fn statx(call: &Call<'_>, directory: u64, path: u64, flags: u64, mask: u64, address: u64) -> CallResult {
    const RESERVED: u32 = 1 << 31;
    const SYNC: u32 = AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC;
    if mask as u32 & RESERVED != 0 || flags as u32 & SYNC == SYNC {
        return Err(Errno::EINVAL);
    }
    let flags = check_flags(flags, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | SYNC)?;
    let (shown, is_mount_root) = look(call, directory, path, flags)?;
    call.write(address, &extended_record(&shown, is_mount_root)).map(|()| 0)
}

/// What is shown of what a path or descriptor names, and whether it is a volume's root. These calls take a null pointer
/// for an empty path, if that is allowed (Linux 6.11).
fn look(call: &Call<'_>, directory: u64, path: u64, flags: u32) -> Result<(Shown, bool), Errno> {
    let path = if path == 0 && flags & AT_EMPTY_PATH != 0 { Default::default() } else { call.read_path(path)? };
    let located = if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
        locate_descriptor(call, directory)?
    } else {
        match call.with_view(directory, &path, |view| call.unix.names.look(view, &path, final_link(flags)))? {
            Seen::Node(node) => Located::Node(node),
            Seen::Outside(attributes) => return Ok((Shown::of(attributes), false)),
        }
    };
    let is_mount_root = match &located {
        Located::Node(node) => is_volume_root(node),
        Located::File(file) => file.node().is_some_and(is_volume_root),
    };
    Ok((show(call, &located), is_mount_root))
}

fn is_volume_root(node: &Arc<Node>) -> bool {
    node.is_directory() && node.parent().is_none()
}

fn show(call: &Call<'_>, located: &Located) -> Shown {
    let node = match located {
        Located::Node(node) => Some(node),
        Located::File(file) => file.node(),
    };
    match (node, located) {
        (Some(node), _) => Shown::of(node.attributes()),
        (None, Located::File(file)) => show_nameless(call, file),
        (None, Located::Node(node)) => show(call, &Located::Node(node.clone())),
    }
}

/// A pipe, or another stream that no path leads to.
fn show_nameless(call: &Call<'_>, file: &OpenFile) -> Shown {
    let now = call.now();
    let stream = file.as_stream();
    let (rights, user, group) = stream.and_then(|stream| stream.ownership()).map_or((0o600, 0, 0), Ownership::get);
    let (number, mode) = match stream.map(|stream| stream.nameless()) {
        Some(Nameless::Pipe(number)) => (number, S_IFIFO | rights),
        Some(Nameless::Socket(number)) => (number, S_IFSOCK | rights),
        // Linux's anonymous files have no type either.
        _ => (1, rights),
    };
    let attributes = Attributes {
        volume_device: call.unix.names.nameless().device(),
        number,
        kind: NodeKind::Fifo,
        mode: mode & 0o7777,
        links: 1,
        user,
        group,
        size_bytes: 0,
        blocks_512: 0,
        accessed: now,
        modified: now,
        changed: now,
        born: now,
    };
    Shown { attributes, mode }
}

fn record(shown: &Shown) -> Stat {
    let about = &shown.attributes;
    let (major, minor) = about.kind.device_numbers();
    Stat {
        st_dev: makedev(about.volume_device.0, about.volume_device.1),
        st_ino: about.number,
        st_nlink: about.links.into(),
        st_mode: shown.mode,
        st_uid: about.user,
        st_gid: about.group,
        st_rdev: makedev(major, minor),
        st_size: about.size_bytes as i64,
        st_blksize: 4096,
        st_blocks: about.blocks_512 as i64,
        st_atime: about.accessed.seconds as u64,
        st_atime_nsec: about.accessed.nanos.into(),
        st_mtime: about.modified.seconds as u64,
        st_mtime_nsec: about.modified.nanos.into(),
        st_ctime: about.changed.seconds as u64,
        st_ctime_nsec: about.changed.nanos.into(),
        ..Stat::zeroed()
    }
}

fn extended_record(shown: &Shown, is_mount_root: bool) -> Statx {
    let about = &shown.attributes;
    let (major, minor) = about.kind.device_numbers();
    Statx {
        stx_mask: STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID,
        stx_blksize: 4096,
        stx_attributes: if is_mount_root { STATX_ATTR_MOUNT_ROOT } else { 0 },
        stx_attributes_mask: STATX_ATTR_MOUNT_ROOT,
        stx_nlink: about.links,
        stx_uid: about.user,
        stx_gid: about.group,
        stx_mode: shown.mode as u16,
        stx_ino: about.number,
        stx_size: about.size_bytes,
        stx_blocks: about.blocks_512,
        stx_atime: stamp(about.accessed),
        stx_btime: stamp(about.born),
        stx_ctime: stamp(about.changed),
        stx_mtime: stamp(about.modified),
        stx_rdev_major: major,
        stx_rdev_minor: minor,
        stx_dev_major: about.volume_device.0,
        stx_dev_minor: about.volume_device.1,
        stx_mnt_id: about.volume_device.1.into(),
        ..Statx::zeroed()
    }
}

fn stamp(time: Time) -> StatxTimestamp {
    StatxTimestamp { tv_sec: time.seconds, tv_nsec: time.nanos, _pad: 0 }
}
