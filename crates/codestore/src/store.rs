//! The code store: publish, find, retire.

use alloc::sync::Arc;
use core::marker::PhantomData;

use machine::stages::{self, Stage};
use machine::{Entry, KernelCell, NoFrames, PAGE_BYTES};
use synth::{Draft, FillError};

use crate::birth::{Birth, Maker};
use crate::births::Births;
use crate::places::{Places, UNIT};
use crate::run::Asked;

/// The machine's part.
pub trait CodeMemory: Send + Sync {
    /// Makes a page of the store present in both mappings.
    fn extend(&self, page: usize) -> Result<(), NoFrames>;

    /// Executes a serializing instruction: what the processor fetched before, it fetches anew. New bytes are written at
    /// another address than they run at, and then that is needed (S-21; SDM vol. 3A, 9.1.3).
    fn serialize(&self);
}

/// Sees routines come and go: how debuggers and profilers learn their names.
pub trait Witness: Send + Sync {
    /// The routine is in place; nobody runs it yet.
    fn born(&self, birth: &Birth);
    /// Nobody runs it any more; its place will be used again.
    fn retired(&self, birth: &Birth);
}

/// Who is told of each routine that is published.
pub trait Watch: Send + Sync {
    fn published(&self, birth: &Birth);
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
    watch: KernelCell<Option<&'static dyn Watch>>,
    state: KernelCell<State>,
}

struct State {
    places: Places,
    /// Less than the address range where a test wants it full.
    limit_bytes: usize,
    live_bytes: usize,
    /// Routines ever published.
    published: u64,
    births: Births,
    /// Usually nobody: a publication then costs one comparison more.
    witness: Option<&'static dyn Witness>,
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
        let state = State {
            places: Places::new(),
            limit_bytes: capacity_bytes,
            live_bytes: 0,
            published: 0,
            births: Births::new(),
            witness: None,
        };
        CodeStore {
            executable,
            writable,
            capacity_bytes,
            memory,
            watch: KernelCell::new(None),
            state: KernelCell::new(state),
        }
    }

    /// Turns a draft into code. `C` is the register contract under which it may be entered.
    #[inline]
    pub fn publish<C>(&'static self, name: &'static str, maker: Maker, draft: Draft) -> Result<Code<C>, PublishError> {
        self.publish_as(core::any::type_name::<C>(), name, maker, draft).map(Code::under)
    }

    /// As `publish`, under the contract whose type has this name: written once for all.
    pub fn publish_as(
        &'static self,
        contract: &'static str,
        name: &'static str,
        maker: Maker,
        draft: Draft,
    ) -> Result<Code<()>, PublishError> {
        let live = self.give_birth(name, contract, maker, draft)?;
        if let Some(watch) = *self.watch.borrow() {
            watch.published(&live.birth);
        }
        Ok(Code { address: live.birth.address, live, contract: PhantomData })
    }

    /// From now on `watch` is told of births; `None`: nobody.
    pub fn set_watch(&self, watch: Option<&'static dyn Watch>) {
        *self.watch.borrow_mut() = watch;
    }

    fn give_birth(
        &'static self,
        name: &'static str,
        contract: &'static str,
        maker: Maker,
        draft: Draft,
    ) -> Result<Arc<Live>, PublishError> {
        let _stage = stages::enter(Stage::Publish);
        stages::published(draft.len());
        let units = draft.len().div_ceil(UNIT).max(1);
        let mut state = self.state.borrow_mut();
        let most = state.limit_bytes / UNIT;
        let unit = state.places.take(units, most).ok_or(PublishError::Full)?;
        let (offset, bytes) = (unit * UNIT, units * UNIT);
        let address = self.executable + offset as u64;
        let present = self.make_present(&mut state, offset + bytes).map_err(|NoFrames| PublishError::NoFrames);
        let bound = match present.and_then(|()| draft.bind(address).map_err(PublishError::Fill)) {
            Ok(bound) => bound,
            Err(error) => {
                state.places.give(unit, units);
                return Err(error);
            }
        };
        self.write(offset, &bound.bytes, bytes);
        self.memory.serialize();
        let (origins, landings) = (bound.origins, bound.landings);
        let birth = Birth { name, contract, maker, address, bytes: bound.bytes.len() as u32, origins, landings };
        let live = Arc::new(Live { store: self, unit, units, birth });
        state.live_bytes += bytes;
        state.published += 1;
        state.births.insert(unit, units, Arc::downgrade(&live));
        if let Some(witness) = state.witness {
            witness.born(&live.birth);
        }
        Ok(live)
    }

    /// From now on `witness` sees routines come and go. Called before the first is published.
    pub fn set_witness(&self, witness: &'static dyn Witness) {
        self.state.borrow_mut().witness = Some(witness);
    }

    /// Makes the first `bytes` bytes of the store present, and room for their births.
    fn make_present(&self, state: &mut State, bytes: usize) -> Result<(), NoFrames> {
        while state.births.pages() * PAGE_BYTES < bytes {
            state.births.prepare_page()?;
            self.memory.extend(state.births.pages())?;
            state.births.add_page();
        }
        Ok(())
    }

    /// Writes code and pads its last unit with `int3`.
    fn write(&self, offset: usize, code: &[u8], bytes: usize) {
        let to = (self.writable + offset as u64) as *mut u8;
        // SAFETY: 1. `offset..offset + bytes` is present and belongs to one place that nobody runs
        // or reads yet. 2. `code.len() <= bytes`.
        unsafe { to.copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        // SAFETY: as above: what is left of the place.
        unsafe { to.wrapping_add(code.len()).write_bytes(0xCC, bytes - code.len()) };
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
        self.with_live(address, |live| see(&live.birth))
    }

    fn with_live<R>(&self, address: u64, see: impl FnOnce(&Arc<Live>) -> R) -> Option<R> {
        let unit = address.checked_sub(self.executable)? as usize / UNIT;
        self.state.borrow().births.with(unit, address, see)
    }

    /// Calls `each` for all live routines, by address, with their bytes.
    pub fn each_birth(&self, mut each: impl FnMut(&Birth, &[u8])) {
        self.each_birth_from(0, |birth, code| {
            each(birth, code);
            true
        });
    }

    /// As `each_birth`, for those that begin at `address` or behind it, until `each` says that it has seen enough.
    pub fn each_birth_from(&self, address: u64, mut each: impl FnMut(&Birth, &[u8]) -> bool) {
        let first = address.saturating_sub(self.executable) as usize / UNIT;
        self.state.borrow().births.each_from(first, |birth| {
            // SAFETY: 1. The range is one live routine, which is present and readable. 2. It stays so while the
            // state is borrowed, because retiring needs the state.
            let code = unsafe { core::slice::from_raw_parts(birth.address as *const u8, birth.bytes as usize) };
            each(birth, code)
        });
    }

    /// The bytes of live code at `address`, for disassembly.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(birth) = self.birth(address) else { return 0 };
        let bytes = into.len().min((birth.address + birth.bytes as u64 - address) as usize);
        // SAFETY: the range lies inside one live routine, which is present and readable.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, bytes) };
        bytes
    }

    /// As [`CodeStore::landing`], for a fault at any address: only routines that people had made, which touch what
    /// people name ([`Asked`]), may fault outside a program's memory.
    pub fn landing_of_asked(&self, address: u64) -> Option<u64> {
        let asked = core::any::type_name::<Asked>();
        self.with_birth(address, |birth| if birth.contract == asked { birth.landing(address) } else { None }).flatten()
    }

    /// Bytes of live routines, counted in whole units.
    pub fn live_bytes(&self) -> usize {
        self.state.borrow().live_bytes
    }

    /// Routines ever published: a gauge (S-31).
    pub fn published(&self) -> u64 {
        self.state.borrow().published
    }

    /// How many slots, files and caches keep the routine at `address` alive.
    pub fn references(&self, address: u64) -> usize {
        self.with_live(address, |live| Arc::strong_count(live) - 1).unwrap_or(0)
    }

    /// Bytes that the store can hold at most.
    pub fn capacity_bytes(&self) -> usize {
        self.state.borrow().limit_bytes
    }

    /// From now on the store takes no more than `bytes`, so that what happens when it is full can be seen.
    pub fn limit(&self, bytes: usize) {
        self.state.borrow_mut().limit_bytes = bytes.min(self.capacity_bytes);
    }

    pub fn live_routines(&self) -> usize {
        self.state.borrow().births.count()
    }

    fn retire(&self, unit: usize, units: usize, birth: &Birth) {
        self.write(unit * UNIT, &[], units * UNIT);
        let mut state = self.state.borrow_mut();
        if let Some(witness) = state.witness {
            witness.retired(birth);
        }
        state.births.remove(unit);
        state.live_bytes -= units * UNIT;
        state.places.give(unit, units);
    }
}

/// A counted reference to a live routine with contract `C`.
pub struct Code<C> {
    address: u64,
    live: Arc<Live>,
    contract: PhantomData<fn(C)>,
}

impl Code<()> {
    /// The routine under the contract that it was published under.
    #[inline]
    pub fn under<C>(self) -> Code<C> {
        assert_eq!(self.live.birth.contract, core::any::type_name::<C>(), "the contract it was published under");
        Code { address: self.address, live: self.live, contract: PhantomData }
    }
}

impl<C> Code<C> {
    /// What a slot of the same contract takes.
    pub fn entry(&self) -> Entry<C> {
        // SAFETY: a live routine stands there that was published under this contract, and it lives as long as a `Code` of
        // it; who stores the entry keeps one.
        unsafe { Entry::new(self.address) }
    }

    /// The entry of a later step of a routine that is made of steps which all keep its contract. `None`: no template begins
    /// at `offset`.
    pub fn step(&self, offset: u32) -> Option<Entry<C>> {
        self.live.birth.origins.iter().find(|origin| origin.offset == offset)?;
        // SAFETY: as for `entry`; a whole template begins there.
        Some(unsafe { Entry::new(self.address + u64::from(offset)) })
    }

    /// The same routine without its contract: nobody can enter it by this, but it stays.
    pub fn as_any(&self) -> Code<()> {
        Code { address: self.address, live: self.live.clone(), contract: PhantomData }
    }
}

impl<C> Clone for Code<C> {
    fn clone(&self) -> Code<C> {
        Code { address: self.address, live: self.live.clone(), contract: PhantomData }
    }
}

/// A live routine: its place, returned when the last `Code` goes, and its birth.
pub(crate) struct Live {
    store: &'static CodeStore,
    unit: usize,
    units: usize,
    pub(crate) birth: Birth,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.store.retire(self.unit, self.units, &self.birth);
    }
}
