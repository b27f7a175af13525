//! openat2: open with restrictions on the way.

use abi::Errno;
use abi::file::{O_CREAT, O_LARGEFILE, O_PATH, O_TMPFILE, O_TRUNC};
use kernel::file::Limits;

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
/// `RESOLVE_CACHED` together with creation or for what is outside of the machine, `EXDEV` for leaving the directory or the volume,
/// `ELOOP` for a symlink;
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
    if resolve & CACHED != 0 && (creates || flags & O_TRUNC != 0) {
        return Err(Errno::EAGAIN);
    }
    let path = call.read_path(path)?;
    let flags = if flags & O_PATH != 0 { flags } else { flags | O_LARGEFILE };
    finish(call, flags, || open_seen(call, directory, &path, flags, mode as u32, limits(resolve)))
}

fn limits(resolve: u64) -> Limits {
    let has = |bit: u64| resolve & bit != 0;
    Limits {
        one_volume: has(NO_XDEV),
        no_jumps: has(NO_MAGICLINKS),
        no_links: has(NO_SYMLINKS),
        beneath: has(BENEATH),
        in_root: has(IN_ROOT),
        no_asking: has(CACHED),
    }
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
