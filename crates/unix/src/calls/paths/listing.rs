//! The entries of a directory: getdents64, and getdents, its older form.

use abi::Errno;
use abi::file::Dirent64;
use kernel::file::{Listed, Visit};

use crate::call::{Call, CallResult, int};
use crate::files::Body;

/// Bytes listed by one call at most; the caller asks again anyway.
const LISTING_BYTES_MAX: usize = 32_768;

/// Writes one entry to the start of the bytes; `None` if it does not fit.
type Encode = fn(&Listed<'_>, &mut [u8]) -> Option<usize>;

pub fn getdents64(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    list(call, descriptor, address, bytes, |listed, out| {
        let entry = Dirent64 { d_ino: listed.number, d_off: listed.next as i64, d_type: listed.kind.listing_type() };
        entry.encode(listed.name, out)
    })
}

/// The older record: number, next, length, name, NUL, padding, and the type in the last byte.
pub fn getdents(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64) -> CallResult {
    const HEADER_BYTES: usize = 18;
    list(call, descriptor, address, bytes, |listed, out| {
        let bytes = (HEADER_BYTES + listed.name.len() + 2).next_multiple_of(8);
        let record = out.get_mut(..bytes)?;
        record.fill(0);
        record[..8].copy_from_slice(&listed.number.to_le_bytes());
        record[8..16].copy_from_slice(&listed.next.to_le_bytes());
        record[16..18].copy_from_slice(&(bytes as u16).to_le_bytes());
        record[HEADER_BYTES..HEADER_BYTES + listed.name.len()].copy_from_slice(listed.name);
        record[bytes - 1] = listed.kind.listing_type();
        Some(bytes)
    })
}

/// Errors: `EBADF`, `ENOTDIR`, `ENOENT` for a removed directory, `EINVAL` when not even one entry fits, `EFAULT`.
fn list(call: &Call<'_>, descriptor: u64, address: u64, bytes: u64, encode: Encode) -> CallResult {
    let file = call.file(descriptor)?;
    let node = file.node().filter(|_| file.is_directory()).ok_or(Errno::ENOTDIR)?;
    let mut buffer = call.buffer((int(bytes).max(0) as usize).min(LISTING_BYTES_MAX))?;
    let (mut used, mut position, mut full) = (0, file.position(), false);
    let capacity = buffer.len();
    let mut take = |listed: &Listed<'_>| match encode(listed, &mut buffer[used..]) {
        Some(written) => {
            used += written;
            position = listed.next;
            Visit::Continue
        }
        None => {
            full = true;
            Visit::Stop
        }
    };
    match &file.body {
        Body::Outside(opening) => opening.list(file.position(), capacity, &mut take)?,
        _ => node.list(file.position(), &mut take)?,
    }
    if used == 0 && full {
        return Err(Errno::EINVAL);
    }
    call.copy_out(address, &buffer[..used])?;
    file.set_position(position);
    node.note_read(call.now());
    Ok(used as u64)
}
