//! The simple devices of /dev: null, zero, full, random.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::call::{FileCode, Makers, SimpleCode};
use kernel::charge::Held;
use kernel::stream::{Io, Ready, Stream, UserRange};

use super::random::{Random, give_random};
use crate::devices::Device;
use crate::files::open_file::Body;

/// The memory devices, major number 1 (Linux `devices.txt`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryDevice {
    Null,
    Zero,
    Full,
    Random(&'static Random),
}

pub(crate) const DEVICE: Device = Device {
    names: |show| {
        let names = [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)];
        names.iter().for_each(|(name, minor)| show(format_args!("{name}"), (1, *minor), 0o666));
    },
    open: |call, _, numbers, _| {
        let device = match numbers {
            (1, 3) => MemoryDevice::Null,
            (1, 5) => MemoryDevice::Zero,
            (1, 7) => MemoryDevice::Full,
            (1, 8 | 9) => MemoryDevice::Random(&call.unix.random),
            _ => return None,
        };
        Some(Ok(Body::Stream(Arc::new(device))))
    },
    request: Device::no_request,
};

impl Stream for MemoryDevice {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        match self {
            MemoryDevice::Null => Ok(0),
            MemoryDevice::Zero | MemoryDevice::Full => io.zero_out(to),
            MemoryDevice::Random(random) => give_random(random, io, to),
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
            MemoryDevice::Random(random) => random.fill(io.machine(), into),
        }
        Ok(into.len())
    }

    fn write_kernel(&self, _io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        match self {
            MemoryDevice::Full => Err(Errno::ENOSPC),
            _ => Ok(from.len()),
        }
    }

    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn ready(&self) -> Ready {
        Ready::READABLE.with(Ready::WRITABLE)
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        let SimpleCode { null, zero } = SimpleCode::shared(makers);
        match self {
            MemoryDevice::Null => FileCode { read: null.read, write: null.write, ..FileCode::default() },
            MemoryDevice::Zero => FileCode { read: zero.read, write: null.write, ..FileCode::default() },
            MemoryDevice::Full | MemoryDevice::Random(_) => FileCode::default(),
        }
    }

    fn opens_without_trace(&self) -> bool {
        true
    }

    fn takes_positions(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
