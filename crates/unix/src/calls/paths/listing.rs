//! The entries of a directory: getdents64, and getdents, its older form.

use abi::Errno;
use abi::file::Dirent64;
use kernel::file::{Listed, Visit};

use crate::call::{Call, CallResult, int};
use crate::files::open_file::Body;

/// Bytes that are listed before they go to the program. Most directories are small; a host's are better asked seldom.
const PIECE_BYTES: usize = 1024;
const OUTSIDE_BYTES: usize = 32_768;

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
    let outside = if let Body::File(opening) = &file.body { Some(opening) } else { None };
    let capacity = int(bytes).max(0) as usize;
    let mut piece = call.buffer(capacity.min(if outside.is_some() { OUTSIDE_BYTES } else { PIECE_BYTES }))?;
    let mut done = 0;
    loop {
        let room = piece.len().min(capacity - done);
        let (mut used, mut position, mut full) = (0, file.position(), false);
        let mut take = |listed: &Listed<'_>| match encode(listed, &mut piece[used..room]) {
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
        match outside {
            Some(opening) => opening.list(file.position(), room, &mut take)?,
            None => node.list(file.position(), &mut take)?,
        }
        if done == 0 && used == 0 && full {
            return Err(Errno::EINVAL);
        }
        match call.copy_out(address + done as u64, &piece[..used]) {
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
            Ok(()) => {}
        }
        done += used;
        file.set_position(position);
        if !full || used == 0 {
            break;
        }
    }
    node.note_read(call.now());
    node.happened(abi::poll::IN_ACCESS);
    Ok(done as u64)
}
