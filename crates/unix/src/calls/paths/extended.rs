//! Extended attributes. No volume in memory stores any, so the calls say what Linux says of a file without one, and
//! refuse to add one. What is outside of the machine has those that it has there.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::file::{FinalLink, Node};
use machine::Extended;

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

/// The node of a call; a stream has none.
fn node(call: &Call<'_>, at: At) -> Result<Option<Arc<Node>>, Errno> {
    match at {
        At::Path(path) => lookup(call, HERE, &call.read_path(path)?, FinalLink::Follow).map(Some),
        At::Link(path) => lookup(call, HERE, &call.read_path(path)?, FinalLink::Keep).map(Some),
        At::Descriptor(descriptor) => Ok(call.file(descriptor)?.node().cloned()),
    }
}

/// A name with its NUL. Error: `ERANGE` when it is empty or too long.
fn name_of(call: &Call<'_>, name: u64) -> Result<Vec<u8>, Errno> {
    let mut name = call.read_string(name, NAME_BYTES_MAX, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE);
    }
    name.push(0);
    Ok(name)
}

/// Has `fill` put bytes into a buffer of the caller's size, and copies them out.
fn answer(
    call: &Call<'_>,
    [address, bytes]: [u64; 2],
    fill: impl FnOnce(&mut [u8]) -> Option<Result<usize, Errno>>,
) -> Option<CallResult> {
    let mut buffer = match call.buffer(bytes.min(VALUE_BYTES_MAX) as usize) {
        Ok(buffer) => buffer,
        Err(error) => return Some(Err(error)),
    };
    let filled = fill(&mut buffer)?;
    Some(filled.and_then(|count| {
        call.copy_out(address, &buffer[..count.min(buffer.len())])?;
        Ok(count as u64)
    }))
}

/// Errors: `ERANGE` for a name that is empty or too long, those of a lookup, `ENODATA`, `ENOTSUP` for a name without a
/// known beginning.
pub fn get(call: &Call<'_>, at: At, name: u64, value: [u64; 2]) -> CallResult {
    let name = name_of(call, name)?;
    let node = node(call, at)?;
    let outside =
        node.and_then(|node| answer(call, value, |into| node.extended_outside(Extended::Get { name: &name, into })));
    outside.unwrap_or_else(|| absent(&name))
}

/// Errors: as `get`.
pub fn remove(call: &Call<'_>, at: At, name: u64) -> CallResult {
    let name = name_of(call, name)?;
    let node = node(call, at)?;
    let outside = node.and_then(|node| node.extended_outside(Extended::Remove { name: &name }));
    outside.map_or_else(|| absent(&name), |removed| removed.map(|_| 0))
}

/// What a node without any attribute says.
fn absent(name: &[u8]) -> CallResult {
    const KNOWN: [&[u8]; 4] = [b"user.", b"security.", b"trusted.", b"system.posix_acl_"];
    let known = KNOWN.iter().any(|start| name.starts_with(start));
    Err(if known { Errno::ENODATA } else { Errno::ENOTSUP })
}

/// `value` is name, address, bytes and flags. Errors: as `get`; `EINVAL` for flags, `E2BIG`, then `ENOTSUP`.
pub fn set(call: &Call<'_>, at: At, value: [u64; 4]) -> CallResult {
    let [name, address, bytes, flags] = value;
    if flags as u32 & !3 != 0 {
        return Err(Errno::EINVAL);
    }
    let name = name_of(call, name)?;
    if bytes > VALUE_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    let Some(node) = node(call, at)?.filter(|node| node.foreign().is_some()) else { return Err(Errno::ENOTSUP) };
    let value = call.read_bytes(address, bytes as usize)?;
    let set = node.extended_outside(Extended::Set { name: &name, value: &value, flags: flags as u32 });
    set.unwrap_or(Err(Errno::ENOTSUP)).map(|_| 0)
}

pub fn list(call: &Call<'_>, at: At, names: [u64; 2]) -> CallResult {
    let node = node(call, at)?;
    let outside = node.and_then(|node| answer(call, names, |into| node.extended_outside(Extended::List { into })));
    outside.unwrap_or(Ok(0))
}
