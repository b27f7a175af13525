//! openat2: open with restrictions on the way.

use abi::Errno;
use abi::file::{O_CREAT, O_LARGEFILE, O_PATH, O_TMPFILE};
use kernel::file::{FinalLink, OpenHow, Opened, View};

use super::{KNOWN, KNOWN_WITH_PATH, finish, open_seen};
use crate::call::{Call, CallResult};

/// Bytes of `struct open_how`: flags, mode, resolve.
const HOW_BYTES: usize = 24;
/// A structure above a page is refused.
const HOW_BYTES_MAX: u64 = 4096;

/// Bits of `resolve` (`linux/openat2.h`).
const NO_XDEV: u64 = 1;
const NO_MAGICLINKS: u64 = 2;
const NO_SYMLINKS: u64 = 4;
const BENEATH: u64 = 8;
const IN_ROOT: u64 = 16;
const CACHED: u64 = 32;

/// Errors: `EINVAL` for what is unknown or contradicts itself, `E2BIG` for a structure from the future, `EAGAIN` for
/// `RESOLVE_CACHED` together with creation, `EXDEV` for leaving the directory or the volume, `ELOOP` for a symlink;
/// those of `open`.
pub fn openat2(call: &Call<'_>, directory: u64, path: u64, how: u64, bytes: u64) -> CallResult {
    let [flags, mode, resolve] = read_how(call, how, bytes)?;
    let flags = u32::try_from(flags).ok().filter(|flags| flags & !KNOWN == 0).ok_or(Errno::EINVAL)?;
    let creates = flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE;
    let known = NO_XDEV | NO_MAGICLINKS | NO_SYMLINKS | BENEATH | IN_ROOT | CACHED;
    let contradicts = resolve & (BENEATH | IN_ROOT) == BENEATH | IN_ROOT;
    let bad_path_flags = flags & O_PATH != 0 && flags & !KNOWN_WITH_PATH != 0;
    let bad_mode = mode & !0o7777 != 0 || (mode != 0 && !creates);
    if resolve & !known != 0 || contradicts || bad_path_flags || bad_mode {
        return Err(Errno::EINVAL);
    }
    if resolve & CACHED != 0 && creates {
        return Err(Errno::EAGAIN);
    }
    let path = call.read_path(path)?;
    if resolve & BENEATH != 0 && leaves(&path) {
        return Err(Errno::EXDEV);
    }
    let flags = if flags & O_PATH != 0 { flags } else { flags | O_LARGEFILE };
    let find = |view: View<'_>, how: OpenHow| open_restricted(call, view, &path, how, resolve);
    finish(call, flags, || open_seen(call, directory, relative(&path, resolve), flags, mode as u32, find))
}

fn read_how(call: &Call<'_>, address: u64, bytes: u64) -> Result<[u64; 3], Errno> {
    if bytes < HOW_BYTES as u64 {
        return Err(Errno::EINVAL);
    }
    if bytes > HOW_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    let rest = call.read_bytes(address, bytes as usize)?;
    if rest[HOW_BYTES..].iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    call.read(address)
}

/// With a root of its own, even an absolute path starts at the directory.
fn relative(path: &[u8], resolve: u64) -> &[u8] {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    match () {
        _ if resolve & IN_ROOT == 0 || slashes == 0 => path,
        _ if slashes == path.len() => b".",
        _ => &path[slashes..],
    }
}

/// Whether a path leads above its start by its own names.
fn leaves(path: &[u8]) -> bool {
    let mut depth = 0;
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    path.first() == Some(&b'/')
}

fn open_restricted(call: &Call<'_>, view: View<'_>, path: &[u8], how: OpenHow, resolve: u64) -> Result<Opened, Errno> {
    let names = &call.unix.names;
    let path = relative(path, resolve);
    let confined = resolve & (BENEATH | IN_ROOT) != 0;
    let view = if confined { View { root: view.directory, ..view } } else { view };
    if resolve & NO_SYMLINKS != 0 {
        refuse_links(call, view, path)?;
    }
    let opened = names.open(view, path, how, call.now())?;
    let same_volume = alloc::sync::Arc::ptr_eq(opened.node.volume(), view.directory.volume());
    if resolve & NO_XDEV != 0 && !same_volume { Err(Errno::EXDEV) } else { Ok(opened) }
}

/// Error: `ELOOP` if a name on the way is a symlink.
fn refuse_links(call: &Call<'_>, view: View<'_>, path: &[u8]) -> Result<(), Errno> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]).filter(|end| *end > 0) {
        let found = call.unix.names.lookup(view, &path[..end], FinalLink::Keep);
        if found.is_ok_and(|node| node.is_symlink()) {
            return Err(Errno::ELOOP);
        }
    }
    Ok(())
}
