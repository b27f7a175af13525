//! The bytes of a stream between two sockets, once it pays: a ring for each direction, with the pipe's routines.
//!
//! ```text
//!   socket A ── write ──► ring ──► read ── socket B
//!                 └─ Rust ─► messages ─┘               what goes with descriptors, or finds no room in the ring
//! ```
//! Invariant: what is in the ring came before all messages. So while messages wait the ring is *diverted*: reads and writes go to
//! Rust, which adds what comes to the messages, and gives what is in the ring first. When the last message is taken, or all of them fit
//! into the ring, bytes flow through the ring again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use kernel::call::{FileCode, Makers};
use kernel::pipe::Pipe;
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Progress, UserRange};
use machine::{KernelOnce, KernelValue, TryGrow};

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

    /// Puts back what was taken last, if the ring is open and there is room for it still.
    pub fn put_back(&self, taken: &[u8]) -> bool {
        self.inbound.get().is_some_and(|pipe| !pipe.is_diverted() && pipe.ring().put_back(taken))
    }

    /// Bytes of messages that fit into the ring behind what it has.
    pub fn room(&self) -> usize {
        self.inbound.get().map_or(0, |pipe| pipe.ring().room())
    }

    /// Bytes of a message go on by the ring, which has room for them.
    pub fn pour(&self, bytes: &[u8]) {
        let poured = self.inbound.get().map_or(0, |pipe| pipe.ring().put(bytes));
        debug_assert_eq!(poured, bytes.len());
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

    /// Lets what comes flow through the ring from now on, or no longer.
    pub fn open(&self, is_open: bool) {
        if let Some(pipe) = self.inbound.get() {
            pipe.divert(!is_open);
        }
    }

    /// Rust has sent something. Whether code shall from now on.
    pub fn is_worth_a_ring(&self) -> bool {
        if self.outbound.get().is_some() {
            return false;
        }
        self.sends.set(self.sends.get() + 1);
        let is_enough = self.sends.get() >= SENDS;
        if is_enough {
            // Without memory it is tried again later.
            self.sends.set(0);
        }
        is_enough
    }

    /// Makes the ring to a receiver, which sleeps in the first of these queues, from a sender that sleeps in the second. It is not open
    /// yet.
    #[cold]
    pub fn make_ring(&self, makers: Makers, receiver: &Flow, queues: [&Arc<WaitQueue>; 2]) {
        if receiver.inbound.get().is_some() {
            return;
        }
        let [readable, writable] = queues.map(Arc::clone);
        let made = Pipe::between_sockets(makers, readable, writable);
        let Some(pipe) = made.ok().filter(|pipe| pipe.code().is_some()) else { return };
        if receiver.is_nonblocking.get() {
            pipe.does_not_wait();
        }
        let _ = receiver.inbound.set(pipe.clone());
        let _ = self.outbound.set(pipe);
    }

    /// The ring to the peer, if bytes flow through it now.
    fn open_ring(&self) -> Option<&Arc<Pipe>> {
        self.outbound.get().filter(|pipe| !pipe.is_diverted())
    }

    /// Sends bytes by the ring, as many as fit: not `None`, if one does.
    pub fn send(&self, io: &Io<'_>, bytes: &[u8]) -> Option<usize> {
        let pipe = self.open_ring()?;
        let part = Some(pipe.ring().put(bytes)).filter(|part| *part > 0)?;
        io.scheduler.wake(pipe.readable());
        Some(part)
    }

    /// The same from the program's memory. What cannot be read is left to who tells of it.
    pub fn write(&self, io: &Io<'_>, from: UserRange) -> Option<usize> {
        let pipe = self.open_ring().filter(|_| from.bytes > 0)?;
        let part = pipe.ring().take_from(io.machine(), from).ok().filter(|part| *part > 0)?;
        io.scheduler.wake(pipe.readable());
        Some(part)
    }

    /// Reads what the ring has. What cannot be written is left to who tells of it.
    pub fn read(&self, io: &Io<'_>, to: UserRange) -> Option<usize> {
        let pipe = self.inbound.get().filter(|pipe| pipe.fill() > 0)?;
        pipe.ring().give_to(io.machine(), to).ok()
    }
}
