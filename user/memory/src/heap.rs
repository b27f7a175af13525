//! The heap: blocks with their size before them, the free ones in the tree.

use alloc::vec;
use core::ptr::NonNull;

use ground::{Errno, Mapping};

use crate::code_nodes::CodeNodes;
use crate::data_nodes::DataNodes;
use crate::tree::{Link, Nodes, Side, find, insert, remove};

/// Most bytes of a heap.
pub const BYTES_MAX: usize = 1 << 35;
/// Blocks begin and end at multiples of it; addresses and sizes count in it, so that 32 bits do.
const UNIT: usize = 16;
/// Bytes before each block: its size, and whether it is given out.
const HEADER: usize = 8;
const BLOCK_UNITS_MIN: u32 = 2;
/// Pages behind the last block go back to the system when so much of them has been used and freed.
const TRIM_UNITS: u32 = (8 << 20) / UNIT as u32;

/// How full a heap is, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    /// Blocks that are given out, with their headers.
    pub used: usize,
    /// Blocks in the tree.
    pub free: usize,
    /// Of the tree, the largest.
    pub largest: usize,
    /// How deep the tree is.
    pub depth: usize,
}

/// What a block's header says it is, beside its size. Two blocks never have the same mark, and memory that is no block has
/// one by accident only: what is freed twice, or was never given, is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    Given,
    /// Freed, but not in the tree.
    Waiting,
    Free,
}

impl Mark {
    fn word(self, block: u32) -> u32 {
        match self {
            Mark::Given => block ^ 0x5EA1_ED01,
            Mark::Waiting => block ^ 0x3A17_1236,
            Mark::Free => 0,
        }
    }
}

/// A fast-fit heap. What it gave is gone when it is dropped.
#[derive(Debug)]
pub struct Heap<N: Nodes> {
    nodes: N,
    memory: Mapping,
    /// Where block 0 begins: 8 bytes before a multiple of 16, so that what follows the header is aligned.
    base: usize,
    /// What lies behind was never given out, or came back.
    top: u32,
    end: u32,
    /// Pages behind this block were not touched since they last went back to the system.
    touched: u32,
    used: u32,
}

impl Heap<DataNodes> {
    /// A heap of at most `bytes`, kept the fast way. Pages that are never used cost nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize, seed: u32) -> Result<Heap<DataNodes>, Errno> {
        Heap::with(bytes, DataNodes::new(nodes_for(bytes), seed)?)
    }
}

impl Heap<CodeNodes> {
    /// The same, kept as code (the papers' way), which lies in the low 2 GB.
    ///
    /// # Errors
    /// The system's, also when it refuses memory that is executed.
    pub fn of_code(bytes: usize, seed: u32) -> Result<Heap<CodeNodes>, Errno> {
        Heap::with(bytes, CodeNodes::new(nodes_for(bytes), seed)?)
    }
}

/// No two free blocks touch, so each has a used one behind it.
fn nodes_for(bytes: usize) -> usize {
    bytes.min(BYTES_MAX) / (2 * BLOCK_UNITS_MIN as usize * UNIT) + 1
}

/// Units of a block in which `bytes` fit.
#[inline]
pub(crate) fn units_for(bytes: usize) -> Option<u32> {
    if bytes > BYTES_MAX {
        return None;
    }
    Some(((bytes + HEADER).div_ceil(UNIT) as u32).max(BLOCK_UNITS_MIN))
}

impl<N: Nodes> Heap<N> {
    fn with(bytes: usize, nodes: N) -> Result<Heap<N>, Errno> {
        let bytes = bytes.clamp(4096, BYTES_MAX) & !(UNIT - 1);
        let memory = Mapping::zeroed(bytes)?;
        let (base, end) = (memory.at() + HEADER, (bytes / UNIT - 1) as u32);
        Ok(Heap { nodes, memory, base, top: 0, end, touched: 0, used: 0 })
    }

    /// `bytes` bytes, aligned for 16. `None`: there is no room.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let block = self.take(units_for(bytes)?)?;
        Some(self.give(block))
    }

    /// The same, aligned for `align`, a power of two.
    pub fn allocate_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        if align <= UNIT {
            return self.allocate(bytes);
        }
        let spare = u32::try_from(align / UNIT).ok()?.checked_add(1)?;
        let mut block = self.take(units_for(bytes)?.checked_add(spare)?)?;
        let first = self.place(block);
        let wanted = match first.next_multiple_of(align) {
            // What is cut off must be a block.
            near if near != first && near - first < BLOCK_UNITS_MIN as usize * UNIT => near + align,
            near => near,
        };
        let front = ((wanted - first) / UNIT) as u32;
        if front > 0 {
            let units = self.units(block);
            self.release(block, front);
            block += front;
            self.set_units(block, units - front);
        }
        let given = self.give(block);
        // SAFETY: it was given just now.
        unsafe { self.resize(given, bytes) };
        Some(given)
    }

    /// Where a block's bytes are.
    fn place(&self, block: u32) -> usize {
        self.base + block as usize * UNIT + HEADER
    }

    fn give(&mut self, block: u32) -> NonNull<u8> {
        self.set_mark(block, Mark::Given);
        // SAFETY: inside a mapping, which is not at 0.
        unsafe { NonNull::new_unchecked(self.place(block) as *mut u8) }
    }

    /// A block of so many units, or one more.
    fn take(&mut self, units: u32) -> Option<u32> {
        let block = match self.nodes.fit(units) {
            Some((node, link)) => self.cut(node, link, units),
            None if self.end - self.top < units => return None,
            None => {
                self.top += units;
                self.touched = self.touched.max(self.top);
                self.set_units(self.top - units, units);
                self.top - units
            }
        };
        self.used += self.units(block);
        Some(block)
    }

    /// Takes the upper end of a free block, so that the rest keeps its address.
    fn cut(&mut self, node: u32, link: Link, wanted: u32) -> u32 {
        let address = self.nodes.address(node);
        let (_, units) = self.nodes.at(link);
        let rest = units - wanted;
        if rest < BLOCK_UNITS_MIN {
            remove(&mut self.nodes, link);
            self.nodes.give_back(node);
            return address;
        }
        let children = [Side::Left, Side::Right].map(|side| self.nodes.at(Link::Child(node, side)).1);
        if children.iter().all(|child| *child < rest) {
            self.nodes.hang(link, node, rest); // it may stay where it is
        } else {
            remove(&mut self.nodes, link);
            insert(&mut self.nodes, link, node, rest);
        }
        self.set_units(address, rest);
        self.set_units(address + rest, wanted);
        address + rest
    }

    /// Takes a block back and joins it with its free neighbours. `false`, and nothing is done: this is no block that was given.
    ///
    /// # Safety
    /// Nobody uses the block any more.
    #[inline]
    pub unsafe fn free(&mut self, block: NonNull<u8>) -> bool {
        let Some(block) = self.given(block) else { return false };
        self.release(block, self.units(block));
        true
    }

    fn release(&mut self, mut address: u32, mut units: u32) {
        self.used -= units;
        self.set_mark(address, Mark::Free);
        let (before, behind) = self.nodes.around(address);
        if behind != 0 && self.nodes.address(behind) == address + units {
            units += self.leave(address + units);
        }
        if before != 0 {
            let start = self.nodes.address(before);
            if start + self.units(start) == address {
                address = start;
                units += self.leave(start);
            }
        }
        if address + units == self.top {
            self.top = address;
            self.trim();
            return;
        }
        self.set_units(address, units);
        // There is a node for each block that can be free (`nodes_for`); if not, the block is lost, not the heap.
        if let Some(node) = self.nodes.take(address) {
            insert(&mut self.nodes, Link::Root, node, units);
        }
    }

    /// The free block at `address` leaves the tree. Its units.
    fn leave(&mut self, address: u32) -> u32 {
        let link = find(&self.nodes, address);
        let (node, units) = self.nodes.at(link);
        remove(&mut self.nodes, link);
        self.nodes.give_back(node);
        units
    }

    fn trim(&mut self) {
        if self.touched - self.top < TRIM_UNITS {
            return;
        }
        let from = (self.base + self.top as usize * UNIT).next_multiple_of(4096);
        let to = self.base + self.touched as usize * UNIT;
        // SAFETY: it lies behind all blocks, and inside the memory.
        unsafe { ground::discard(from, to.saturating_sub(from)) };
        self.touched = self.top;
    }

    /// Makes a block larger or smaller where it is. `false`: it is as it was.
    ///
    /// # Safety
    /// The block is one that this heap gave, and nobody uses what is cut off.
    pub unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> bool {
        let (Some(block), Some(wanted)) = (self.given(block), units_for(bytes)) else { return false };
        let mut units = self.units(block);
        let behind = block + units;
        if units < wanted {
            let missing = wanted - units;
            if behind == self.top {
                if self.end - self.top < missing {
                    return false;
                }
                self.top += missing;
                self.touched = self.touched.max(self.top);
                self.used += missing;
                self.set_units(block, wanted);
                return true;
            }
            let (_, next) = self.nodes.around(block);
            if next == 0 || self.nodes.address(next) != behind || self.units(behind) < missing {
                return false;
            }
            let joined = self.leave(behind);
            self.used += joined;
            units += joined;
            self.set_units(block, units);
        }
        if units - wanted >= BLOCK_UNITS_MIN {
            self.set_units(block, wanted);
            self.release(block + wanted, units - wanted);
        }
        true
    }

    /// Whether a free block has room for `bytes`: the search of [`Heap::allocate`] alone.
    pub fn has(&mut self, bytes: u32) -> bool {
        units_for(bytes as usize).is_some_and(|units| self.nodes.fit(units).is_some())
    }

    /// Bytes that fit in a block; `None`: this is no block that was given.
    #[inline]
    pub fn usable_bytes(&self, block: NonNull<u8>) -> Option<usize> {
        self.given(block).map(|block| self.units(block) as usize * UNIT - HEADER)
    }

    /// Whether it lies in the heap's memory.
    #[inline]
    pub fn contains(&self, place: *const u8) -> bool {
        (place as usize).wrapping_sub(self.memory.at()) < self.memory.bytes()
    }

    /// The block, if it is one that was given.
    #[inline]
    fn given(&self, block: NonNull<u8>) -> Option<u32> {
        let offset = (block.as_ptr() as usize).wrapping_sub(self.base + HEADER);
        let number = (offset / UNIT) as u32;
        let is_inside = offset.is_multiple_of(UNIT) && offset / UNIT < self.top as usize;
        (is_inside && self.mark(number) == Mark::Given.word(number)).then_some(number)
    }

    /// Units of a block, if it is one that was given.
    #[inline]
    pub(crate) fn units_of(&self, block: NonNull<u8>) -> Option<u32> {
        self.given(block).map(|block| self.units(block))
    }

    /// A block that was given waits from now on.
    #[inline]
    pub(crate) fn set_waiting(&mut self, block: NonNull<u8>) {
        self.set_mark(self.number(block), Mark::Waiting);
    }

    /// A waiting block is given again.
    #[inline]
    pub(crate) fn set_given(&mut self, block: NonNull<u8>) {
        self.set_mark(self.number(block), Mark::Given);
    }

    fn number(&self, block: NonNull<u8>) -> u32 {
        ((block.as_ptr() as usize - HEADER - self.base) / UNIT) as u32
    }

    fn header(&self, block: u32) -> *mut [u32; 2] {
        debug_assert!(block < self.end);
        (self.base + block as usize * UNIT) as *mut [u32; 2]
    }

    fn units(&self, block: u32) -> u32 {
        // SAFETY: 1. a block's number, inside the memory. 2. Its header is its own.
        unsafe { (*self.header(block))[0] }
    }

    fn mark(&self, block: u32) -> u32 {
        // SAFETY: as in `units`.
        unsafe { (*self.header(block))[1] }
    }

    fn set_units(&mut self, block: u32, units: u32) {
        // SAFETY: as in `units`, and `&mut self`.
        unsafe { (*self.header(block))[0] = units };
    }

    fn set_mark(&mut self, block: u32, mark: Mark) {
        // SAFETY: as in `set_units`.
        unsafe { (*self.header(block))[1] = mark.word(block) };
    }

    /// Walks the whole tree.
    ///
    /// # Panics
    /// When the tree is not one: a mistake in it.
    pub fn measure(&self) -> Measure {
        let root = self.nodes.at(Link::Root);
        let mut measure = Measure { used: self.used(), free: 0, largest: root.1 as usize * UNIT, depth: 0 };
        let mut waiting = vec![(root, 1, 0..self.top)];
        while let Some(((node, units), depth, range)) = waiting.pop() {
            if node == 0 {
                continue;
            }
            let address = self.nodes.address(node);
            assert!(range.start <= address && address + units <= range.end, "a node is on the wrong side");
            assert_eq!(self.units(address), units, "link and block disagree");
            measure.free += units as usize * UNIT;
            measure.depth = measure.depth.max(depth);
            let ranges = [range.start..address, address + units..range.end];
            for (side, range) in [Side::Left, Side::Right].into_iter().zip(ranges) {
                let child = self.nodes.at(Link::Child(node, side));
                assert!(child.1 <= units, "a child is larger than its parent");
                waiting.push((child, depth + 1, range));
            }
        }
        measure
    }

    /// Bytes of blocks that are given out, with their headers.
    pub fn used(&self) -> usize {
        self.used as usize * UNIT
    }

    /// Bytes of the memory that are in use or were since the upper end last came back.
    pub fn spread(&self) -> usize {
        self.top as usize * UNIT
    }
}
