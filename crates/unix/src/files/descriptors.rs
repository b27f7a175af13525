//! The descriptor table of a process.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::Errno;
use kernel::call::{FileCode, TableWords};
use kernel::charge::{Held, Kept};
use kernel::file::Node;
use kernel::stream::Stream;
use machine::{Entry, FileEntry, KernelCell, KernelOnce, KernelValue, NoMemory, TryGrow, try_to_vec};
use quaject::interface;

use super::asked::{AskedTable, Link, SYNTHESIZED};
use super::terminal::Terminal;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::ends::TtyStream;

/// A descriptor number, as a program names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Descriptor(pub u32);

impl Descriptor {
    /// Descriptors are C `int`s: the upper half of the register does not count.
    pub fn from_register(register: u64) -> Descriptor {
        Descriptor(register as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One descriptor in use.
#[derive(Clone)]
pub struct Slot {
    pub file: Arc<OpenFile>,
    pub close_on_exec: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.file.in_flight() > 0
            && let Some(stream) = self.file.as_stream()
        {
            stream.descriptor_lost();
        }
    }
}

/// Entry points that the dispatch code of `read` and `write` jumps through, by descriptor (S-89). An entry is
/// the file's synthesized routine, or the slow end of the call.
#[repr(C)]
pub struct EntryTable {
    pub reads: [Link; SYNTHESIZED],
    pub writes: [Link; SYNTHESIZED],
    pub seeks: [Link; SYNTHESIZED],
    /// Bit per descriptor below 64: free.
    pub free: AtomicU64,
    /// Bit per descriptor below 64: opened by synthesized code; the open file is made when somebody looks.
    pub pending: AtomicU64,
    /// By which recipe a pending descriptor was opened.
    pub recipes: [AtomicU32; 64],
}

impl EntryTable {
    /// No descriptor is in use.
    fn new(slow: Entry<FileEntry>) -> EntryTable {
        let all = || core::array::from_fn(|_| Link::new(slow.under()));
        EntryTable {
            reads: all(),
            writes: all(),
            seeks: all(),
            free: AtomicU64::new(u64::MAX),
            pending: AtomicU64::new(0),
            recipes: [const { AtomicU32::new(0) }; 64],
        }
    }

    /// Links a descriptor with the callentries of `file`; without a file, and with what the file has not, its calls are done
    /// in Rust. So a call that comes after `close` finds nothing (S-20).
    fn bind(&self, index: usize, file: Option<&OpenFile>, ends: Ends) {
        let Ends { slow, is_write_limited } = ends;
        if index < SYNTHESIZED {
            let code = file.and_then(OpenFile::callentries);
            let code = code.as_deref();
            let is_limited = is_write_limited && file.is_some_and(OpenFile::has_data);
            let unconnected = slow.under();
            interface::link(&self.reads[index], code.and_then(|code| code.read.as_ref()), unconnected);
            let write = code.and_then(|code| code.write.as_ref()).filter(|_| !is_limited);
            interface::link(&self.writes[index], write, unconnected);
            interface::link(&self.seeks[index], code.and_then(|code| code.seek.as_ref()), unconnected);
        }
        if index < 64 {
            let (bit, free) = (1 << index, self.free.load(Ordering::Relaxed));
            self.free.store(if file.is_some() { free & !bit } else { free | bit }, Ordering::Relaxed);
        }
    }
}

/// What entries hold that have no routine, and which have none.
#[derive(Clone, Copy)]
struct Ends {
    slow: Entry<FileEntry>,
    is_write_limited: bool,
}

/// Entry points of `pread` and of `pwrite`, by descriptor.
pub type PositionedTable = [[Link; SYNTHESIZED]; 2];

/// Links a descriptor with `pread` and `pwrite` of its file.
fn bind_positioned(table: &PositionedTable, index: usize, file: Option<&OpenFile>, ends: Ends) {
    if index >= SYNTHESIZED {
        return;
    }
    let code = file.and_then(OpenFile::callentries);
    let code = code.as_deref();
    let unconnected = ends.slow.under();
    interface::link(&table[0][index], code.and_then(|code| code.pread.as_ref()), unconnected);
    let write = code.and_then(|code| code.pwrite.as_ref()).filter(|_| !ends.is_write_limited);
    interface::link(&table[1][index], write, unconnected);
}

pub struct DescriptorTable {
    state: KernelCell<State>,
    /// Made when a routine is first bound to it: most children execute another program before that.
    entries: KernelOnce<Arc<EntryTable>>,
    /// As `entries`, of `pread` and `pwrite`: only files outside of the machine have routines for them.
    positioned: KernelOnce<Arc<PositionedTable>>,
    /// As `entries`, of what is ready.
    asked: KernelOnce<Arc<AskedTable>>,
    /// One of the two is there.
    has_rare: KernelValue<bool>,
    /// The slow end of a call: what an entry holds when there is nothing better.
    slow: Entry<FileEntry>,
    /// How pending descriptors become open files, by number.
    recipes: KernelCell<Vec<Recipe>>,
    /// A limit says how far files may be written: the routines do not know it.
    is_write_limited: KernelValue<bool>,
}

/// What a synthesized `open` opens: enough to make the open file later.
#[derive(Clone)]
pub struct Recipe {
    pub stream: Arc<dyn Stream>,
    pub node: Arc<Node>,
    pub flags: u32,
    pub close_on_exec: bool,
    pub code: FileCode,
}

impl Recipe {
    fn open(&self) -> Slot {
        let file = OpenFile::new(Body::Stream(self.stream.clone()), Some(self.node.clone()), self.flags);
        *file.code.borrow_mut() = self.code.clone();
        file.resume_use();
        Slot { file: Arc::new(file), close_on_exec: self.close_on_exec }
    }

    fn is(&self, other: &Recipe) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
            && self.flags == other.flags
            && self.close_on_exec == other.close_on_exec
            && self.terminal() == other.terminal()
    }

    /// Which terminal it opens: /dev/tty leads to another one after the process has changed its own.
    fn terminal(&self) -> Option<*const Terminal> {
        let stream = self.stream.as_any().downcast_ref::<TtyStream>()?;
        Some(Arc::as_ptr(stream.terminal()))
    }
}

/// Most recipes of one table; further names are opened in Rust.
const RECIPES_MAX: usize = 64;

struct State {
    slots: Vec<Option<Slot>>,
    /// No free descriptor lies below.
    lowest_free: usize,
}

impl DescriptorTable {
    pub fn new(slow: Entry<FileEntry>) -> DescriptorTable {
        let state = KernelCell::new(State { slots: Vec::new(), lowest_free: 0 });
        DescriptorTable {
            state,
            entries: KernelOnce::new(),
            positioned: KernelOnce::new(),
            asked: KernelOnce::new(),
            has_rare: KernelValue::new(false),
            slow,
            recipes: KernelCell::new(Vec::new()),
            is_write_limited: KernelValue::new(false),
        }
    }

    /// Where calls go whose descriptor has no routine.
    pub fn slow(&self) -> Entry<FileEntry> {
        self.slow
    }

    /// A copy for a child; with the same open files behind the same numbers. Error: `ENOMEM`.
    pub fn duplicate(&self) -> Result<DescriptorTable, NoMemory> {
        let copy = DescriptorTable::new(self.slow);
        copy.is_write_limited.set(self.is_write_limited.get());
        let state = self.settled().borrow();
        let (slots, lowest_free) = (try_to_vec(&state.slots)?, state.lowest_free);
        *copy.state.borrow_mut() = State { slots, lowest_free };
        Ok(copy)
    }

    pub fn entries(&self) -> &Arc<EntryTable> {
        if let Some(entries) = self.entries.get() {
            return entries;
        }
        let entries = self.entries.get_or_init(|| Arc::new(EntryTable::new(self.slow)));
        for (index, slot) in self.state.borrow().slots.iter().enumerate() {
            if let Some(slot) = slot {
                entries.bind(index, Some(&slot.file), self.ends());
            }
        }
        entries
    }

    #[inline(always)]
    fn bind(&self, index: usize, file: Option<&OpenFile>) {
        if let Some(entries) = self.entries.get() {
            entries.bind(index, file, self.ends());
        }
        if self.has_rare.get() {
            self.bind_rare(index, file);
        }
    }

    #[cold]
    fn bind_rare(&self, index: usize, file: Option<&OpenFile>) {
        if let Some(positioned) = self.positioned.get() {
            bind_positioned(positioned, index, file, self.ends());
        }
        if let Some(asked) = self.asked.get() {
            asked.bind(index, file.map(|file| &file.asked), self.slow);
        }
    }

    /// The table of what is ready; made when it is first asked for.
    pub fn asked(&self) -> &Arc<AskedTable> {
        if let Some(asked) = self.asked.get() {
            return asked;
        }
        self.has_rare.set(true);
        let asked = self.asked.get_or_init(|| Arc::new(AskedTable::new(self.slow)));
        for (index, slot) in self.settled().borrow().slots.iter().enumerate() {
            asked.bind(index, slot.as_ref().map(|slot| &slot.file.asked), self.slow);
        }
        asked
    }

    /// The table of `pread` and `pwrite`; made when it is first asked for.
    pub fn positioned(&self) -> &Arc<PositionedTable> {
        if let Some(positioned) = self.positioned.get() {
            return positioned;
        }
        let all = || core::array::from_fn(|_| Link::new(self.slow.under()));
        self.has_rare.set(true);
        let positioned = self.positioned.get_or_init(|| Arc::new([all(), all()]));
        for (index, slot) in self.settled().borrow().slots.iter().enumerate() {
            bind_positioned(positioned, index, slot.as_ref().map(|slot| &*slot.file), self.ends());
        }
        positioned
    }

    fn ends(&self) -> Ends {
        Ends { slow: self.slow, is_write_limited: self.is_write_limited.get() }
    }

    /// The state, with an open file behind every descriptor that synthesized code has opened.
    fn settled(&self) -> &KernelCell<State> {
        if let Some(entries) = self.entries.get()
            && entries.pending.load(Ordering::Relaxed) != 0
        {
            self.settle(entries);
        }
        &self.state
    }

    #[cold]
    #[expect(clippy::disallowed_methods, reason = "64 places at most are opened by code")]
    fn settle(&self, entries: &EntryTable) {
        let mut pending = entries.pending.swap(0, Ordering::Relaxed);
        while pending != 0 {
            let index = pending.trailing_zeros() as usize;
            pending &= pending - 1;
            let recipe = entries.recipes[index].load(Ordering::Relaxed) as usize;
            let slot = self.recipes.borrow()[recipe].open();
            let mut state = self.state.borrow_mut();
            if state.slots.len() <= index {
                state.slots.resize(index + 1, None);
            }
            state.slots[index] = Some(slot);
        }
    }

    /// The number of a recipe in this table; `None` when there are too many.
    pub fn recipe_number(&self, recipe: &Recipe) -> Option<u32> {
        let mut recipes = self.recipes.borrow_mut();
        if let Some(number) = recipes.iter().position(|known| known.is(recipe)) {
            return Some(number as u32);
        }
        if recipes.len() >= RECIPES_MAX {
            return None;
        }
        recipes.try_push(recipe.clone()).ok()?;
        Some(recipes.len() as u32 - 1)
    }

    /// Where the routines find this table's words.
    pub fn plan(&self) -> TableWords {
        let entries = self.entries();
        TableWords {
            free: entries.free.as_ptr() as u64,
            pending: entries.pending.as_ptr() as u64,
            reads: &raw const entries.reads as u64,
            writes: &raw const entries.writes as u64,
            slow_entry: self.slow.address(),
        }
    }

    /// Stores the entry points anew wherever `file` is open: its code or its flags have changed.
    pub fn rebind(&self, file: &Arc<OpenFile>) {
        for (index, slot) in self.settled().borrow().slots.iter().enumerate() {
            if slot.as_ref().is_some_and(|slot| Arc::ptr_eq(&slot.file, file)) {
                self.bind(index, Some(file));
            }
        }
    }

    /// Whether this call on a descriptor goes to Rust although the table has entries.
    pub fn is_unbound(&self, index: usize, number: u64) -> bool {
        self.entries.get().is_some_and(|entries| {
            let links = if number == abi::nr::READ { &entries.reads } else { &entries.writes };
            links.get(index).is_some_and(|link| link.entry().address() == self.slow.address())
        })
    }

    /// As `rebind`, where only routines have come that no descriptor had before.
    pub fn bind_routines(&self, file: &Arc<OpenFile>) {
        for (index, slot) in self.settled().borrow().slots.iter().take(SYNTHESIZED).enumerate() {
            if slot.as_ref().is_some_and(|slot| Arc::ptr_eq(&slot.file, file)) {
                self.bind(index, Some(file));
            }
        }
    }

    /// Stores the entry points anew of all files on nodes that `choose` says: what they may have has changed.
    pub fn rebind_where(&self, choose: &dyn Fn(&Node) -> bool) {
        for (index, slot) in self.settled().borrow().slots.iter().enumerate() {
            let file = slot.as_ref().map(|slot| &*slot.file);
            if file.and_then(OpenFile::node).is_some_and(|node| choose(node)) {
                self.bind(index, file);
            }
        }
    }

    /// Whether `RLIMIT_FSIZE` limits the process: writes to regular files are done in Rust then.
    pub fn limit_writes(&self, is_write_limited: bool) {
        if self.is_write_limited.replace(is_write_limited) != is_write_limited {
            for (index, slot) in self.settled().borrow().slots.iter().enumerate() {
                self.bind(index, slot.as_ref().map(|slot| &*slot.file));
            }
        }
    }

    pub fn get(&self, descriptor: Descriptor) -> Option<Arc<OpenFile>> {
        Some(self.settled().borrow().slots.get(descriptor.index())?.as_ref()?.file.clone())
    }

    /// What the dispatch of `read`, `write` and `lseek` finds for a descriptor now; and what an entry without a routine holds.
    pub fn bound(&self, descriptor: Descriptor) -> ([u64; 3], u64) {
        let index = descriptor.index();
        let tables = self.entries.get().filter(|_| index < SYNTHESIZED);
        let tables = tables.map(|entries| [&entries.reads, &entries.writes, &entries.seeks]);
        (
            tables.map_or([self.slow.address(); 3], |tables| tables.map(|table| table[index].entry().address())),
            self.slow.address(),
        )
    }

    pub fn slot(&self, descriptor: Descriptor) -> Option<Slot> {
        self.settled().borrow().slots.get(descriptor.index())?.clone()
    }

    /// Whether a descriptor below `limit` is free.
    pub fn has_free(&self, limit: u64) -> bool {
        let state = self.settled().borrow();
        let used = state.slots.len();
        (used as u64) < limit || state.slots[state.lowest_free.min(used)..].iter().any(Option::is_none)
    }

    /// Puts a file behind the lowest free descriptor that is at least `from` and below `limit`.
    /// Error: `EMFILE`.
    pub fn add(&self, slot: Slot, from: usize, limit: u64) -> Result<Descriptor, Errno> {
        let mut state = self.settled().borrow_mut();
        let start = from.max(state.lowest_free);
        let found = state.slots.iter().skip(start).position(Option::is_none).map(|offset| start + offset);
        let index = found.unwrap_or(state.slots.len().max(start));
        if index as u64 >= limit {
            return Err(Errno::EMFILE);
        }
        if state.slots.len() <= index {
            state.slots.try_resize(index + 1, None)?;
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
        let mut state = self.settled().borrow_mut();
        if state.slots.len() <= index {
            state.slots.try_resize(index + 1, None)?;
        }
        self.bind(index, Some(&slot.file));
        Ok(state.slots[index].replace(slot))
    }

    /// Takes a file out. Error: `EBADF`.
    pub fn remove(&self, descriptor: Descriptor) -> Result<Slot, Errno> {
        let index = descriptor.index();
        let mut state = self.settled().borrow_mut();
        let slot = state.slots.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?;
        state.lowest_free = state.lowest_free.min(index);
        self.bind(index, None);
        Ok(slot)
    }

    pub fn set_close_on_exec(&self, descriptor: Descriptor, close_on_exec: bool) -> Result<(), Errno> {
        let mut state = self.settled().borrow_mut();
        let slot = state.slots.get_mut(descriptor.index()).and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        slot.close_on_exec = close_on_exec;
        Ok(())
    }

    /// Takes out the first file of `range` for which `choose` says so. Needs no memory: a process that ends may have taken all.
    pub fn remove_first(&self, range: Range<usize>, choose: impl Fn(&Slot) -> bool) -> Option<(Descriptor, Slot)> {
        let found = |slot: &Option<Slot>| slot.as_ref().is_some_and(&choose);
        let index = {
            let state = self.settled().borrow();
            let end = range.end.min(state.slots.len());
            range.start + state.slots.get(range.start..end)?.iter().position(found)?
        };
        let descriptor = Descriptor(index as u32);
        Some((descriptor, self.remove(descriptor).ok()?))
    }

    /// All descriptors in use, in order. Others may come and go meanwhile.
    pub fn list(&self) -> impl Iterator<Item = (Descriptor, Arc<OpenFile>)> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let state = self.settled().borrow();
            let index = from + state.slots.get(from..)?.iter().position(Option::is_some)?;
            from = index + 1;
            Some((Descriptor(index as u32), state.slots[index].as_ref()?.file.clone()))
        })
    }

    /// What the table itself takes.
    pub fn held(&self) -> Held {
        let entries = self.entries.get().map_or(0, |_| size_of::<EntryTable>());
        let positioned = self.positioned.get().map_or(0, |_| size_of::<PositionedTable>());
        let positioned = positioned + self.asked.get().map_or(0, |_| size_of::<AskedTable>());
        let slots = self.state.borrow().slots.capacity() * size_of::<Option<Slot>>();
        Held::new(Kept::OpenFiles, size_of::<DescriptorTable>() + slots + entries + positioned)
    }

    /// Shows all open files, but not those that synthesized code has opened and nobody has looked at: they take nothing yet.
    pub fn each_file(&self, visit: &mut dyn FnMut(&Arc<OpenFile>)) {
        self.state.borrow().slots.iter().flatten().for_each(|slot| visit(&slot.file));
    }

    /// The same for those among the `most` descriptors from `from` on; where to go on, `None`: there are no more.
    pub fn some_files(&self, from: usize, most: usize, visit: &mut dyn FnMut(&Arc<OpenFile>)) -> Option<usize> {
        let state = self.state.borrow();
        let end = (from + most).min(state.slots.len());
        state.slots.get(from..end)?.iter().flatten().for_each(|slot| visit(&slot.file));
        (end < state.slots.len()).then_some(end)
    }

    /// Highest descriptor in use plus one, for /proc.
    pub fn size(&self) -> usize {
        self.settled().borrow().slots.len()
    }
}
