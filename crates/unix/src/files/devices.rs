//! The simple devices of /dev: null, zero, full, random.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::call::{FileCode, Makers, SimpleCode};
use kernel::stream::{Io, Ready, Stream, UserRange};
use machine::PAGE_BYTES;

/// The memory devices, major number 1 (Linux `devices.txt`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryDevice {
    Null,
    Zero,
    Full,
    Random,
}

/// The stream of a character device that is not the terminal.
pub fn device_stream(major: u32, minor: u32) -> Option<Arc<dyn Stream>> {
    let device = match (major, minor) {
        (1, 3) => MemoryDevice::Null,
        (1, 5) => MemoryDevice::Zero,
        (1, 7) => MemoryDevice::Full,
        (1, 8 | 9) => MemoryDevice::Random,
        _ => return None,
    };
    Some(Arc::new(device))
}

fn fill_with_random(io: &Io<'_>, into: &mut [u8]) {
    for chunk in into.chunks_mut(8) {
        chunk.copy_from_slice(&io.machine().random().to_le_bytes()[..chunk.len()]);
    }
}

/// Gives as many random bytes as are asked for, but for a signal; between pages others run. Error: `EFAULT` if the first bytes faulted.
pub fn give_random(io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
    const PIECE_BYTES: usize = 256;
    let mut done = 0;
    while done < to.bytes {
        let rest = to.after(done);
        // Pieces end at page boundaries, so that all bytes before a page that is not there are counted.
        let to_page_end = PAGE_BYTES - rest.address.0 as usize % PAGE_BYTES;
        let bytes = rest.bytes.min(PIECE_BYTES).min(to_page_end);
        let piece = &mut [0; PIECE_BYTES][..bytes];
        fill_with_random(io, piece);
        if io.machine().copy_out(rest.address, piece).is_err() {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
        }
        done += bytes;
        if bytes == to_page_end {
            if (io.interrupted)() {
                break;
            }
            io.scheduler.let_others_run();
        }
    }
    Ok(done)
}

impl Stream for MemoryDevice {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        match self {
            MemoryDevice::Null => Ok(0),
            MemoryDevice::Zero | MemoryDevice::Full => {
                let zeroed = io.machine().zero_out(to.address, to.bytes);
                if zeroed == 0 && to.bytes > 0 { Err(Errno::EFAULT) } else { Ok(zeroed) }
            }
            MemoryDevice::Random => give_random(io, to),
        }
    }

    fn write(&self, _io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        match self {
            // However little is written.
            MemoryDevice::Full => Err(Errno::ENOSPC),
            _ => Ok(from.bytes),
        }
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            MemoryDevice::Null => return Ok(0),
            MemoryDevice::Zero | MemoryDevice::Full => into.fill(0),
            MemoryDevice::Random => fill_with_random(io, into),
        }
        Ok(into.len())
    }

    fn write_kernel(&self, _io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        match self {
            MemoryDevice::Full => Err(Errno::ENOSPC),
            _ => Ok(from.len()),
        }
    }

    fn ready(&self) -> Ready {
        Ready::READABLE.with(Ready::WRITABLE)
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        let SimpleCode { null, zero } = SimpleCode::shared(makers);
        match self {
            MemoryDevice::Null => FileCode { read: null.read, write: null.write, ..FileCode::default() },
            MemoryDevice::Zero => FileCode { read: zero.read, write: null.write, ..FileCode::default() },
            MemoryDevice::Full | MemoryDevice::Random => FileCode::default(),
        }
    }

    fn opens_without_trace(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
