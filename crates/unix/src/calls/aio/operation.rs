//! One operation that a program submits.

use abi::{Errno, Field};
use alloc::sync::Arc;

use super::context::Context;
use crate::call::Call;
use crate::calls::transfer::asynchronous;
use crate::files::open_file::OpenFile;

/// `struct iocb` (`linux/aio_abi.h`).
const RECORD_BYTES: usize = 64;

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;

/// `IOCB_FLAG_RESFD`, `IOCB_FLAG_IOPRIO`.
const TELLS: u32 = 1;
const HAS_PRIORITY: u32 = 2;

struct Record {
    data: u64,
    operation: u16,
    flags: u32,
    descriptor: u32,
    buffer: [u64; 2],
    offset: u64,
    event_descriptor: u32,
}

/// Errors: `EFAULT`, `EINVAL` for what is reserved or absurd.
fn read(call: &Call<'_>, address: u64) -> Result<Record, Errno> {
    let mut bytes = [0; RECORD_BYTES];
    call.copy_in(address, &mut bytes)?;
    let word = |at: usize| u64::get(&bytes[at..]);
    let half = |at: usize| u32::get(&bytes[at..]);
    let buffer = [word(24), word(32)];
    if word(48) != 0 || (buffer[1] as i64) < 0 || half(56) & !(TELLS | HAS_PRIORITY) != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(Record {
        data: word(0),
        operation: u16::get(&bytes[16..]),
        flags: half(56),
        descriptor: half(20),
        buffer,
        offset: word(40),
        event_descriptor: half(60),
    })
}

/// Does what the record at `address` says; its result waits in the context, which has room for it.
///
/// Errors, which are no result: `EFAULT`, `EINVAL`, `EBADF`.
pub fn perform(call: &Call<'_>, context: &Context, address: u64) -> Result<(), Errno> {
    let record = read(call, address)?;
    let file = call.file(record.descriptor.into())?;
    let told = match record.flags & TELLS {
        0 => None,
        _ => Some(asynchronous::counter(call, record.event_descriptor.into())?),
    };
    // The mark by which io_cancel knows the record: 0.
    call.write(address + 8, &0u32)?;
    let result = run(call, &record, &file)?;
    let result = result.map_or_else(|error| error.as_return_value(), |done| done as u64);
    context.put(call.unix.scheduler, [record.data, address, result, 0]);
    if let Some(counter) = told {
        asynchronous::count_one(call, &counter);
    }
    Ok(())
}

/// The outer error is the submission's, the inner one the operation's result.
fn run(call: &Call<'_>, record: &Record, file: &Arc<OpenFile>) -> Result<Result<usize, Errno>, Errno> {
    let [address, bytes] = record.buffer;
    Ok(match record.operation {
        PREAD | PREADV => {
            file.check_readable()?;
            asynchronous::read(call, file, record.buffer, record.offset, record.operation == PREADV)?
        }
        PWRITE | PWRITEV => {
            file.check_writable()?;
            asynchronous::write(call, file, record.buffer, record.offset, record.operation == PWRITEV)?
        }
        FSYNC | FDSYNC if address != 0 || bytes != 0 || record.offset != 0 => return Err(Errno::EINVAL),
        FSYNC => asynchronous::sync(call, record.descriptor, false),
        FDSYNC => asynchronous::sync(call, record.descriptor, true),
        _ => return Err(Errno::EINVAL),
    })
}
