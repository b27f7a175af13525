//! Extended attributes. What is outside of the machine has those that it has there.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::file::{FinalLink, Node};
use machine::{Extended, TryGrow};

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
    name.try_push(0)?;
    Ok(name)
}

/// Has `fill` put bytes into a buffer of the caller's size, and copies them out.
fn answer(
    call: &Call<'_>,
    [address, bytes]: [u64; 2],
    fill: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
) -> CallResult {
    let mut buffer = call.buffer(bytes.min(VALUE_BYTES_MAX) as usize)?;
    let count = fill(&mut buffer)?;
    show(call, address, &buffer, count)
}

fn show(call: &Call<'_>, address: u64, buffer: &[u8], count: usize) -> CallResult {
    let shown = &buffer[..count.min(buffer.len())];
    // Where there is nothing to show nobody looks at the address.
    if !shown.is_empty() {
        call.copy_out(address, shown)?;
    }
    Ok(count as u64)
}

/// The value of `name`, or all names, of what lies outside of the machine and can be asked for without a walk. `None`: it must be
/// looked up.
fn answer_from_outside(
    call: &Call<'_>,
    at: &At,
    name: Option<&[u8]>,
    [address, bytes]: [u64; 2],
) -> Result<Option<u64>, Errno> {
    if !call.unix.names.may_glance() {
        return Ok(None);
    }
    let (path, last) = match at {
        At::Path(path) => (call.read_path(*path)?, FinalLink::Follow),
        At::Link(path) => (call.read_path(*path)?, FinalLink::Keep),
        At::Descriptor(_) => return Ok(None),
    };
    let mut buffer = call.buffer(bytes.min(VALUE_BYTES_MAX) as usize)?;
    let into = &mut buffer[..];
    let mut what = match name {
        Some(name) => Extended::Get { name, into },
        None => Extended::List { into },
    };
    let count = call.with_view(HERE, &path, |view| call.unix.names.extended_outside(view, &path, last, &mut what))?;
    count.map(|count| show(call, address, &buffer, count)).transpose()
}

/// Errors: `ERANGE` for a name that is empty or too long, or too little room, those of a lookup, `ENODATA`, `ENOTSUP` for
/// a name without a known beginning, `EACCES`.
pub fn get(call: &Call<'_>, at: At, name: u64, value: [u64; 2]) -> CallResult {
    let name = name_of(call, name)?;
    if let Some(count) = answer_from_outside(call, &at, Some(&name), value)? {
        return Ok(count);
    }
    let Some(node) = node(call, at)? else { return of_stream(&name, Errno::ENODATA) };
    answer(call, value, |into| ask(call, &node, Extended::Get { name: &name, into }))
}

/// Errors: as `get`; `EPERM`, `EROFS`.
pub fn remove(call: &Call<'_>, at: At, name: u64) -> CallResult {
    let name = name_of(call, name)?;
    let Some(node) = node(call, at)? else { return of_stream(&name, Errno::EPERM) };
    ask(call, &node, Extended::Remove { name: &name }).map(|_| 0)
}

fn ask(call: &Call<'_>, node: &Node, what: Extended<'_>) -> Result<usize, Errno> {
    let who = call.process().credentials.borrow().clone();
    node.extended(&who, what, call.now())
}

/// A stream has no attributes. Error: `refusal` for one of a file's users, which are for files and directories.
fn of_stream(name: &[u8], refusal: Errno) -> CallResult {
    Err(if name.starts_with(b"user.") { refusal } else { Errno::ENOTSUP })
}

/// `value` is name, address, bytes and flags. Errors: as `remove`; `EINVAL` for flags, `E2BIG`, `EEXIST`, `ENOSPC`.
pub fn set(call: &Call<'_>, at: At, value: [u64; 4]) -> CallResult {
    let [name, address, bytes, flags] = value;
    if flags as u32 > 3 {
        return Err(Errno::EINVAL);
    }
    let name = name_of(call, name)?;
    if bytes > VALUE_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    let value = call.read_bytes(address, bytes as usize)?;
    let Some(node) = node(call, at)? else { return of_stream(&name, Errno::EPERM) };
    ask(call, &node, Extended::Set { name: &name, value: &value, flags: flags as u32 }).map(|_| 0)
}

pub fn list(call: &Call<'_>, at: At, names: [u64; 2]) -> CallResult {
    if let Some(count) = answer_from_outside(call, &at, None, names)? {
        return Ok(count);
    }
    let Some(node) = node(call, at)? else { return Ok(0) };
    answer(call, names, |into| ask(call, &node, Extended::List { into }))
}
