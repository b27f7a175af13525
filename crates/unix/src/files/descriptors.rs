//! The descriptor table of a process.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use machine::KernelCell;

use super::OpenFile;

/// A descriptor number, as a program names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Descriptor(pub u32);

impl Descriptor {
    /// Descriptors are C `int`s: the upper half of the register does not count.
    pub fn from_register(register: u64) -> Descriptor {
        Descriptor(register as u32)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// One descriptor in use.
#[derive(Clone)]
pub struct Slot {
    pub file: Arc<OpenFile>,
    pub close_on_exec: bool,
}

/// Descriptors whose `read` and `write` can be synthesized; those above go the generic way.
pub const SYNTHESIZED: usize = 256;

/// Entry points that the dispatch code of `read` and `write` jumps through, by descriptor (S-89). An entry is
/// the file's synthesized routine, or the slow end of the call.
#[repr(C)]
pub struct EntryTable {
    pub reads: [AtomicU64; SYNTHESIZED],
    pub writes: [AtomicU64; SYNTHESIZED],
}

pub struct DescriptorTable {
    state: KernelCell<State>,
    entries: Box<EntryTable>,
    /// The slow end of a call: what an entry holds when there is nothing better.
    slow: u64,
}

#[derive(Clone)]
struct State {
    slots: Vec<Option<Slot>>,
    /// No free descriptor lies below.
    lowest_free: usize,
}

impl DescriptorTable {
    pub fn new(slow: u64) -> DescriptorTable {
        let entries = EntryTable {
            reads: [const { AtomicU64::new(0) }; SYNTHESIZED],
            writes: [const { AtomicU64::new(0) }; SYNTHESIZED],
        };
        let state = KernelCell::new(State { slots: Vec::new(), lowest_free: 0 });
        let table = DescriptorTable { state, entries: Box::new(entries), slow };
        for index in 0..SYNTHESIZED {
            table.bind(index, None);
        }
        table
    }

    /// A copy for a child; with the same open files behind the same numbers.
    pub fn duplicate(&self) -> DescriptorTable {
        let copy = DescriptorTable::new(self.slow);
        *copy.state.borrow_mut() = self.state.borrow().clone();
        for (index, slot) in self.state.borrow().slots.iter().enumerate() {
            if let Some(slot) = slot {
                copy.bind(index, Some(&slot.file));
            }
        }
        copy
    }

    pub fn entries(&self) -> &EntryTable {
        &self.entries
    }

    /// Stores the entry points of `file` for a descriptor (R3: an aligned store into data).
    fn bind(&self, index: usize, file: Option<&OpenFile>) {
        if index < SYNTHESIZED {
            let (read, write) = file.map_or((None, None), OpenFile::entry_points);
            self.entries.reads[index].store(read.unwrap_or(self.slow), Ordering::Release);
            self.entries.writes[index].store(write.unwrap_or(self.slow), Ordering::Release);
        }
    }

    /// Stores the entry points anew wherever `file` is open: its code or its flags have changed.
    pub fn rebind(&self, file: &Arc<OpenFile>) {
        for (index, slot) in self.state.borrow().slots.iter().enumerate() {
            if slot.as_ref().is_some_and(|slot| Arc::ptr_eq(&slot.file, file)) {
                self.bind(index, Some(file));
            }
        }
    }

    pub fn get(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        Some(self.state.borrow().slots.get(descriptor.index())?.as_ref()?.file.clone())
    }

    pub fn slot(&self, descriptor: Descriptor) -> Option<Slot> {
        self.state.borrow().slots.get(descriptor.index())?.clone()
    }

    /// Puts a file behind the lowest free descriptor that is at least `from` and below `limit`.
    /// Error: `EMFILE`.
    pub fn add(&self, slot: Slot, from: usize, limit: u64) -> Result<Descriptor, Errno> {
        let mut state = self.state.borrow_mut();
        let start = from.max(state.lowest_free);
        let found = state.slots.iter().skip(start).position(Option::is_none).map(|offset| start + offset);
        let index = found.unwrap_or(state.slots.len().max(start));
        if index as u64 >= limit {
            return Err(Errno::EMFILE);
        }
        if state.slots.len() <= index {
            let more = index + 1 - state.slots.len();
            state.slots.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
            state.slots.resize(index + 1, None);
        }
        if start == state.lowest_free {
            state.lowest_free = index + 1;
        }
        self.bind(index, Some(&slot.file));
        state.slots[index] = Some(slot);
        Ok(Descriptor(index as u32))
    }

    /// Puts a file behind exactly this descriptor; returns what was there, for the caller to drop when the
    /// table is no longer borrowed. Errors: `EBADF` at or above the limit, `ENOMEM`.
    pub fn replace(&self, descriptor: Descriptor, slot: Slot, limit: u64) -> Result<Option<Slot>, Errno> {
        let index = descriptor.index();
        if index as u64 >= limit {
            return Err(Errno::EBADF);
        }
        let mut state = self.state.borrow_mut();
        if state.slots.len() <= index {
            let more = index + 1 - state.slots.len();
            state.slots.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
            state.slots.resize(index + 1, None);
        }
        self.bind(index, Some(&slot.file));
        Ok(state.slots[index].replace(slot))
    }

    /// Takes a file out. Error: `EBADF`.
    pub fn remove(&self, descriptor: Descriptor) -> Result<Slot, Errno> {
        let index = descriptor.index();
        let mut state = self.state.borrow_mut();
        let slot = state.slots.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?;
        state.lowest_free = state.lowest_free.min(index);
        self.bind(index, None);
        Ok(slot)
    }

    pub fn set_close_on_exec(&self, descriptor: Descriptor, close_on_exec: bool) -> Result<(), Errno> {
        let mut state = self.state.borrow_mut();
        let slot = state.slots.get_mut(descriptor.index()).and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        slot.close_on_exec = close_on_exec;
        Ok(())
    }

    /// Takes out every file for which `choose` says so; the caller drops them.
    pub fn remove_where(&self, mut choose: impl FnMut(Descriptor, &Slot) -> bool) -> Vec<(Descriptor, Slot)> {
        let mut removed = Vec::new();
        let mut state = self.state.borrow_mut();
        for index in 0..state.slots.len() {
            let descriptor = Descriptor(index as u32);
            if state.slots[index].as_ref().is_some_and(|slot| choose(descriptor, slot)) {
                if let Some(slot) = state.slots[index].take() {
                    removed.push((descriptor, slot));
                }
                state.lowest_free = state.lowest_free.min(index);
                self.bind(index, None);
            }
        }
        removed
    }

    /// All descriptors in use.
    pub fn list(&self) -> Vec<(Descriptor, Arc<OpenFile>)> {
        let state = self.state.borrow();
        let used = state.slots.iter().enumerate();
        used.filter_map(|(index, slot)| Some((Descriptor(index as u32), slot.as_ref()?.file.clone()))).collect()
    }

    /// Highest descriptor in use plus one, for /proc.
    pub fn size(&self) -> usize {
        self.state.borrow().slots.len()
    }
}
