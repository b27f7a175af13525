//! Streams (S-90): what a program reads from and writes to.
//!
//! A stream is passive: the calling thread does the work (S-64, S-91), and where it must wait it sleeps in
//! a waiting queue of the stream. These are the generic paths; `open` also synthesizes the hot ones.

mod ready;
mod waits;

pub use ready::Ready;
pub use waits::{Io, UserRange};

use core::any::Any;

use abi::Errno;

use crate::schedule::WaitQueue;

/// A source or sink of bytes. Errors are those of the UNIX calls they serve.
pub trait Stream: Any {
    /// Reads to the program: at least one byte, 0 at the end, or an error. Sleeps if there is nothing,
    /// unless `io` says not to (`EAGAIN`); a signal ends the sleep with `EINTR`.
    fn read(&self, _io: &Io<'_>, _to: UserRange) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// Writes from the program; sleeps until all is written, unless `io` says not to.
    fn write(&self, _io: &Io<'_>, _from: UserRange) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// As `read`, into the kernel's own memory.
    fn read_kernel(&self, _io: &Io<'_>, _into: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// As `write`, from the kernel's own memory.
    fn write_kernel(&self, _io: &Io<'_>, _from: &[u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// What would not sleep now.
    fn ready(&self) -> Ready;

    /// The waiting queues that are woken when `ready` may have changed.
    fn each_queue<'a>(&'a self, _visit: &mut dyn FnMut(&'a WaitQueue)) {}

    /// For the type's owner to find its own again.
    fn as_any(&self) -> &dyn Any;
}
