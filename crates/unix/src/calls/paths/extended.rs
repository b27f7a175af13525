//! Extended attributes. No volume here stores any, so the calls say what Linux says of a file without one, and
//! refuse to add one.

use abi::Errno;
use kernel::file::FinalLink;

use super::HERE;
use super::locate::lookup;
use crate::call::{Call, CallResult};

/// What a call names.
pub enum At {
    Path(u64),
    /// A path whose last link is meant itself.
    Link(u64),
    Descriptor(u64),
}

/// Longest name in bytes (`XATTR_NAME_MAX`) and largest value (`XATTR_SIZE_MAX`).
const NAME_BYTES_MAX: usize = 255;
const VALUE_BYTES_MAX: u64 = 65_536;

fn check(call: &Call<'_>, at: At) -> Result<(), Errno> {
    match at {
        At::Path(path) => lookup(call, HERE, &call.read_path(path)?, FinalLink::Follow).map(drop),
        At::Link(path) => lookup(call, HERE, &call.read_path(path)?, FinalLink::Keep).map(drop),
        At::Descriptor(descriptor) => call.file(descriptor).map(drop),
    }
}

/// Also the removing of one. Errors: `ERANGE` for a name that is empty or too long, those of a lookup, `ENODATA`,
/// `ENOTSUP` for a name without a known beginning.
pub fn get(call: &Call<'_>, at: At, name: u64) -> CallResult {
    let name = call.read_string(name, NAME_BYTES_MAX, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE);
    }
    check(call, at)?;
    const KNOWN: [&[u8]; 4] = [b"user.", b"security.", b"trusted.", b"system.posix_acl_"];
    let known = KNOWN.iter().any(|start| name.starts_with(start));
    Err(if known { Errno::ENODATA } else { Errno::ENOTSUP })
}

/// `value` is name, address, bytes and flags. Errors: as `get`; `EINVAL` for flags, `E2BIG`, then `ENOTSUP`.
pub fn set(call: &Call<'_>, at: At, value: [u64; 4]) -> CallResult {
    let [name, _, bytes, flags] = value;
    if flags as u32 & !3 != 0 {
        return Err(Errno::EINVAL);
    }
    let name = call.read_string(name, NAME_BYTES_MAX, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE);
    }
    if bytes > VALUE_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    check(call, at)?;
    Err(Errno::ENOTSUP)
}

pub fn list(call: &Call<'_>, at: At) -> CallResult {
    check(call, at).map(|()| 0)
}
