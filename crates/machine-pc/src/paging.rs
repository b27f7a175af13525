//! Four-level page tables (SDM vol. 3A, 4.5): the kernel half, built once and shared, and one
//! `PcTranslation` per quaspace.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{
    Change, FrameNumber, FrameSource, KernelCell, Mapping, NoFrames, PAGE_BYTES, Protection, Root, Shown, Translation,
    VirtAddr,
};
use machine_x86::USER_LIMIT;

use crate::batch::Batch;
use crate::frames::number;
use crate::layout::{DIRECT_MAP, direct};
use crate::leaf::{empty_entries, first_used};
use crate::registers::{invalidate_page, read_cr3, write_cr3};

pub const PRESENT: u64 = 1;
pub const WRITE: u64 = 1 << 1;
pub const USER: u64 = 1 << 2;
const DIRTY: u64 = 1 << 6;
pub const LARGE: u64 = 1 << 7;
pub const GLOBAL: u64 = 1 << 8;
/// Ignored by the processor: the entry holds a frame that no access may reach (PROT_NONE).
const GUARDED: u64 = 1 << 9;
pub const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

fn table(physical: u64) -> *mut u64 {
    direct(physical & ADDRESS) as *mut u64
}

fn entry(table_physical: u64, index: usize) -> *mut u64 {
    debug_assert!(index < 512);
    table(table_physical).wrapping_add(index)
}

pub fn load(at: *mut u64) -> u64 {
    // SAFETY: `at` points into a live table frame in the direct map (made by `entry`).
    unsafe { at.read_volatile() }
}

fn store(at: *mut u64, value: u64) {
    // SAFETY: as in `load`; only slow paths, under the kernel's lock, write tables.
    unsafe { at.write_volatile(value) }
}

pub const fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize & 511
}

/// Walks to the level-0 entry of a kernel address, making tables as needed.
fn walk(root: u64, address: u64, frames: &dyn FrameSource) -> Result<*mut u64, NoFrames> {
    let mut physical = root;
    for level in [3, 2, 1] {
        let at = entry(physical, index(address, level));
        let mut value = load(at);
        if value & PRESENT == 0 {
            value = frames.take()?.physical_address() | PRESENT | WRITE;
            store(at, value);
        }
        assert!(value & LARGE == 0, "walk through a large page at {address:#x}");
        physical = value & ADDRESS;
    }
    Ok(entry(physical, index(address, 0)))
}

/// The level-0 entry of `address`, if its tables exist.
fn find(root: u64, address: u64) -> Option<*mut u64> {
    let mut physical = root;
    for level in [3, 2, 1] {
        let value = load(entry(physical, index(address, level)));
        if value & PRESENT == 0 {
            return None;
        }
        physical = value & ADDRESS;
    }
    Some(entry(physical, index(address, 0)))
}

/// Maps one kernel page in the shared kernel half.
///
/// # Safety
/// The mapping must not alias memory in a way that breaks Rust's rules or W^X.
pub unsafe fn map_kernel(address: u64, physical: u64, flags: u64, frames: &dyn FrameSource) -> Result<(), NoFrames> {
    let at = walk(kernel_root(), address, frames)?;
    store(at, physical | flags | PRESENT | GLOBAL);
    invalidate_page(address);
    Ok(())
}

/// The eight bytes at a kernel address, if the image, heap, code or a thread's area is there: nothing that reading would change.
pub fn peek(address: u64) -> Option<u64> {
    let [image, _, _, image_end] = crate::layout::image();
    let guard = crate::layout::boot_guard();
    if (image..image_end - 8).contains(&address) && !(guard.start - 7..guard.end).contains(&address) {
        // SAFETY: the image but for that page is always mapped, and readable.
        return Some(unsafe { (address as *const u64).read_unaligned() });
    }
    let page = address & !(PAGE_BYTES as u64 - 1);
    if !(crate::layout::HEAP..=u64::MAX - 8).contains(&address) || page != (address + 7) & !(PAGE_BYTES as u64 - 1) {
        return None;
    }
    let present = find(kernel_root(), address).is_some_and(|at| load(at) & PRESENT != 0);
    // SAFETY: the page is mapped, and pages above the heap's start hold no device.
    present.then(|| unsafe { (address as *const u64).read_unaligned() })
}

/// Removes one kernel page; returns its physical address.
pub fn unmap_kernel(address: u64) -> Option<u64> {
    let at = find(kernel_root(), address)?;
    let value = load(at);
    store(at, 0);
    invalidate_page(address);
    (value & PRESENT != 0).then_some(value & ADDRESS)
}

unsafe extern "C" {
    static mut boot_pml4: [u64; 512];
    static mut boot_pdpt_high: [u64; 512];
}

/// The physical address of the kernel's own root table, whose upper half every quaspace shares.
pub fn kernel_root() -> u64 {
    (&raw const boot_pml4) as u64 - crate::layout::IMAGE_WINDOW
}

/// Replaces the boot tables' image window by 4 KB mappings with the right protection, makes the
/// direct map no-execute and complete, and drops the identity map.
///
/// # Safety
/// Called once, early, on the boot stack (which lies in the image's data).
pub unsafe fn seal_kernel_half(image: [u64; 4], ram_end: u64, frames: &dyn FrameSource) -> Result<(), NoFrames> {
    let [start, text_end, rodata_end, end] = image;
    let root = kernel_root();
    // A new page directory pointer for the image window: tables filled before they are switched in.
    let window = frames.take()?.physical_address();
    let mut address = start;
    while address < end {
        let flags = if address < text_end {
            0
        } else if address < rodata_end {
            NO_EXECUTE
        } else {
            WRITE | NO_EXECUTE
        };
        let mut physical = window;
        for level in [1, 0] {
            let at = entry(physical, index(address, level));
            if level == 0 {
                store(at, (address - crate::layout::IMAGE_WINDOW) | flags | PRESENT | GLOBAL);
            } else {
                if load(at) & PRESENT == 0 {
                    store(at, frames.take()?.physical_address() | PRESENT | WRITE);
                }
                physical = load(at) & ADDRESS;
            }
        }
        address += PAGE_BYTES as u64;
    }
    let pdpt_high = (&raw const boot_pdpt_high) as u64 - crate::layout::IMAGE_WINDOW;
    store(entry(pdpt_high, 510), window | PRESENT | WRITE);
    extend_direct_map(root, ram_end, frames)?;
    protect_direct_map(root, start, rodata_end, frames)?;
    store(entry(root, 0), 0);
    if let Some(guard) = find(root, crate::layout::boot_guard().start) {
        store(guard, 0);
    }
    // SAFETY: the root keeps the image, the stack and the direct map; only the identity map is gone.
    unsafe { write_cr3(read_cr3()) };
    Ok(())
}

/// Large pages for all RAM and the first 4 GB (devices), never executable.
fn extend_direct_map(root: u64, ram_end: u64, frames: &dyn FrameSource) -> Result<(), NoFrames> {
    const TABLE_BYTES: u64 = 1 << 30;
    let end = ram_end.max(4 << 30);
    for start in (0..end).step_by(TABLE_BYTES as usize) {
        let mut at_table = root;
        for level in [3, 2] {
            let at = entry(at_table, index(DIRECT_MAP + start, level));
            if load(at) & PRESENT == 0 {
                store(at, frames.take()?.physical_address() | PRESENT | WRITE);
            }
            at_table = load(at) & ADDRESS;
        }
        let rights = PRESENT | WRITE | LARGE | GLOBAL | NO_EXECUTE;
        for (at, physical) in (start..end.min(start + TABLE_BYTES)).step_by(2 << 20).enumerate() {
            store(entry(at_table, at), physical | rights);
        }
    }
    Ok(())
}

/// Takes the write permission from the direct map's alias of the image's text and read-only data.
fn protect_direct_map(root: u64, start: u64, end: u64, frames: &dyn FrameSource) -> Result<(), NoFrames> {
    let mut address = start;
    while address < end {
        protect_alias(root, address - crate::layout::IMAGE_WINDOW, frames)?;
        address += PAGE_BYTES as u64;
    }
    Ok(())
}

/// Splits the large page of the direct map that holds `physical` if needed and makes the 4 KB page read-only.
fn protect_alias(root: u64, physical: u64, frames: &dyn FrameSource) -> Result<(), NoFrames> {
    let address = DIRECT_MAP + physical;
    let mut at_table = root;
    for level in [3, 2] {
        at_table = load(entry(at_table, index(address, level))) & ADDRESS;
    }
    let at = entry(at_table, index(address, 1));
    if load(at) & LARGE != 0 {
        let base = load(at) & ADDRESS & !0x1F_FFFF;
        let split = frames.take()?.physical_address();
        for page in 0..512 {
            store(entry(split, page as usize), (base + page * 4096) | PRESENT | WRITE | GLOBAL | NO_EXECUTE);
        }
        store(at, split | PRESENT | WRITE);
    }
    let leaf = entry(load(at) & ADDRESS, index(address, 0));
    store(leaf, load(leaf) & !WRITE);
    invalidate_page(address);
    Ok(())
}

/// Fills every upper-half root entry that is still empty, so that later kernel mappings appear in
/// every quaspace without copying roots.
pub fn reserve_upper_half(frames: &dyn FrameSource) -> Result<(), NoFrames> {
    for slot in KERNEL_SLOTS {
        let at = entry(kernel_root(), slot);
        if load(at) & PRESENT == 0 {
            store(at, frames.take()?.physical_address() | PRESENT | WRITE);
        }
    }
    Ok(())
}

/// The tables of one quaspace. Invariant: entries 256..512 of its root equal the kernel root's.
pub struct PcTranslation {
    root: u64,
    frames: &'static dyn FrameSource,
    /// All tables but the root, in the order they were made.
    tables: KernelCell<Vec<Table>>,
    /// The leaf table that was used last, and the address of the first page it holds.
    last: LastLeaf,
}

/// Two words that only the thread that changes the translation stores.
struct LastLeaf {
    table: AtomicU64,
    start: AtomicU64,
}

impl LastLeaf {
    fn get(&self) -> (*mut u64, u64) {
        (self.table.load(Ordering::Relaxed) as *mut u64, self.start.load(Ordering::Relaxed))
    }

    fn set(&self, table: *mut u64, start: u64) {
        self.table.store(table as u64, Ordering::Relaxed);
        self.start.store(start, Ordering::Relaxed);
    }
}

/// A table and the entry that leads to it.
struct Table {
    physical: u64,
    linked_at: u64,
}

/// No leaf table starts at this address.
const NOWHERE: u64 = u64::MAX;
/// Bytes that one leaf table maps.
pub const LEAF_BYTES: u64 = 2 << 20;
/// The entries of the kernel root that are in use ([`reserve_upper_half`]).
const KERNEL_SLOTS: [usize; 2] = [index(DIRECT_MAP, 3), 511];

impl PcTranslation {
    pub fn new(frames: &'static dyn FrameSource) -> Result<PcTranslation, NoFrames> {
        let root = frames.take()?.physical_address();
        for slot in KERNEL_SLOTS {
            store(entry(root, slot), load(entry(kernel_root(), slot)));
        }
        Ok(PcTranslation {
            root,
            frames,
            tables: KernelCell::new(Vec::new()),
            last: LastLeaf { table: AtomicU64::new(0), start: AtomicU64::new(NOWHERE) },
        })
    }

    fn is_active(&self) -> bool {
        read_cr3() & ADDRESS == self.root
    }

    fn forget(&self, page: u64) {
        if self.is_active() {
            invalidate_page(page);
        }
    }

    /// The leaf table for `address`; else the first address behind it that another table could hold.
    #[inline(always)]
    fn leaf(&self, address: u64) -> Result<*mut u64, u64> {
        let (known, start) = self.last.get();
        if address & !(LEAF_BYTES - 1) == start { Ok(known) } else { self.walk_to_leaf(address) }
    }

    #[inline(never)]
    fn walk_to_leaf(&self, address: u64) -> Result<*mut u64, u64> {
        let mut physical = self.root;
        for level in [3, 2, 1] {
            let value = load(entry(physical, index(address, level)));
            if value & PRESENT == 0 {
                let span = 1u64 << (12 + 9 * level);
                return Err((address & !(span - 1)) + span);
            }
            physical = value & ADDRESS;
        }
        Ok(self.remember(physical, address))
    }

    /// The leaf table for `address` is used now.
    fn remember(&self, physical: u64, address: u64) -> *mut u64 {
        self.last.set(table(physical), address & !(LEAF_BYTES - 1));
        table(physical)
    }

    /// The level-0 entry of a page in the table that was used last.
    #[inline(always)]
    fn known(&self, page: VirtAddr) -> Option<*mut u64> {
        let (known, start) = self.last.get();
        // An address that is no user page's is not found here: see `check`.
        (page.0 & !(LEAF_BYTES - PAGE_BYTES as u64) == start).then(|| known.wrapping_add(index(page.0, 0)))
    }

    /// The level-0 entry of `page`, if its tables exist.
    #[inline(always)]
    fn find(&self, page: VirtAddr) -> Option<*mut u64> {
        if let Some(at) = self.known(page) { Some(at) } else { self.find_slowly(page) }
    }

    #[inline(never)]
    fn find_slowly(&self, page: VirtAddr) -> Option<*mut u64> {
        let address = check(page);
        self.walk_to_leaf(address).ok().map(|leaf| leaf.wrapping_add(index(address, 0)))
    }

    /// The level-0 entry of `page`; makes tables as needed.
    #[inline(never)]
    fn reach_slowly(&self, page: VirtAddr) -> Result<*mut u64, NoFrames> {
        let address = check(page);
        let mut physical = self.root;
        for level in [3, 2, 1] {
            let at = entry(physical, index(address, level));
            let value = load(at);
            physical = if value & PRESENT == 0 { self.add_table(at)? } else { value & ADDRESS };
        }
        Ok(self.remember(physical, address).wrapping_add(index(address, 0)))
    }

    fn add_table(&self, linked_at: *mut u64) -> Result<u64, NoFrames> {
        let mut tables = self.tables.borrow_mut();
        tables.try_reserve(1).map_err(|_| NoFrames)?;
        let physical = self.frames.take()?.physical_address();
        store(linked_at, physical | PRESENT | WRITE | USER);
        tables.push(Table { physical, linked_at: linked_at as u64 });
        Ok(physical)
    }

    /// Calls `act` with each entry that is used for pages of `from..to`, its page and its value.
    #[inline(always)]
    fn each_entry(&self, from: u64, to: u64, mut act: impl FnMut(*mut u64, u64, u64)) {
        let mut address = from;
        let end = to.min(USER_LIMIT);
        while address < end {
            let leaf = match self.leaf(address) {
                Err(next) => {
                    address = next;
                    continue;
                }
                Ok(leaf) => leaf,
            };
            let stop = end.min((address & !(LEAF_BYTES - 1)) + LEAF_BYTES);
            let mut at = leaf.wrapping_add(index(address, 0));
            while address < stop {
                let value = load(at);
                if value != 0 {
                    act(at, address, value);
                } else if let Some(empty) = empty_entries(at, address, stop) {
                    at = at.wrapping_add(empty);
                    address += empty as u64 * PAGE_BYTES as u64;
                    continue;
                }
                at = at.wrapping_add(1);
                address += PAGE_BYTES as u64;
            }
        }
    }

    /// Does to a present entry what `act` answered.
    #[inline(always)]
    fn change(&self, at: *mut u64, page: u64, old: u64, change: Change) {
        match change {
            Change::Keep => return,
            Change::Remove => store(at, 0),
            Change::Protect(protection) => {
                let Some(mapping) = decode(old) else { return };
                store(at, encode(mapping.frame, protection) | old & DIRTY);
            }
        }
        if old & PRESENT != 0 {
            self.forget(page);
        }
    }
}

fn check(page: VirtAddr) -> u64 {
    assert!(page.0 < USER_LIMIT && page.0.is_multiple_of(PAGE_BYTES as u64), "bad user page {page:?}");
    page.0
}

/// The bits of an entry for each set of rights: reading is 1, writing 2, executing 4. x86 grants none of them without reading.
const RIGHTS: [u64; 8] = {
    let mut rights = [PRESENT | USER; 8];
    rights[0] = GUARDED;
    let mut set = 0;
    while set < 8 {
        rights[set] |= if set & 2 != 0 { WRITE } else { 0 } | if set & 4 == 0 { NO_EXECUTE } else { 0 };
        set += 1;
    }
    rights
};

#[inline(always)]
fn encode(frame: FrameNumber, protection: Protection) -> u64 {
    let Protection { read, write, execute } = protection;
    let set = usize::from(read) | usize::from(write) << 1 | usize::from(execute) << 2;
    frame.physical_address() | RIGHTS[set]
}

fn frame_of(value: u64) -> FrameNumber {
    // SAFETY: the entry is of tables that only `map` fills, with frames that are named to it.
    unsafe { FrameNumber::new(number(value & ADDRESS)) }
}

#[inline(always)]
fn decode(value: u64) -> Option<Mapping> {
    if value & (PRESENT | GUARDED) == 0 {
        return None;
    }
    let present = value & PRESENT != 0;
    Some(Mapping {
        frame: frame_of(value),
        protection: Protection {
            read: present,
            write: present && value & WRITE != 0,
            execute: present && value & NO_EXECUTE == 0,
        },
        dirty: value & DIRTY != 0,
    })
}

// SAFETY: the root is that of the tables it keeps until it is dropped; they show what `map` was told and the kernel's half, which
// programs cannot reach.
unsafe impl Translation for PcTranslation {
    /// What CR3 holds while this quaspace is active.
    fn root(&self) -> Root {
        // SAFETY: 1. It is this translation's own table, freed with it. 2. Program pages are mapped by `map` alone; the
        // kernel half is not accessible to programs.
        unsafe { Root::new(self.root) }
    }

    fn map(&self, page: VirtAddr, frame: FrameNumber, protection: Protection) -> Result<(), NoFrames> {
        if self.map_all(&[Shown { page, frame, protection }]) == 1 { Ok(()) } else { Err(NoFrames) }
    }

    fn map_all(&self, pages: &[Shown]) -> usize {
        let is_active = self.is_active();
        for (mapped, shown) in pages.iter().enumerate() {
            let at = match self.known(shown.page) {
                Some(at) => at,
                None => match self.reach_slowly(shown.page) {
                    Ok(at) => at,
                    Err(NoFrames) => return mapped,
                },
            };
            let old = load(at);
            store(at, encode(shown.frame, shown.protection));
            if is_active && old & PRESENT != 0 {
                invalidate_page(shown.page.0);
            }
        }
        pages.len()
    }

    fn unmap(&self, page: VirtAddr) -> Option<Mapping> {
        let at = self.find(page)?;
        let old = load(at);
        self.change(at, page.0, old, Change::Remove);
        decode(old)
    }

    fn protect(&self, page: VirtAddr, protection: Protection) {
        if let Some(at) = self.find(page) {
            self.change(at, page.0, load(at), Change::Protect(protection));
        }
    }

    fn query(&self, page: VirtAddr) -> Option<Mapping> {
        decode(load(self.find(page)?))
    }

    fn next_present(&self, from: VirtAddr, to: VirtAddr) -> Option<(VirtAddr, Mapping)> {
        let mut address = from.0;
        let end = to.0.min(USER_LIMIT);
        while address < end {
            match self.leaf(address) {
                Err(next) => address = next,
                Ok(leaf) => match first_used(leaf, address, end) {
                    Ok((page, value)) => return decode(value).map(|mapping| (VirtAddr(page), mapping)),
                    Err(next) => address = next,
                },
            }
        }
        None
    }

    fn unmap_all(&self, from: VirtAddr, to: VirtAddr, gone: &mut dyn FnMut(&[FrameNumber])) {
        let is_active = self.is_active();
        let mut batch = Batch::new(FrameNumber::NOTHING);
        self.each_entry(from.0, to.0, |at, page, value| {
            store(at, 0);
            if is_active && value & PRESENT != 0 {
                invalidate_page(page);
            }
            batch.push(frame_of(value), &mut |frames| gone(frames));
        });
        gone(batch.rest());
    }

    fn write_protect(&self, from: VirtAddr, to: VirtAddr, shown: &mut dyn FnMut(&[Shown]) -> bool) {
        let is_active = self.is_active();
        let (mut batch, mut goes_on) = (Batch::new(Shown::NOTHING), true);
        self.each_entry(from.0, to.0, |at, page, value| {
            if value & WRITE != 0 {
                store(at, value & !WRITE);
                if is_active {
                    invalidate_page(page);
                }
            }
            let (present, execute) = (value & PRESENT != 0, value & NO_EXECUTE == 0);
            let protection = Protection { read: present, write: false, execute };
            let page = Shown { page: VirtAddr(page), frame: frame_of(value), protection };
            batch.push(page, &mut |pages| goes_on = goes_on && shown(pages));
        });
        let _ = goes_on && shown(batch.rest());
    }

    fn visit(&self, from: VirtAddr, to: VirtAddr, act: &mut dyn FnMut(VirtAddr, Mapping) -> Change) {
        self.each_entry(from.0, to.0, |at, page, value| {
            if let Some(mapping) = decode(value) {
                let change = act(VirtAddr(page), mapping);
                self.change(at, page, value, change);
            }
        });
    }

    fn table_frames(&self) -> usize {
        1 + self.tables.borrow().len()
    }
}

impl Drop for PcTranslation {
    /// Gives the tables back. The quaspace has already unmapped every page it counts, so that without the links
    /// between them all tables are zero again.
    fn drop(&mut self) {
        assert!(!self.is_active(), "the active quaspace was dropped");
        let tables = core::mem::take(&mut *self.tables.borrow_mut());
        for table in &tables {
            store(table.linked_at as *mut u64, 0);
        }
        for slot in KERNEL_SLOTS {
            store(entry(self.root, slot), 0);
        }
        for physical in tables.iter().map(|table| table.physical).chain([self.root]) {
            // SAFETY: the frame was taken for this table, which is no longer reached.
            self.frames.give_zeroed(unsafe { FrameNumber::new(number(physical)) });
        }
    }
}
