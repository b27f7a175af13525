//! The bytes of a stream between two sockets, once it pays: a ring for each direction, with the pipe's routines.
//!
//! ```text
//!   socket A ── write ──► ring ──► read ── socket B
//!                 └─ Rust ─► messages ─┘               what goes with descriptors, or finds no room in the ring
//! ```
//! Invariant: what is in the ring came before all messages. So while messages wait the ring is *diverted*: reads and writes go to
//! Rust, which adds what comes to the messages, and gives what is in the ring first. When the last message is taken, bytes flow through
//! the ring again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use abi::Errno;
use kernel::call::{FileCode, Makers};
use kernel::pipe::Pipe;
use kernel::stream::{Io, Progress, UserRange};
use machine::{KernelOnce, KernelValue, TryGrow};

use super::parcel::{Parcel, Received};
use super::unix::UnixSocket;

/// A direction gets its ring when Rust has sent so often in it: the ring takes 64 KB, its routines a kilobyte, and making them costs
/// as much as ten messages.
const SENDS: u8 = 8;

/// What a socket knows of the two rings it stands between.
#[derive(Default)]
pub struct Flow {
    /// What comes for it.
    inbound: KernelOnce<Arc<Pipe>>,
    /// What it sends: its peer's inbound.
    outbound: KernelOnce<Arc<Pipe>>,
    /// What Rust has sent while there was no ring.
    sends: KernelValue<u8>,
    is_nonblocking: KernelValue<bool>,
}

impl Flow {
    /// Whether there are rings, and so may be routines.
    pub fn has_ring(&self) -> bool {
        self.inbound.get().is_some() || self.outbound.get().is_some()
    }

    /// Bytes in the ring that were not taken.
    pub fn fill(&self) -> usize {
        self.inbound.get().map_or(0, |pipe| pipe.fill())
    }

    /// Bytes that the ring itself takes.
    pub fn held_bytes(&self) -> usize {
        self.inbound.get().map_or(0, |pipe| pipe.capacity())
    }

    /// Takes `count` bytes out of the ring, which has them, or looks at them. There is room in `into`.
    pub fn take(&self, into: &mut Vec<u8>, count: usize, peek: bool) {
        let Some(pipe) = self.inbound.get().filter(|_| count > 0) else { return };
        let start = into.len();
        // It was asked for.
        let _ = into.try_resize(start + count, 0);
        let part = &mut into[start..];
        let taken = if peek { pipe.ring().peek(part) } else { pipe.ring().get(part) };
        debug_assert_eq!(taken, part.len());
    }

    /// Puts back what was taken last, if it all came through the ring and there is room for it still.
    pub fn put_back(&self, taken: &Received) -> bool {
        let is_plain = taken.credentials.is_none() && taken.rights.is_none();
        self.inbound.get().is_some_and(|pipe| is_plain && !pipe.is_diverted() && pipe.ring().put_back(&taken.bytes))
    }

    /// What has come and gone by the rings, and besides.
    pub fn add_to(&self, other: Progress) -> Progress {
        let arrived = self.inbound.get().map_or(0, |pipe| pipe.ring().words.head.load(Relaxed));
        let departed = self.outbound.get().map_or(0, |pipe| pipe.ring().words.tail.load(Relaxed));
        Progress { arrived: other.arrived.wrapping_add(arrived), departed: other.departed.wrapping_add(departed) }
    }

    pub fn does_not_wait(&self) {
        self.is_nonblocking.set(true);
        if let Some(pipe) = self.inbound.get() {
            pipe.does_not_wait();
        }
    }

    pub fn callentries(&self, makers: Makers) -> FileCode {
        let code = |pipe: &KernelOnce<Arc<Pipe>>| pipe.get().map(|pipe| pipe.code_for(makers)).unwrap_or_default();
        FileCode { read: code(&self.inbound).read, write: code(&self.outbound).write, ..FileCode::default() }
    }
}

impl UnixSocket {
    /// Lets what comes flow through the ring, if it may now, or no longer.
    pub fn gate(&self) {
        let Some(pipe) = self.flow.inbound.get() else { return };
        let standing = self.standing.get();
        let is_plain = !self.passes_credentials.get() && self.peer().is_some_and(|peer| !peer.passes_credentials.get());
        pipe.divert(!(is_plain && standing.connected && !standing.reads_ended && self.has_no_messages()));
    }

    /// Rust has sent something to `receiver`: perhaps code shall from now on.
    pub(super) fn consider_ring(&self, receiver: &UnixSocket) {
        receiver.gate();
        let flow = &self.flow;
        if !self.is_stream() || flow.outbound.get().is_some() {
            return;
        }
        flow.sends.set(flow.sends.get() + 1);
        if flow.sends.get() >= SENDS {
            // Without memory it is tried again later.
            flow.sends.set(0);
            self.make_ring(receiver);
        }
    }

    #[cold]
    fn make_ring(&self, receiver: &UnixSocket) {
        let Some(makers) = self.unix.makers().filter(|_| receiver.flow.inbound.get().is_none()) else { return };
        let made = Pipe::between_sockets(makers, receiver.readable.clone(), self.writable.clone());
        let Some(pipe) = made.ok().filter(|pipe| pipe.code().is_some()) else { return };
        if receiver.flow.is_nonblocking.get() {
            pipe.does_not_wait();
        }
        let _ = receiver.flow.inbound.set(pipe.clone());
        let _ = self.flow.outbound.set(pipe);
        receiver.gate();
    }

    /// The ring to the peer, if bytes flow through it now.
    fn open_ring(&self) -> Option<&Arc<Pipe>> {
        self.flow.outbound.get().filter(|pipe| !pipe.is_diverted())
    }

    /// Sends bytes by the ring, as many as fit: not `None`, if one does.
    pub(super) fn send_by_ring(
        &self,
        io: &Io<'_>,
        receiver: &UnixSocket,
        bytes: &[u8],
        parcel: &Parcel,
    ) -> Option<usize> {
        let pipe = self.open_ring().filter(|_| parcel.rights.is_none())?;
        let part = pipe.ring().put(bytes);
        if part > 0 {
            io.scheduler.wake(&receiver.readable);
        }
        Some(part).filter(|part| *part > 0)
    }

    /// The same from the program's memory. What cannot be read is left to who tells of it.
    pub(super) fn write_ring(&self, io: &Io<'_>, from: UserRange) -> Option<usize> {
        let pipe = self.open_ring().filter(|_| from.bytes > 0)?;
        let part = pipe.ring().take_from(io.machine(), from).ok().filter(|part| *part > 0)?;
        io.scheduler.wake(pipe.readable());
        Some(part)
    }

    /// Reads what the ring has, if nothing else waits. What cannot be written is left to who tells of it.
    pub(super) fn read_ring(&self, io: &Io<'_>, to: UserRange) -> Option<Result<usize, Errno>> {
        let pipe = self.flow.inbound.get().filter(|pipe| pipe.fill() > 0 && self.has_no_messages())?;
        let read = pipe.ring().give_to(io.machine(), to).ok()?;
        self.tell_of_room();
        Some(Ok(read))
    }
}
