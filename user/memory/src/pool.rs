//! A heap with lists in front of it: what a C library's allocator is expected to be.
//!
//! Small blocks that are freed wait in a list of their size to be asked for again; only when many bytes wait do they go back
//! to the tree, where they are joined with their neighbours. A program that frees and allocates the same sizes in turns never
//! comes to the tree. Large blocks are mappings of their own.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::ptr::{NonNull, null_mut};

use ground::Errno;
use libc::{MREMAP_MAYMOVE, PROT_READ, PROT_WRITE, mremap};

use crate::data_nodes::DataNodes;
use crate::heap::{Heap, Measure, units_for};

/// Blocks below so many units of 16 bytes wait in lists.
const LISTS: usize = 257;
/// So many units may wait, 1 MB; then all go back to the tree.
const WAITING_UNITS_MAX: u32 = (1 << 20) / 16;
/// Blocks of at least so many bytes are mappings of their own.
pub const LARGE_BYTES: usize = 1 << 20;
/// What stands before such a block: where its mapping begins, with a mark in the bits that a page's address does not use, and
/// its bytes.
const LARGE_HEADER: usize = 16;
const LARGE_MARK: usize = 0xB1C;
const PAGE: usize = 4096;

/// The heap may grow to this. When the system refuses to set so many addresses aside, to less.
const BYTES: usize = 1 << 34;
const BYTES_MIN: usize = 1 << 24;

/// A heap with lists.
#[derive(Debug)]
pub struct Pool {
    heap: Heap<DataNodes>,
    /// Freed blocks of each size; the first 8 bytes of each lead to the next.
    lists: [*mut u8; LISTS],
    waiting_units: u32,
}

// SAFETY: the lists lead to the heap's own blocks, which nobody else knows.
unsafe impl Send for Pool {}

impl Pool {
    /// # Errors
    /// The system's: no addresses for even a small heap.
    pub fn new() -> Result<Pool, Errno> {
        let mut bytes = BYTES;
        loop {
            match Heap::new(bytes, 1) {
                Ok(heap) => return Ok(Pool { heap, lists: [null_mut(); LISTS], waiting_units: 0 }),
                Err(error) if bytes <= BYTES_MIN => return Err(error),
                Err(_) => bytes /= 4,
            }
        }
    }

    /// `bytes` bytes, aligned for 16. `None`: there is no room.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let units = units_for(bytes)?;
        if let Some(list) = self.lists.get_mut(units as usize)
            && let Some(first) = NonNull::new(*list)
        {
            // SAFETY: a waiting block's first word is the list's.
            *list = unsafe { first.cast().read() };
            self.waiting_units -= units;
            self.heap.set_given(first);
            return Some(first);
        }
        self.heap.allocate(bytes).or_else(|| self.retry(bytes))
    }

    /// Joins what waits before saying no.
    #[cold]
    fn retry(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.settle();
        self.heap.allocate(bytes)
    }

    /// The same, aligned for `align`, a power of two.
    pub fn allocate_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        self.heap.allocate_aligned(bytes, align)
    }

    /// Takes a block back. `false`, and nothing is done: this is none that was given.
    ///
    /// # Safety
    /// Nobody uses the block any more.
    #[inline]
    pub unsafe fn free(&mut self, block: NonNull<u8>) -> bool {
        let Some(units) = self.heap.units_of(block) else { return false };
        let Some(list) = self.lists.get_mut(units as usize) else {
            // SAFETY: the caller's promise.
            return unsafe { self.heap.free(block) };
        };
        // SAFETY: blocks have room for a word, and the caller does not use it any more.
        unsafe { block.cast().write(*list) };
        *list = block.as_ptr();
        self.heap.set_waiting(block);
        self.waiting_units += units;
        if self.waiting_units > WAITING_UNITS_MAX {
            self.settle();
        }
        true
    }

    /// What waits goes back to the tree.
    pub fn settle(&mut self) {
        for list in 0..LISTS {
            let mut next = NonNull::new(core::mem::replace(&mut self.lists[list], null_mut()));
            while let Some(block) = next {
                // SAFETY: a waiting block's first word is the list's.
                next = NonNull::new(unsafe { block.cast().read() });
                self.heap.set_given(block);
                // SAFETY: it waited, so nobody uses it.
                unsafe { self.heap.free(block) };
            }
        }
        self.waiting_units = 0;
    }

    /// See [`Heap::resize`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.heap.resize(block, bytes) }
    }

    /// See [`Heap::usable_bytes`].
    #[inline]
    pub fn usable_bytes(&self, block: NonNull<u8>) -> Option<usize> {
        self.heap.usable_bytes(block)
    }

    /// Whether it lies in the heap; large blocks do not.
    #[inline]
    pub fn contains(&self, place: *const u8) -> bool {
        self.heap.contains(place)
    }

    /// Bytes in use and of the heap up to the last block, when nothing waits.
    pub fn fill(&mut self) -> (usize, usize) {
        self.settle();
        (self.heap.used(), self.heap.spread())
    }

    /// How full the heap is when nothing waits, and its bytes up to the last block.
    pub fn measure(&mut self) -> (Measure, usize) {
        self.settle();
        (self.heap.measure(), self.heap.spread())
    }
}

/// A block that is a mapping of its own, aligned for `align`, a power of two.
pub fn allocate_large(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let spare = if align <= LARGE_HEADER { LARGE_HEADER } else { align.checked_add(LARGE_HEADER)? };
    let total = bytes.checked_add(spare)?.checked_next_multiple_of(PAGE)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let start = ground::map(0, total, PROT_READ | PROT_WRITE, flags, -1).ok()?;
    Some(head(start, total, (start + LARGE_HEADER).next_multiple_of(align)))
}

/// Writes what stands before a large block at `at`.
fn head(start: usize, total: usize, at: usize) -> NonNull<u8> {
    // SAFETY: 1. the header lies inside the mapping, which is the caller's. 2. Mappings are not at 0.
    unsafe {
        ((at - LARGE_HEADER) as *mut [usize; 2]).write([start | LARGE_MARK, total]);
        NonNull::new_unchecked(at as *mut u8)
    }
}

/// Mapping and length of a large block; `None`: it is none.
///
/// # Safety
/// The bytes before it can be read: it is a block of somebody's.
unsafe fn large(block: NonNull<u8>) -> Option<(usize, usize)> {
    let at = block.as_ptr() as usize;
    if !at.is_multiple_of(LARGE_HEADER) {
        return None;
    }
    // SAFETY: the caller's promise.
    let [start, total] = unsafe { ((at - LARGE_HEADER) as *const [usize; 2]).read() };
    let start = start.wrapping_sub(LARGE_MARK);
    (start.is_multiple_of(PAGE) && total.is_multiple_of(PAGE) && start < at && at - start < total)
        .then_some((start, total))
}

/// Gives a large block back. `false`: it is none.
///
/// # Safety
/// As [`large`], and nobody uses it any more.
pub unsafe fn free_large(block: NonNull<u8>) -> bool {
    // SAFETY: the caller's promise.
    let Some((start, total)) = (unsafe { large(block) }) else { return false };
    let before = Errno::last();
    // SAFETY: the mapping was made for this block alone.
    unsafe { ground::unmap(start, total) };
    before.set();
    true
}

/// Bytes that fit in a large block.
///
/// # Safety
/// As [`large`].
pub unsafe fn usable_large(block: NonNull<u8>) -> Option<usize> {
    // SAFETY: the caller's promise.
    unsafe { large(block) }.map(|(start, total)| start + total - block.as_ptr() as usize)
}

/// Makes a large block larger or smaller, maybe elsewhere. `None`: it is as it was.
///
/// # Safety
/// As [`large`]; what is cut off is not used any more.
pub unsafe fn resize_large(block: NonNull<u8>, bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let (start, total) = unsafe { large(block) }?;
    let front = block.as_ptr() as usize - start;
    let wanted = bytes.checked_add(front)?.checked_next_multiple_of(PAGE)?;
    if wanted < LARGE_BYTES {
        return None;
    }
    // SAFETY: the mapping is this block's own.
    let moved = unsafe { mremap(start as *mut _, total, wanted, MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED {
        return None;
    }
    Some(head(moved as usize, wanted, moved as usize + front))
}
