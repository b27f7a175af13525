//! Calls on descriptors: dup, fcntl, locks, pipes.

use alloc::sync::Arc;

use abi::nr;
use kernel::pipe::{Pipe, PipeEnd, Side};

use super::Entry;
use crate::call::{Call, CallResult};
use crate::files::{OpenFile, Slot, synthesize};

pub fn pipe2(call: &Call<'_>, address: u64, flags: u64) -> CallResult {
    let flags = flags as u32;
    let pipe = Pipe::new(call.unix.makers())?;
    let limit = call.process().limits.borrow().descriptors();
    let add = |side, access| {
        let mut file = OpenFile::stream(Arc::new(PipeEnd::new(&pipe, side, call.unix.scheduler)), access);
        synthesize(call.unix, &mut file);
        call.process().files().add(Slot { file: Arc::new(file), close_on_exec: false }, 0, limit)
    };
    let r = add(Side::Read, flags)?;
    let w = add(Side::Write, flags | 1)?;
    call.write(address, &[r.0, w.0])?;
    Ok(0)
}

pub const CALLS: &[Entry] =
    &[(nr::PIPE, |call, [a, ..]| pipe2(call, a, 0)), (nr::PIPE2, |call, [a, b, ..]| pipe2(call, a, b))];
