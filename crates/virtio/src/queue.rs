//! A split queue (virtio 1.2, 2.7): chains of buffers, of any length that the queue has descriptors for.
//!
//! ```text
//!   offset 0            16·size       then, at a multiple of 4
//!   ├ descriptors ──────┼ available ──┼ used ──────┤            one page up to SIZE_MAX entries
//!   table of head h: TABLE_ENTRIES descriptors at h·256         pages of their own, where indirect ones were agreed on
//! ```
//! Nothing that the device could have written is read back but the used ring, and that is checked: which descriptors are free, how a chain
//! goes on and what room it has stands in the driver's own records.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use machine::{Dma, NoFrames, PAGE_BYTES, TryGrow, Width, try_filled};

use crate::{QueuePlace, StartError, Transport, feature};

const DESCRIPTOR_BYTES: usize = 16;
/// The most entries for which everything fits into a page.
const SIZE_MAX: u16 = 128;
/// Descriptors in a table of indirect ones. A longer chain takes the queue's own.
const TABLE_ENTRIES: usize = 16;
const TABLE_BYTES: usize = TABLE_ENTRIES * DESCRIPTOR_BYTES;

const NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;
const INDIRECT: u16 = 4;
/// In the available ring: the device need not interrupt (2.7.7). In the used ring: it need not be told (2.7.10).
const NOT_NEEDED: u16 = 1;

/// A part of a chain. Those that the device reads come before those that it writes (2.7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    ToDevice { address: u64, bytes: u32 },
    FromDevice { address: u64, bytes: u32 },
}

/// Names a chain that the device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(u16);

impl Token {
    /// Its place among those of the queue: less than [`Queue::size`].
    pub fn place(self) -> usize {
        self.0.into()
    }
}

/// A chain that the device has finished with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    pub token: Token,
    /// Bytes that the device wrote, no more than there was room for.
    pub written: u32,
}

/// Why a chain is not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No descriptors are left; some come back when the device has finished with a chain.
    Full,
    /// No pieces, more than the queue can ever have, or one that the device reads behind one that it writes.
    Malformed,
    /// The device has misbehaved.
    Broken(Misbehaved),
}

/// What the device said that cannot be. From then on the queue is not used: whatever it holds may still be written by the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misbehaved {
    /// It is finished with a chain that it does not have.
    Unknown(u32),
    /// It wrote more than there was room for.
    TooMuch { written: u32, room: u32 },
    /// It is finished with more chains than it has.
    Jumped(u16),
}

/// A chain that the device has, by its head.
#[derive(Clone, Copy)]
struct Chain {
    /// Descriptors of the queue's own that it takes.
    descriptors: u16,
    last: u16,
    /// Bytes that the device may write.
    room: u32,
}

pub struct Queue {
    number: u16,
    size: u16,
    memory: Dma,
    tables: Option<Dma>,
    by_event: bool,
    /// Heads of chains that the device has.
    chains: Vec<Option<Chain>>,
    in_flight: u16,
    /// The free descriptors: the first, how many, and how each goes on, in chains as well.
    free: u16,
    free_count: u16,
    next: Vec<u16>,
    /// Next indices, our copies, free running.
    available: u16,
    used: u16,
    /// `available` when the device was last told.
    told: u16,
    broken: Option<Misbehaved>,
}

impl Queue {
    /// Makes queue `number` of a device, with at most `size` entries, by the features that were agreed on.
    pub fn install(
        transport: &impl Transport,
        number: u16,
        size: u16,
        features: u64,
        dma: impl Fn(usize) -> Result<Dma, NoFrames>,
    ) -> Result<Queue, StartError> {
        let most = transport.queue_size_max(number).min(size).min(SIZE_MAX);
        // A power of two (2.7).
        let size = 1 << most.checked_ilog2().ok_or(StartError::NoQueue)?;
        let memory = dma(1).map_err(|NoFrames| StartError::NoMemory)?;
        let table_pages = (usize::from(size) * TABLE_BYTES).div_ceil(PAGE_BYTES);
        let tables = if features & feature::INDIRECT == 0 { None } else { dma(table_pages).ok() };
        let mut next = Vec::new();
        next.room_for_exact(size.into()).map_err(|_| StartError::NoMemory)?;
        (1..=size).for_each(|follower| next.put(follower));
        let queue = Queue {
            number,
            size,
            memory,
            tables,
            by_event: features & feature::EVENT_INDEX != 0,
            chains: try_filled(None, size.into()).map_err(|_| StartError::NoMemory)?,
            in_flight: 0,
            free: 0,
            free_count: size,
            next,
            available: 0,
            used: 0,
            told: 0,
            broken: None,
        };
        transport.install(number, queue.place());
        Ok(queue)
    }

    fn place(&self) -> QueuePlace {
        QueuePlace {
            size: self.size,
            descriptors: self.memory.bus_address(0),
            available: self.memory.bus_address(self.available_at(0)),
            used: self.memory.bus_address(self.used_at(0)),
        }
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn size(&self) -> u16 {
        self.size
    }

    /// Chains that the device has.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// What the device did, if it has misbehaved.
    pub fn broken(&self) -> Option<Misbehaved> {
        self.broken
    }

    fn available_at(&self, offset: usize) -> usize {
        usize::from(self.size) * DESCRIPTOR_BYTES + offset
    }

    fn used_at(&self, offset: usize) -> usize {
        self.available_at(6 + 2 * usize::from(self.size)).next_multiple_of(4) + offset
    }

    /// Where the device is told at which used index it shall interrupt (2.7.7).
    fn used_event_at(&self) -> usize {
        self.available_at(4 + 2 * usize::from(self.size))
    }

    /// Where the device says at which available index it wants to be told (2.7.10).
    fn available_event_at(&self) -> usize {
        self.used_at(4 + 8 * usize::from(self.size))
    }

    /// Gives a chain to the device. The caller tells the device when [`Queue::must_tell`] says so, and keeps the pieces' memory until the
    /// chain is finished.
    pub fn offer(&mut self, pieces: &[Piece]) -> Result<Token, Refused> {
        if let Some(what) = self.broken {
            return Err(Refused::Broken(what));
        }
        let room = room_of(pieces).ok_or(Refused::Malformed)?;
        let is_indirect = self.tables.is_some() && (2..=TABLE_ENTRIES).contains(&pieces.len());
        let descriptors = if is_indirect { 1 } else { pieces.len() };
        if descriptors > self.size.into() {
            return Err(Refused::Malformed);
        }
        if descriptors > self.free_count.into() {
            return Err(Refused::Full);
        }
        let head = self.free;
        let last = if is_indirect { self.write_table(head, pieces) } else { self.write_chain(pieces) };
        self.free = self.next[usize::from(last)];
        self.free_count -= descriptors as u16;
        self.chains[usize::from(head)] = Some(Chain { descriptors: descriptors as u16, last, room });
        self.in_flight += 1;
        let slot = usize::from(self.available % self.size);
        self.memory.store(self.available_at(4 + 2 * slot), Width::Two, head.into());
        self.available = self.available.wrapping_add(1);
        // The device must see the entry before the index (2.7.13.3).
        fence(Ordering::SeqCst);
        self.memory.store(self.available_at(2), Width::Two, self.available.into());
        Ok(Token(head))
    }

    /// Writes a chain from the first free descriptor on; returns the last.
    fn write_chain(&self, pieces: &[Piece]) -> u16 {
        let mut at = self.free;
        let mut last = at;
        for (index, piece) in pieces.iter().enumerate() {
            last = at;
            at = self.next[usize::from(at)];
            let follower = if index + 1 < pieces.len() { Some(at) } else { None };
            write_descriptor(&self.memory, usize::from(last) * DESCRIPTOR_BYTES, piece, follower);
        }
        last
    }

    /// Writes a chain into the table of `head`, and the descriptor that leads there.
    fn write_table(&self, head: u16, pieces: &[Piece]) -> u16 {
        let Some(tables) = &self.tables else { return head };
        let table = usize::from(head) * TABLE_BYTES;
        for (index, piece) in pieces.iter().enumerate() {
            let follower = if index + 1 < pieces.len() { Some(index as u16 + 1) } else { None };
            write_descriptor(tables, table + index * DESCRIPTOR_BYTES, piece, follower);
        }
        let bytes = (pieces.len() * DESCRIPTOR_BYTES) as u32;
        write_words(&self.memory, usize::from(head) * DESCRIPTOR_BYTES, tables.bus_address(table), bytes, INDIRECT, 0);
        head
    }

    /// The device wants to be told about what was offered since it was last told.
    pub fn must_tell(&mut self, transport: &impl Transport) -> bool {
        let before = core::mem::replace(&mut self.told, self.available);
        if before == self.available {
            return false;
        }
        // What was offered must be seen before it is looked whether the device sleeps (2.7.13.4).
        transport.order();
        if self.by_event {
            let event = self.memory.load(self.available_event_at(), Width::Two) as u16;
            return is_passed(event, self.available, before);
        }
        self.memory.load(self.used_at(0), Width::Two) as u16 & NOT_NEEDED == 0
    }

    /// The next chain that the device has finished with.
    ///
    /// # Errors
    /// The device has misbehaved, now or before.
    pub fn finished(&mut self) -> Result<Option<Finished>, Misbehaved> {
        if let Some(what) = self.broken {
            return Err(what);
        }
        let ahead = (self.memory.load(self.used_at(2), Width::Two) as u16).wrapping_sub(self.used);
        if ahead == 0 {
            return Ok(None);
        }
        if ahead > self.in_flight {
            return self.break_down(Misbehaved::Jumped(ahead));
        }
        fence(Ordering::Acquire);
        let slot = usize::from(self.used % self.size);
        let head = self.memory.load(self.used_at(4 + 8 * slot), Width::Four) as u32;
        let written = self.memory.load(self.used_at(8 + 8 * slot), Width::Four) as u32;
        let Some(chain) = self.chains.get_mut(head as usize).and_then(Option::take) else {
            return self.break_down(Misbehaved::Unknown(head));
        };
        if written > chain.room {
            return self.break_down(Misbehaved::TooMuch { written, room: chain.room });
        }
        self.next[usize::from(chain.last)] = self.free;
        self.free = head as u16;
        self.free_count += chain.descriptors;
        self.in_flight -= 1;
        self.used = self.used.wrapping_add(1);
        Ok(Some(Finished { token: Token(head as u16), written }))
    }

    fn break_down<T>(&mut self, what: Misbehaved) -> Result<T, Misbehaved> {
        self.broken = Some(what);
        Err(what)
    }

    /// Somebody is going to wait: the device shall interrupt when it has finished with a chain. True if it has meanwhile, so that there
    /// is nothing to wait for (2.7.7.1).
    pub fn expect_news(&self, transport: &impl Transport) -> bool {
        if self.by_event {
            self.memory.store(self.used_event_at(), Width::Two, self.used.into());
        } else {
            self.memory.store(self.available_at(0), Width::Two, 0);
        }
        transport.order();
        self.memory.load(self.used_at(2), Width::Two) as u16 != self.used
    }

    /// Nobody waits: the device need not interrupt.
    pub fn want_no_news(&self) {
        if self.by_event {
            // An index that is not reached: half of the way round.
            self.memory.store(self.used_event_at(), Width::Two, self.used.wrapping_sub(1).into());
        } else {
            self.memory.store(self.available_at(0), Width::Two, NOT_NEEDED.into());
        }
    }
}

/// The index `event` lies in what came from `before` to `now` (2.7.7.1, the other way round).
fn is_passed(event: u16, now: u16, before: u16) -> bool {
    now.wrapping_sub(event).wrapping_sub(1) < now.wrapping_sub(before)
}

/// How much the device may write; `None`: no such chain is allowed.
fn room_of(pieces: &[Piece]) -> Option<u32> {
    let mut room = 0u32;
    let mut writes = false;
    for piece in pieces {
        match piece {
            Piece::ToDevice { bytes, .. } if !writes && *bytes > 0 => {}
            Piece::FromDevice { bytes, .. } if *bytes > 0 => {
                writes = true;
                room = room.checked_add(*bytes)?;
            }
            Piece::ToDevice { .. } | Piece::FromDevice { .. } => return None,
        }
    }
    (!pieces.is_empty()).then_some(room)
}

fn write_descriptor(memory: &Dma, at: usize, piece: &Piece, follower: Option<u16>) {
    let (address, bytes, flags) = match *piece {
        Piece::ToDevice { address, bytes } => (address, bytes, 0),
        Piece::FromDevice { address, bytes } => (address, bytes, DEVICE_WRITES),
    };
    let flags = if follower.is_some() { flags | NEXT } else { flags };
    write_words(memory, at, address, bytes, flags, follower.unwrap_or(0));
}

fn write_words(memory: &Dma, at: usize, address: u64, bytes: u32, flags: u16, next: u16) {
    memory.store(at, Width::Eight, address);
    memory.store(at + 8, Width::Four, bytes.into());
    memory.store(at + 12, Width::Two, flags.into());
    memory.store(at + 14, Width::Two, next.into());
}

#[cfg(test)]
mod tests {
    use super::is_passed;

    #[test]
    fn an_event_is_passed_across_the_end_of_the_numbers() {
        assert!(is_passed(5, 6, 5));
        assert!(!is_passed(6, 6, 5));
        assert!(is_passed(0xFFFF, 1, 0xFFFE));
        assert!(is_passed(0, 1, 0xFFFE));
        assert!(!is_passed(1, 1, 0xFFFE));
        assert!(!is_passed(5, 6, 6), "nothing was offered");
    }
}
