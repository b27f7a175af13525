//! The code store: publish, find, retire.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::marker::PhantomData;

use machine::{KernelCell, NoFrames, PAGE_BYTES};
use synth::{Draft, FillError};

use crate::birth::Birth;
use crate::places::{Places, UNIT};

/// The machine's part: makes a page of the store present in both mappings.
pub trait CodeMemory: Sync {
    fn extend(&self, page: usize) -> Result<(), NoFrames>;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublishError {
    /// The store's address range is used up.
    Full,
    NoFrames,
    Fill(FillError),
}

/// All synthesized code of the machine.
pub struct CodeStore {
    /// Where code runs.
    executable: u64,
    /// Where the same frames can be written.
    writable: u64,
    capacity_bytes: usize,
    memory: &'static dyn CodeMemory,
    state: KernelCell<State>,
}

struct State {
    places: Places,
    present_pages: usize,
    live_bytes: usize,
    births: BTreeMap<u64, Birth>,
}

impl CodeStore {
    /// # Safety
    /// 1. For each page that `memory.extend` has made present, `executable + offset` and
    ///    `writable + offset` name the same byte, executable there and writable here.
    /// 2. Nobody else writes either range.
    pub const unsafe fn new(
        executable: u64,
        writable: u64,
        capacity_bytes: usize,
        memory: &'static dyn CodeMemory,
    ) -> CodeStore {
        let state = State { places: Places::new(), present_pages: 0, live_bytes: 0, births: BTreeMap::new() };
        CodeStore { executable, writable, capacity_bytes, memory, state: KernelCell::new(state) }
    }

    /// Turns a draft into code. `C` is the register contract under which it may be entered.
    pub fn publish<C>(
        &'static self,
        name: &'static str,
        maker: String,
        mut draft: Draft,
    ) -> Result<Code<C>, PublishError> {
        let units = draft.len().div_ceil(UNIT).max(1);
        let mut state = self.state.borrow_mut();
        let place = state.places.take(units, self.capacity_bytes / UNIT).ok_or(PublishError::Full)?;
        let (offset, bytes) = (place * UNIT, units * UNIT);
        while state.present_pages * PAGE_BYTES < offset + bytes {
            if let Err(NoFrames) = self.memory.extend(state.present_pages) {
                state.places.give(place, units);
                return Err(PublishError::NoFrames);
            }
            state.present_pages += 1;
        }
        let address = self.executable + offset as u64;
        match draft.bind(address) {
            Ok(code) => self.write(offset, code, bytes),
            Err(error) => {
                state.places.give(place, units);
                return Err(PublishError::Fill(error));
            }
        }
        state.live_bytes += bytes;
        let birth = Birth {
            name,
            maker,
            address,
            bytes: draft.len() as u32,
            origins: draft.origins().to_vec(),
            landings: draft.landings().to_vec(),
        };
        state.births.insert(address, birth);
        let place = Place { store: self, place, units };
        Ok(Code { address, place: Arc::new(place), contract: PhantomData })
    }

    /// Writes code and pads its last unit with `int3`.
    fn write(&self, offset: usize, code: &[u8], bytes: usize) {
        let to = (self.writable + offset as u64) as *mut u8;
        // SAFETY: 1. `offset..offset + bytes` is present and belongs to one place that nobody runs
        // or reads yet. 2. `code.len() <= bytes`.
        unsafe {
            to.copy_from_nonoverlapping(code.as_ptr(), code.len());
            to.add(code.len()).write_bytes(0xCC, bytes - code.len());
        }
    }

    /// The routine that contains `address`.
    pub fn birth(&self, address: u64) -> Option<Birth> {
        self.with_birth(address, Birth::clone)
    }

    /// Where execution continues after a user fault at `address`; `None`: not our code, or no landing.
    pub fn landing(&self, address: u64) -> Option<u64> {
        self.with_birth(address, |birth| birth.landing(address)).flatten()
    }

    fn with_birth<R>(&self, address: u64, see: impl FnOnce(&Birth) -> R) -> Option<R> {
        let state = self.state.borrow();
        let (_, birth) = state.births.range(..=address).next_back()?;
        birth.contains(address).then(|| see(birth))
    }

    /// Calls `each` for all live routines, by address.
    pub fn each_birth(&self, mut each: impl FnMut(&Birth)) {
        self.state.borrow().births.values().for_each(&mut each);
    }

    /// The bytes of live code at `address`, for disassembly.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(birth) = self.birth(address) else { return 0 };
        let bytes = into.len().min((birth.address + birth.bytes as u64 - address) as usize);
        // SAFETY: the range lies inside one live routine, which is present and readable.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, bytes) };
        bytes
    }

    /// Bytes of live routines, counted in whole units.
    pub fn live_bytes(&self) -> usize {
        self.state.borrow().live_bytes
    }

    pub fn live_routines(&self) -> usize {
        self.state.borrow().births.len()
    }

    fn retire(&self, place: usize, units: usize) {
        self.write(place * UNIT, &[], units * UNIT);
        let mut state = self.state.borrow_mut();
        state.births.remove(&(self.executable + (place * UNIT) as u64));
        state.live_bytes -= units * UNIT;
        state.places.give(place, units);
    }
}

/// A counted reference to a live routine with contract `C`.
pub struct Code<C> {
    address: u64,
    place: Arc<Place>,
    contract: PhantomData<fn(C)>,
}

impl<C> Code<C> {
    /// The address to store in a slot of the same contract.
    pub fn entry(&self) -> u64 {
        self.address
    }
}

impl<C> Clone for Code<C> {
    fn clone(&self) -> Code<C> {
        Code { address: self.address, place: self.place.clone(), contract: PhantomData }
    }
}

/// The routine's place; returned when the last `Code` goes.
struct Place {
    store: &'static CodeStore,
    place: usize,
    units: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.store.retire(self.place, self.units);
    }
}
