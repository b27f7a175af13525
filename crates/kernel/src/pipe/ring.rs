//! The pipe's bytes and words.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use machine::{KernelCell, UserMemory, VirtAddr, try_filled};

use super::ATOMIC_BYTES;
use crate::stream::UserRange;

/// Bytes in a new pipe, as on Linux. A power of two, at most 64 KB for the synthesized routines.
pub const CAPACITY_DEFAULT: usize = 65536;

/// The places of a ring of that capacity.
const FRONT_MASK: u64 = CAPACITY_DEFAULT as u64 - 1;

machine::relies_on_one_processor!("routines look and then store, and nobody runs between the two");

/// The words that synthesized code reads and writes at their fixed addresses.
#[repr(C)]
#[derive(Default)]
pub struct PipeWords {
    /// Bytes written, and places that were skipped: it only grows. Only writers store it, but for a reader that has emptied
    /// the ring and has both words skip the rest of it (nobody writes meanwhile).
    pub head: AtomicU64,
    /// Bytes read, and places that were skipped. Only readers store it.
    pub tail: AtomicU64,
    /// The largest fill a write may leave: the capacity, or 0 when nobody reads.
    pub write_limit: AtomicU64,
    /// One more than the largest fill that a write of several bytes may leave, or 0: so one comparison finds, too, who
    /// writes nothing where nobody reads.
    pub run_limit: AtomicU64,
    /// Not 0: who finds the ring empty may sleep; there are writers, and nobody who does not wait (`O_NONBLOCK`).
    pub read_sleeps: AtomicU64,
    /// The same of who finds it full.
    pub write_sleeps: AtomicU64,
}

/// The queue of one pipe.
///
/// A copy between it and a program never sleeps: all it is given is a [`UserMemory`], which ends early where a page must come first
/// (ADR 46). So nobody else runs between the look at an index and its change, and who must wait holds neither.
pub struct PipeRing {
    pub words: Box<PipeWords>,
    bytes: KernelCell<Box<[u8]>>,
}

impl PipeRing {
    /// Error: `ENOMEM`.
    pub fn new() -> Result<PipeRing, Errno> {
        let bytes = fresh(CAPACITY_DEFAULT)?;
        Ok(PipeRing { words: Box::default(), bytes: KernelCell::new(bytes) })
    }

    /// Empties the ring for another pipe.
    pub fn reset(&self) {
        self.words.head.store(0, Ordering::Relaxed);
        self.words.tail.store(0, Ordering::Relaxed);
        self.words.write_limit.store(0, Ordering::Relaxed);
        self.words.run_limit.store(0, Ordering::Relaxed);
        self.words.read_sleeps.store(0, Ordering::Relaxed);
        self.words.write_sleeps.store(0, Ordering::Relaxed);
    }

    pub fn capacity(&self) -> usize {
        self.bytes.borrow().len()
    }

    /// Address of the first byte, for templates.
    pub fn base(&self) -> u64 {
        self.bytes.borrow().as_ptr() as u64
    }

    pub fn fill(&self) -> usize {
        (self.words.head.load(Ordering::Acquire) - self.words.tail.load(Ordering::Acquire)) as usize
    }

    pub fn room(&self) -> usize {
        self.capacity() - self.fill()
    }

    /// Moves bytes from the program into the ring, as many as fit and can be read; returns the count.
    pub fn take_from(&self, memory: &dyn UserMemory, from: UserRange) -> Result<usize, Errno> {
        self.put_with(from.bytes, |part, done| {
            let address = VirtAddr(from.address.0.wrapping_add(done as u64));
            memory.copy_in(address, part).map_err(|_| Errno::EFAULT)
        })
    }

    pub fn put(&self, from: &[u8]) -> usize {
        let put = self.put_with(from.len(), |part, done| {
            part.copy_from_slice(&from[done..done + part.len()]);
            Ok(())
        });
        put.unwrap_or(0)
    }

    /// Moves bytes from the ring to the program; returns the count.
    pub fn give_to(&self, memory: &dyn UserMemory, to: UserRange) -> Result<usize, Errno> {
        self.get_with(to.bytes, |part, done| {
            let address = VirtAddr(to.address.0.wrapping_add(done as u64));
            memory.copy_out(address, part).map_err(|_| Errno::EFAULT)
        })
    }

    pub fn get(&self, into: &mut [u8]) -> usize {
        let got = self.get_with(into.len(), |part, done| {
            into[done..done + part.len()].copy_from_slice(part);
            Ok(())
        });
        got.unwrap_or(0)
    }

    /// Copies what is there and leaves it there; returns the count.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let (bytes, tail) = (self.bytes.borrow(), self.words.tail.load(Ordering::Relaxed) as usize);
        let count = into.len().min(self.fill());
        let at = tail & (bytes.len() - 1);
        let first = count.min(bytes.len() - at);
        into[..first].copy_from_slice(&bytes[at..at + first]);
        into[first..count].copy_from_slice(&bytes[..count - first]);
        count
    }

    /// Puts back before all others what was just taken out; `false` if there is no room for it any more.
    pub fn put_back(&self, taken: &[u8]) -> bool {
        if self.room() < taken.len() {
            return false;
        }
        let mut bytes = self.bytes.borrow_mut();
        let (capacity, mask) = (bytes.len(), bytes.len() - 1);
        // The words only grow: one round more, so that there are places before the tail.
        let [head, tail] =
            [&self.words.head, &self.words.tail].map(|word| word.load(Ordering::Relaxed) + capacity as u64);
        let start = tail - taken.len() as u64;
        for (offset, byte) in taken.iter().enumerate() {
            bytes[(start as usize + offset) & mask] = *byte;
        }
        self.words.head.store(head, Ordering::Release);
        self.words.tail.store(start, Ordering::Release);
        true
    }

    /// Puts what is in `other` into this ring, as much as fits and at most `wanted`, and leaves it there; returns the count.
    pub fn copy_from(&self, other: &PipeRing, wanted: usize) -> usize {
        let put = self.put_with(wanted.min(other.fill()), |part, done| {
            let (bytes, tail) = (other.bytes.borrow(), other.words.tail.load(Ordering::Relaxed) as usize);
            for (offset, byte) in part.iter_mut().enumerate() {
                *byte = bytes[(tail + done + offset) & (bytes.len() - 1)];
            }
            Ok(())
        });
        put.unwrap_or(0)
    }

    /// Copies in pieces that end at page boundaries of neither side but at the ring's end; a piece that fails ends the
    /// copy, and is the error if it was the first. Pieces are small so that a fault loses little. What must not be torn comes whole
    /// or not at all.
    fn put_with(
        &self,
        wanted: usize,
        mut copy: impl FnMut(&mut [u8], usize) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let bytes = wanted.min(self.room());
        // The buffer is lent out of its cell: a copy may fault, and the fault may run other code of the kernel.
        let mut buffer = core::mem::take(&mut *self.bytes.borrow_mut());
        let (mask, head) = (buffer.len() - 1, self.words.head.load(Ordering::Relaxed));
        let mut done = 0;
        let mut result = Ok(());
        while done < bytes {
            let at = (head as usize + done) & mask;
            let part = (bytes - done).min(buffer.len() - at).min(PIECE_BYTES);
            result = copy(&mut buffer[at..at + part], done);
            if result.is_err() {
                break;
            }
            done += part;
        }
        *self.bytes.borrow_mut() = buffer;
        if result.is_err() && wanted <= ATOMIC_BYTES {
            done = 0;
        }
        debug_assert_eq!(self.words.head.load(Ordering::Relaxed), head, "somebody put while a copy slept");
        self.words.head.store(head + done as u64, Ordering::Release);
        if done == 0 { result.map(|()| 0) } else { Ok(done) }
    }

    fn get_with(&self, wanted: usize, mut copy: impl FnMut(&[u8], usize) -> Result<(), Errno>) -> Result<usize, Errno> {
        let bytes = wanted.min(self.fill());
        let buffer = core::mem::take(&mut *self.bytes.borrow_mut());
        let (mask, tail) = (buffer.len() - 1, self.words.tail.load(Ordering::Relaxed));
        let mut done = 0;
        let mut result = Ok(());
        while done < bytes {
            let at = (tail as usize + done) & mask;
            let part = (bytes - done).min(buffer.len() - at).min(PIECE_BYTES);
            result = copy(&buffer[at..at + part], done);
            if result.is_err() {
                break;
            }
            done += part;
        }
        *self.bytes.borrow_mut() = buffer;
        debug_assert_eq!(self.words.tail.load(Ordering::Relaxed), tail, "somebody got while a copy slept");
        let tail = tail + done as u64;
        if wanted != 1 && done > 0 && tail == self.words.head.load(Ordering::Relaxed) {
            // As the synthesized routine does it; a read of a single byte leaves the words alone in both.
            let front = (tail | FRONT_MASK) + 1;
            self.words.head.store(front, Ordering::Release);
            self.words.tail.store(front, Ordering::Release);
        } else {
            self.words.tail.store(tail, Ordering::Release);
        }
        if done == 0 { result.map(|()| 0) } else { Ok(done) }
    }

    /// Changes the capacity of a pipe (`F_SETPIPE_SZ`) to a power of two that holds what is in it.
    ///
    /// Errors: `EBUSY` when more is in it, `ENOMEM`.
    pub fn resize(&self, capacity: usize) -> Result<(), Errno> {
        let fill = self.fill();
        if capacity < fill {
            return Err(Errno::EBUSY);
        }
        let mut larger = fresh(capacity)?;
        let tail = self.words.tail.load(Ordering::Relaxed);
        let (old, mask) = (self.bytes.borrow(), capacity - 1);
        for offset in 0..fill {
            let at = tail as usize + offset;
            larger[at & mask] = old[at & (old.len() - 1)];
        }
        drop(old);
        *self.bytes.borrow_mut() = larger;
        Ok(())
    }
}

/// The longest piece that is copied under one fault check.
const PIECE_BYTES: usize = 4096;

fn fresh(capacity: usize) -> Result<Box<[u8]>, Errno> {
    Ok(try_filled(0, capacity)?.into_boxed_slice())
}
