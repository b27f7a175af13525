//! Transfers that a program submits and asks for later; they are done at once (`calls/aio`).

use alloc::sync::Arc;

use abi::Errno;
use abi::file::Iovec;

use super::vectors::{Ranges, read_ranges, write_ranges};
use super::{At, extent};
use crate::call::Call;
use crate::files::open_file::OpenFile;
use kernel::counter::EventCounter;

/// The buffers: one, or those of a vector. Errors: `EFAULT`, `EINVAL`, `ENOMEM`.
fn ranges(call: &Call<'_>, [address, count]: [u64; 2], is_vector: bool) -> Result<Ranges, Errno> {
    let mut ranges = Ranges::NONE;
    if is_vector {
        ranges.fill(call, [address, count])?;
    } else {
        ranges.fill_one(Iovec { iov_base: address, iov_len: count }, call.range(address, count)?);
    }
    Ok(ranges)
}

fn place(file: &OpenFile, offset: u64) -> Result<At, Errno> {
    match i64::try_from(offset) {
        _ if !file.is_seekable() => Ok(At::Position),
        Ok(_) => Ok(At::Offset(offset)),
        Err(_) => Err(Errno::EINVAL),
    }
}

type Done = Result<Result<usize, Errno>, Errno>;

/// Errors of the submission: `EFAULT`, `EINVAL`, `ENOMEM`; what became of it is the result.
pub fn read(call: &Call<'_>, file: &Arc<OpenFile>, buffer: [u64; 2], offset: u64, is_vector: bool) -> Done {
    let buffers = ranges(call, buffer, is_vector)?;
    Ok(place(file, offset).and_then(|at| read_ranges(call, file, &buffers, at)))
}

/// As `read`.
pub fn write(call: &Call<'_>, file: &Arc<OpenFile>, buffer: [u64; 2], offset: u64, is_vector: bool) -> Done {
    let buffers = ranges(call, buffer, is_vector)?;
    Ok(place(file, offset).and_then(|at| write_ranges(call, file, &buffers, at)))
}

pub fn sync(call: &Call<'_>, descriptor: u32, data_only: bool) -> Result<usize, Errno> {
    let synced =
        if data_only { extent::fdatasync(call, descriptor.into()) } else { extent::fsync(call, descriptor.into()) };
    synced.map(|done| done as usize)
}

/// The event counter that is told. Errors: `EBADF`, `EINVAL` for what is none.
pub fn counter(call: &Call<'_>, descriptor: u64) -> Result<Arc<OpenFile>, Errno> {
    let file = call.file(descriptor)?;
    if file.stream_of::<EventCounter>().is_some() { Ok(file) } else { Err(Errno::EINVAL) }
}

/// One more event; a counter that is full stays so.
pub fn count_one(call: &Call<'_>, counter: &OpenFile) {
    if let Some(counter) = counter.stream_of::<EventCounter>() {
        counter.count_one(call.unix.scheduler);
    }
}
