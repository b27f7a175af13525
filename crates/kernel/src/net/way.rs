//! One direction between two streams on this machine: a ring with the pipe's routines, once it pays, and what finds no room in it.
//!
//! Invariant: what is in the ring is older than the rest. So while there is a rest the ring is *diverted*: reads and writes go to Rust,
//! which adds to the rest and gives the ring's bytes first, then moves the rest up. ([ADR 64] has the same for local sockets, whose
//! messages carry more than bytes.)
//!
//! [ADR 64]: ../../../../docs/adr/0064-streams-between-sockets-as-rings.md

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use abi::Errno;
use machine::{KernelCell, KernelOnce, KernelValue, NoMemory, TryGrow, TryQueue, try_arc, try_filled};
use quaject::Makers;

use super::events::Events;
use super::options::BUFFER_BYTES;
use crate::call::FileCode;
use crate::pipe::Pipe;
use crate::stream::{Io, UserRange};

/// A direction gets its ring when Rust has written so often to it.
const WRITES: u8 = 8;
/// Bytes that are copied at a time where there is no ring.
const PIECE_BYTES: usize = 16_384;

pub struct Way {
    /// Who reads, and who writes.
    reader: Arc<Events>,
    writer: Arc<Events>,
    ring: KernelOnce<Arc<Pipe>>,
    rest: KernelCell<VecDeque<u8>>,
    writes: KernelValue<u8>,
    /// Nothing will be written any more.
    is_ended: KernelValue<bool>,
    /// Nobody reads any more: what is written is lost.
    is_deaf: KernelValue<bool>,
    /// The reader, or the writer, wants the routines to leave it to Rust.
    is_held: KernelValue<[bool; 2]>,
    /// Bytes that the writer and the reader have chosen for what waits.
    chosen: KernelValue<[Option<u32>; 2]>,
    is_nonblocking: KernelValue<bool>,
}

impl Way {
    pub fn new(writer: &Arc<Events>, reader: &Arc<Events>) -> Result<Arc<Way>, NoMemory> {
        try_arc(Way {
            reader: reader.clone(),
            writer: writer.clone(),
            ring: KernelOnce::new(),
            rest: KernelCell::new(VecDeque::new()),
            writes: KernelValue::new(0),
            is_ended: KernelValue::new(false),
            is_deaf: KernelValue::new(false),
            is_held: KernelValue::new([false; 2]),
            chosen: KernelValue::new([None; 2]),
            is_nonblocking: KernelValue::new(false),
        })
    }

    /// Bytes that wait.
    pub fn fill(&self) -> usize {
        self.ring.get().map_or(0, |ring| ring.fill()) + self.rest.borrow().len()
    }

    pub fn room(&self) -> usize {
        self.most_bytes().saturating_sub(self.fill())
    }

    /// Bytes that may wait: half of what the writer has room for on the way and of what the reader has.
    fn most_bytes(&self) -> usize {
        self.chosen.get().iter().map(|chosen| chosen.unwrap_or(BUFFER_BYTES) as usize / 2).sum()
    }

    /// A writer that does not wait is told.
    pub fn has_much_room(&self) -> bool {
        self.room() * 3 > self.most_bytes()
    }

    /// The writer chooses how much may wait.
    pub fn set_room(&self, bytes: Option<u32>) {
        let [_, reader] = self.chosen.get();
        self.chosen.set([bytes, reader]);
        self.gate();
    }

    /// The reader does.
    pub fn set_reader_room(&self, bytes: Option<u32>) {
        let [writer, _] = self.chosen.get();
        self.chosen.set([writer, bytes]);
        self.gate();
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended.get()
    }

    pub fn is_deaf(&self) -> bool {
        self.is_deaf.get()
    }

    /// Memory that it takes.
    pub fn held_bytes(&self) -> usize {
        size_of::<Way>() + self.ring.get().map_or(0, |ring| ring.capacity()) + self.rest.borrow().capacity()
    }

    pub fn has_ring(&self) -> bool {
        self.ring.get().is_some()
    }

    /// Lets the routines work, if they may now.
    fn gate(&self) {
        if let Some(ring) = self.ring.get() {
            let [reader, writer] = self.is_held.get();
            let is_held = reader || writer || self.chosen.get() != [None; 2];
            let is_closed = self.is_ended.get() || self.is_deaf.get() || is_held;
            ring.divert(is_closed || !self.rest.borrow().is_empty());
        }
    }

    /// Nothing will be written any more.
    pub fn end(&self) {
        self.is_ended.set(true);
        self.gate();
        self.reader.arrived();
    }

    /// Nobody reads any more.
    pub fn deafen(&self) {
        self.is_deaf.set(true);
        self.gate();
        self.writer.departed();
    }

    /// Reading is Rust's from now on, or not only.
    pub fn hold_reads(&self, is_held: bool) {
        let [_, writer] = self.is_held.get();
        self.is_held.set([is_held, writer]);
        self.gate();
    }

    /// The same for writing.
    pub fn hold_writes(&self, is_held: bool) {
        let [reader, _] = self.is_held.get();
        self.is_held.set([reader, is_held]);
        self.gate();
    }

    pub fn does_not_wait(&self) {
        self.is_nonblocking.set(true);
        if let Some(ring) = self.ring.get() {
            ring.does_not_wait();
        }
    }

    /// Who has come so far: bytes written, bytes read.
    pub fn counts(&self) -> [u64; 2] {
        let words = self.ring.get().map(|ring| &ring.ring().words);
        words.map_or([0; 2], |words| [words.head.load(Relaxed), words.tail.load(Relaxed)])
    }

    fn open_ring(&self) -> Option<&Arc<Pipe>> {
        self.ring.get().filter(|ring| !ring.is_diverted())
    }

    /// Writes what `from` names, as much as there is room for; 0: none. Error: `EFAULT`, `ENOMEM`.
    pub fn write(&self, io: &Io<'_>, from: UserRange, makers: Option<Makers>) -> Result<usize, Errno> {
        if let Some(ring) = self.open_ring()
            && let Ok(part) = ring.ring().take_from(io.machine(), from)
            && part > 0
        {
            io.scheduler.wake(&self.reader.readable);
            return Ok(part);
        }
        let part = from.bytes.min(self.room()).min(PIECE_BYTES);
        if part == 0 {
            return Ok(0);
        }
        let mut piece = try_filled(0, part)?;
        io.machine().copy_in(from.address, &mut piece).map_err(|_| Errno::EFAULT)?;
        self.put(&piece, makers)
    }

    /// The same from the kernel's memory. Error: `ENOMEM`.
    pub fn put(&self, bytes: &[u8], makers: Option<Makers>) -> Result<usize, Errno> {
        let by_ring = self.open_ring().map_or(0, |ring| ring.ring().put(bytes));
        let part = (bytes.len() - by_ring).min(self.room());
        if part > 0 {
            let mut rest = self.rest.borrow_mut();
            match TryQueue::room_for(&mut *rest, part) {
                // There is room.
                Ok(()) => bytes[by_ring..by_ring + part].iter().for_each(|byte| rest.put_back(*byte)),
                Err(error) if by_ring == 0 => return Err(error.into()),
                Err(_) => {}
            }
            drop(rest);
            self.consider_ring(makers);
            self.gate();
        }
        if by_ring + part > 0 {
            self.reader.arrived();
        }
        Ok(by_ring + part)
    }

    /// Rust has written: perhaps code shall from now on.
    fn consider_ring(&self, makers: Option<Makers>) {
        if self.ring.get().is_some() {
            return;
        }
        self.writes.set(self.writes.get().saturating_add(1));
        let Some(makers) = makers.filter(|_| self.writes.get() >= WRITES) else { return };
        // Without memory it is tried again later.
        self.writes.set(0);
        let made = Pipe::between_sockets(makers, self.reader.readable.clone(), self.writer.writable.clone());
        let Some(ring) = made.ok().filter(|ring| ring.code().is_some()) else { return };
        if self.is_nonblocking.get() {
            ring.does_not_wait();
        }
        let _ = self.ring.set(ring);
        self.move_up();
    }

    /// Moves of the rest into the ring what fits.
    fn move_up(&self) {
        let Some(ring) = self.ring.get() else { return };
        let mut rest = self.rest.borrow_mut();
        while !rest.is_empty() {
            let (first, _) = rest.as_slices();
            let part = ring.ring().put(first);
            if part == 0 {
                break;
            }
            rest.drain(..part);
        }
        if rest.is_empty() {
            rest.shrink_to(0);
        }
    }

    /// Something was taken out.
    fn taken(&self) {
        self.move_up();
        self.gate();
        self.writer.departed();
    }

    /// Gives the program what there is, up to what it has room for. Error: `EFAULT`.
    pub fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        if let Some(ring) = self.ring.get().filter(|ring| ring.fill() > 0) {
            let part = ring.ring().give_to(io.machine(), to)?;
            self.taken();
            return Ok(part);
        }
        let part = {
            let mut rest = self.rest.borrow_mut();
            let (first, _) = rest.as_slices();
            let part = first.len().min(to.bytes);
            io.machine().copy_out(to.address, &first[..part]).map_err(|_| Errno::EFAULT)?;
            rest.drain(..part);
            part
        };
        self.taken();
        Ok(part)
    }

    /// The same into the kernel's memory, or a copy of it.
    pub fn take(&self, into: &mut Vec<u8>, most: usize, peek: bool) -> Result<(), NoMemory> {
        let start = into.len();
        let count = most.min(self.fill());
        into.try_resize(start + count, 0)?;
        let part = &mut into[start..];
        let of_ring = match self.ring.get() {
            Some(ring) if peek => ring.ring().peek(part),
            Some(ring) => ring.ring().get(part),
            None => 0,
        };
        let mut rest = self.rest.borrow_mut();
        part[of_ring..].iter_mut().zip(rest.iter()).for_each(|(place, byte)| *place = *byte);
        if !peek {
            rest.drain(..count - of_ring);
            drop(rest);
            self.taken();
        }
        Ok(())
    }

    /// Reads of this way, writes of the other.
    pub fn code(&self, makers: Makers) -> Option<FileCode> {
        let ring = self.ring.get()?;
        let code = ring.code_for(makers);
        Some(FileCode { read: code.read, write: code.write, ..FileCode::default() })
    }
}
