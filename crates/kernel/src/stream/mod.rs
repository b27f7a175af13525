//! Streams (S-90): what a program reads from and writes to.
//!
//! A stream is passive: the calling thread does the work (S-64, S-91), and where it must wait it sleeps in
//! a waiting queue of the stream. These are the generic paths; `open` also synthesizes the hot ones.

mod nameless;
mod ready;
mod waits;

pub use nameless::{Ownership, SocketRecord, take_number};
pub use ready::{Progress, Ready};
pub use waits::{Caller, Io, UserRange, Waits, copy_anew};

use core::any::Any;

use abi::Errno;

use codestore::Code;

use crate::call::{FileCode, Makers};
use crate::charge::Held;
use crate::ready::Readiness;
use crate::schedule::WaitQueue;

/// What /proc/PID/fd calls a stream without a name. The number is the same for all ends of one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nameless {
    /// `pipe:[N]`
    Pipe(u64),
    /// `socket:[N]`
    Socket(u64),
    /// `anon_inode:` and this, for example `[eventfd]`.
    Anonymous(&'static str),
}

/// A source or sink of bytes. Errors are those of the UNIX calls they serve.
pub trait Stream: Any + Send + Sync {
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

    /// It takes a position with a read or a write, and does not care about it.
    fn takes_positions(&self) -> bool {
        false
    }

    /// `lseek` finds it at 0, wherever it is told to go, if it was made without a name.
    fn stays_at_start(&self) -> bool {
        matches!(self.nameless(), Nameless::Anonymous(_))
    }

    /// Bytes that a read would give now (`FIONREAD`), if it says.
    fn readable_bytes(&self) -> Option<usize> {
        None
    }

    /// Somebody has it open who does not wait (`O_NONBLOCK`): its routines, which do not know who calls, must not sleep any more.
    fn does_not_wait(&self) {}

    /// Whether it tells by signals that it became ready, to whom asks for that (`O_ASYNC`).
    fn tells_by_signal(&self) -> bool {
        false
    }

    /// Whether it may have got routines since it was opened.
    fn gains_code(&self) -> bool {
        false
    }

    /// How far the stream has come, for those who ask only about news (edge-triggered `epoll`); `None`
    /// when it does not count.
    fn progress(&self) -> Option<Progress> {
        None
    }

    /// A descriptor of it goes away, while messages on their way hold its open file: who is told could be unreachable now.
    fn descriptor_lost(&self) {}

    /// A process has closed a descriptor of it.
    fn closed_by(&self, _process: u32) {}

    /// What this end keeps of the kernel's memory, its part of what it shares with others. Asks for no memory itself.
    fn held(&self) -> Held;

    /// What the stream is, if it was made without a name in the file tree.
    fn nameless(&self) -> Nameless {
        self.socket().map_or(Nameless::Anonymous("[stream]"), |socket| Nameless::Socket(socket.number))
    }

    /// What it is as a socket, if it is one.
    fn socket(&self) -> Option<&SocketRecord> {
        None
    }

    /// Closing its last descriptor waits, perhaps.
    fn lingers(&self) -> bool {
        false
    }

    /// The same where its program ends without closing it: not longer than a few seconds, for nobody can end the wait.
    fn lingers_at_end(&self) -> bool {
        false
    }

    /// Before its last descriptor goes: waits as it was told to.
    fn linger(&self, _io: &Io<'_>) {}

    /// What chmod and chown change of it, if it was made without a name and remembers that.
    fn ownership(&self) -> Option<&Ownership> {
        self.socket().map(|socket| &socket.ownership)
    }

    /// Opening the same name again gives a stream that cannot be told from this one, so an open may be put off until
    /// somebody looks at the descriptor.
    fn opens_without_trace(&self) -> bool {
        false
    }

    /// The synthesized callentries of the stream, for whoever has it open (S-89). What is left out is done by `read` and
    /// `write` above, which say what a call means.
    fn callentries(&self, _makers: Makers) -> FileCode {
        FileCode::default()
    }

    /// A procedure that says what it is ready for, for who has it open and asks often; `None`: that is Rust's to say.
    fn readiness(&self, _makers: Makers) -> Option<Code<Readiness>> {
        None
    }

    /// For the type's owner to find its own again.
    fn as_any(&self) -> &dyn Any;
}
