//! Volumes: mount, umount2.

mod options;
pub(super) mod table;
mod uses;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::file::AT_FDCWD;
use abi::process::CAP_SYS_ADMIN;
use kernel::file::{AccessTimes, FinalLink, Mount, NewNode, Node, Residence, Rules, Volume};
use machine::{PAGE_BYTES, try_to_vec};

use crate::call::{Call, CallResult};
use crate::calls::descriptors::control::rebind_volume;
use options::Options;

/// Flags of `mount` (`linux/mount.h`).
const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;
const NOEXEC: u64 = 8;
const SYNCHRONOUS: u64 = 16;
const REMOUNT: u64 = 32;
const DIRSYNC: u64 = 128;
const NOSYMFOLLOW: u64 = 256;
const NOATIME: u64 = 1024;
const NODIRATIME: u64 = 2048;
const BIND: u64 = 4096;
const MOVE: u64 = 8192;
const REC: u64 = 16384;
const SILENT: u64 = 32768;
/// Unbindable, private, slave, shared: who hears of mounts below a mount.
const PROPAGATION: u64 = 0x1e_0000;
const RELATIME: u64 = 1 << 21;
const STRICTATIME: u64 = 1 << 24;
const LAZYTIME: u64 = 1 << 25;
const NOUSER: u64 = 1 << 31;
/// Very old programs say with these upper bits that they know of flags.
const MAGIC: u64 = 0xc0ed_0000;
const MAGIC_MASK: u64 = 0xffff_0000;

/// Flags of `umount2`.
const FORCE: u32 = 1;
const DETACH: u32 = 2;
const NOFOLLOW: u32 = 8;

fn find(call: &Call<'_>, path: &[u8], last: FinalLink) -> Result<Arc<Node>, Errno> {
    call.with_view(AT_FDCWD as u64, path, |view| call.unix.names.lookup(view, path, last))
}

/// A text that may be missing. Error: `EINVAL` for more than a page.
fn text(call: &Call<'_>, address: u64) -> Result<Vec<u8>, Errno> {
    if address == 0 { Ok(Vec::new()) } else { call.read_string(address, PAGE_BYTES - 1, Errno::EINVAL) }
}

/// Mounts a memory-resident file system, or changes the rules of a volume that is mounted.
///
/// Errors: `EPERM`, also for a mount of what is in the tree already (`MS_BIND`, `MS_MOVE`), as in a container; `ENODEV` for other
/// kinds of volumes; `EINVAL` for options that the kind has not, and for changing what is no mount; `EBUSY`; those of a lookup.
fn mount(call: &Call<'_>, [source, target, kind, flags, options]: [u64; 5]) -> CallResult {
    let kind = text(call, kind)?;
    let source = if source == 0 { try_to_vec(b"none")? } else { call.read_path(source)? };
    let options = text(call, options)?;
    let path = call.read_path(target)?;
    let point = find(call, &path, FinalLink::Follow)?;
    let flags = if flags & MAGIC_MASK == MAGIC { flags & !MAGIC_MASK } else { flags };
    if flags & NOUSER != 0 {
        return Err(Errno::EINVAL);
    }
    call.require(CAP_SYS_ADMIN)?;
    match () {
        _ if flags & REMOUNT != 0 => remount(call, &point, flags, &options),
        _ if flags & BIND != 0 => Err(Errno::EPERM),
        _ if flags & PROPAGATION != 0 => propagate(call, &point, flags),
        _ if flags & MOVE != 0 => Err(Errno::EPERM),
        _ => mount_new(call, point, source, kind, flags, &options),
    }
}

fn mount_new(
    call: &Call<'_>,
    point: Arc<Node>,
    source: Vec<u8>,
    kind: Vec<u8>,
    flags: u64,
    options: &[u8],
) -> CallResult {
    let options = match &kind[..] {
        b"tmpfs" => Options::parse(options, call.unix.pool)?,
        b"ramfs" => Options::parse_mode(options)?,
        b"" => return Err(Errno::EINVAL),
        _ => return Err(Errno::ENODEV),
    };
    let volume = Volume::in_memory(call.unix.pool)?;
    volume.share_clock(call.unix.names.memory());
    volume.limit(options.pages, options.nodes)?;
    let who = call.process().credentials.borrow().clone();
    let (user, group) = (options.user.unwrap_or(who.user), options.group.unwrap_or(who.group));
    let root = Node::root(&volume, NewNode { mode: options.mode.unwrap_or(0o1777), user, group, now: call.now() })?;
    let mount = Mount { point, root: root.clone(), source: source.into(), kind: kind.into(), options: options.shown() };
    call.unix.names.mount(mount)?;
    let rules = Rules { volume_read_only: flags & RDONLY != 0, ..rules(flags, None) };
    call.unix.names.remount(&root, volume_flags(rules, flags), None)?;
    Ok(0)
}

/// The rules of a mount by its flags. Access times stay as they were `before` unless the flags say something about them.
fn rules(flags: u64, before: Option<Rules>) -> Rules {
    let has = |flag: u64| flags & flag != 0;
    let kept = before.filter(|_| !has(NOATIME | NODIRATIME | RELATIME | STRICTATIME));
    let access_times = match () {
        _ if has(STRICTATIME) => AccessTimes::Strict,
        _ if has(NOATIME) => AccessTimes::Never,
        _ => AccessTimes::Relative,
    };
    Rules {
        mount_read_only: has(RDONLY),
        no_set_id: has(NOSUID),
        no_devices: has(NODEV),
        no_execute: has(NOEXEC),
        no_follow: has(NOSYMFOLLOW),
        access_times: kept.map_or(access_times, |rules| rules.access_times),
        no_directory_times: kept.map_or(has(NODIRATIME), |rules| rules.no_directory_times),
        ..before.unwrap_or_default()
    }
}

/// What Linux keeps for the volume and not for its mount.
fn volume_flags(rules: Rules, flags: u64) -> Rules {
    let has = |flag: u64| flags & flag != 0;
    Rules {
        volume_read_only: has(RDONLY),
        synchronous: has(SYNCHRONOUS),
        directories_synchronous: has(DIRSYNC),
        lazy_times: has(LAZYTIME),
        ..rules
    }
}

/// With `MS_BIND` only the mount changes, else the volume too: here each volume is mounted once.
fn remount(call: &Call<'_>, root: &Arc<Node>, flags: u64, options: &[u8]) -> CallResult {
    let names = &call.unix.names;
    if !names.is_mounted(root) {
        return Err(Errno::EINVAL);
    }
    let volume = root.volume();
    if volume.residence() == Residence::Outside {
        // What is outside of the machine follows the rules there.
        return Err(Errno::EPERM);
    }
    let (before, mut shown) = (volume.rules(), None);
    let mut rules = rules(flags, Some(before));
    if flags & BIND == 0 {
        rules = volume_flags(rules, flags);
        if volume.residence() == Residence::Memory {
            let options = Options::parse(options, call.unix.pool)?;
            volume.limit(options.pages, options.nodes)?;
            let before = names.options_of(root);
            shown = Some(Options::parse(&before, call.unix.pool)?.limited_as(options).shown());
        }
    }
    names.remount(root, rules, shown)?;
    if rules.access_times != before.access_times {
        rebind_volume(call, volume.identity());
    }
    Ok(0)
}

/// Nobody else sees this tree, so mounts are private; whoever would hear of them is nobody. Error: `EINVAL`.
fn propagate(call: &Call<'_>, root: &Node, flags: u64) -> CallResult {
    let kinds = (flags & PROPAGATION).count_ones();
    let is_plain = flags & !(PROPAGATION | REC | SILENT) == 0;
    if kinds != 1 || !is_plain || !call.unix.names.is_mounted(root) { Err(Errno::EINVAL) } else { Ok(0) }
}

/// Errors: `EINVAL` for what is no mount and for `MNT_EXPIRE`, which is not known; `EPERM`; `EBUSY` while a file of the volume
/// is in use, unless it shall only be taken out of the tree (`MNT_DETACH`).
fn umount(call: &Call<'_>, target: u64, flags: u32) -> CallResult {
    if flags & !(FORCE | DETACH | NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let path = call.read_path(target)?;
    let last = if flags & NOFOLLOW != 0 { FinalLink::Keep } else { FinalLink::Follow };
    let root = find(call, &path, last)?;
    call.require(CAP_SYS_ADMIN)?;
    let names = &call.unix.names;
    if !names.is_mounted(&root) {
        return Err(Errno::EINVAL);
    }
    if flags & DETACH == 0 {
        if root.is(names.root()) {
            // The first volume is not taken away, but made safe.
            return remount(call, &root, REMOUNT | RDONLY, &[]);
        }
        if uses::is_used(call.unix, root.volume()) {
            return Err(Errno::EBUSY);
        }
    }
    names.unmount(&root)?;
    Ok(0)
}
