//! The heap: blocks with their size before them, the free ones in the tree.

use core::ptr::NonNull;

use crate::code_nodes::CodeNodes;
use crate::data_nodes::DataNodes;
use crate::tree::{Link, Nodes, find, insert, remove};
use crate::twin::{Errno, Low};

/// Most bytes of a heap.
pub const BYTES_MAX: usize = 1 << 29;
/// Bytes before each block that say how large it is.
const HEADER: u32 = 8;
/// Blocks are multiples of 16 bytes, at least two.
const BLOCK_BYTES_MIN: u32 = 32;

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

/// A fast-fit heap in the low 2 GB. What it gave is gone when it is dropped.
#[derive(Debug)]
pub struct Heap<N: Nodes> {
    nodes: N,
    memory: Low,
    /// What lies behind was never given out, or came back.
    top: u32,
    end: u32,
    used: usize,
}

impl Heap<DataNodes> {
    /// A heap of at most `bytes`, kept the fast way. Pages that are never used cost nothing.
    ///
    /// # Errors
    /// The system's, when there is no room in the low 2 GB.
    pub fn new(bytes: usize, seed: u32) -> Result<Heap<DataNodes>, Errno> {
        Heap::with(bytes, DataNodes::new(nodes_for(bytes), seed)?)
    }
}

impl Heap<CodeNodes> {
    /// The same, kept as code (the papers' way).
    ///
    /// # Errors
    /// The system's, also when it refuses memory that is executed.
    pub fn of_code(bytes: usize, seed: u32) -> Result<Heap<CodeNodes>, Errno> {
        Heap::with(bytes, CodeNodes::new(nodes_for(bytes), seed)?)
    }
}

/// No two free blocks touch, so each has a used one behind it.
fn nodes_for(bytes: usize) -> usize {
    bytes.min(BYTES_MAX) / (2 * BLOCK_BYTES_MIN as usize) + 1
}

impl<N: Nodes> Heap<N> {
    fn with(bytes: usize, nodes: N) -> Result<Heap<N>, Errno> {
        let bytes = bytes.clamp(4096, BYTES_MAX) & !15;
        let memory = Low::new(bytes)?;
        // Blocks begin 8 bytes before a multiple of 16, so that what follows the header is aligned.
        let top = memory.at as u32 + HEADER;
        Ok(Heap { nodes, top, end: (memory.at + bytes) as u32 - HEADER, memory, used: 0 })
    }

    /// `bytes` bytes, aligned for 16. `None`: there is no room.
    pub fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes > BYTES_MAX {
            return None;
        }
        let block_bytes = (bytes as u32 + HEADER).next_multiple_of(16).max(BLOCK_BYTES_MIN);
        let block = match self.nodes.fit(block_bytes) {
            Some((node, link)) => self.cut(node, link, block_bytes),
            None if self.end - self.top < block_bytes => return None,
            None => {
                self.top += block_bytes;
                self.set_size(self.top - block_bytes, block_bytes);
                self.top - block_bytes
            }
        };
        self.used += self.size(block) as usize;
        NonNull::new((block + HEADER) as usize as *mut u8)
    }

    /// Takes the upper end of a free block, so that the rest keeps its address.
    fn cut(&mut self, node: u32, link: Link, wanted: u32) -> u32 {
        let address = self.nodes.address(node);
        let (_, bytes) = self.nodes.at(link);
        let rest = bytes - wanted;
        if rest < BLOCK_BYTES_MIN {
            remove(&mut self.nodes, link);
            self.nodes.give_back(node);
            return address;
        }
        let children = [crate::Side::Left, crate::Side::Right].map(|side| self.nodes.at(Link::Child(node, side)).1);
        if children.iter().all(|child| *child < rest) {
            self.nodes.hang(link, node, rest); // it may stay where it is
        } else {
            remove(&mut self.nodes, link);
            insert(&mut self.nodes, link, node, rest);
        }
        self.set_size(address, rest);
        self.set_size(address + rest, wanted);
        address + rest
    }

    /// Takes a block back and joins it with its free neighbours.
    ///
    /// # Safety
    /// `block` came from [`Heap::allocate`] of this heap and was not freed since.
    pub unsafe fn free(&mut self, block: NonNull<u8>) {
        let mut address = block.as_ptr() as u32 - HEADER;
        let mut bytes = self.size(address);
        self.used -= bytes as usize;
        let (before, behind) = self.nodes.around(address);
        if behind != 0 && self.nodes.address(behind) == address + bytes {
            bytes += self.leave(address + bytes);
        }
        if before != 0 {
            let start = self.nodes.address(before);
            if start + self.size(start) == address {
                address = start;
                bytes += self.leave(start);
            }
        }
        if address + bytes == self.top {
            self.top = address;
            return;
        }
        self.set_size(address, bytes);
        // There is a node for each block that can be free (`nodes_for`); if not, the block is lost, not the heap.
        if let Some(node) = self.nodes.take(address) {
            insert(&mut self.nodes, Link::Root, node, bytes);
        }
    }

    /// The free block at `address` leaves the tree. Its bytes.
    fn leave(&mut self, address: u32) -> u32 {
        let link = find(&self.nodes, address);
        let (node, bytes) = self.nodes.at(link);
        remove(&mut self.nodes, link);
        self.nodes.give_back(node);
        bytes
    }

    /// Whether a free block has room for `bytes`: the search of [`Heap::allocate`] alone.
    pub fn has(&mut self, bytes: u32) -> bool {
        self.nodes.fit(bytes + HEADER).is_some()
    }

    /// Bytes that fit in a block.
    ///
    /// # Safety
    /// As [`Heap::free`].
    pub unsafe fn usable_bytes(&self, block: NonNull<u8>) -> usize {
        (self.size(block.as_ptr() as u32 - HEADER) - HEADER) as usize
    }

    fn size(&self, block: u32) -> u32 {
        debug_assert!((self.memory.at as u32..self.end).contains(&block));
        // SAFETY: 1. a block's address, inside the memory. 2. Its header is its own.
        unsafe { (block as usize as *const u32).read() }
    }

    fn set_size(&mut self, block: u32, bytes: u32) {
        debug_assert!((self.memory.at as u32..self.end).contains(&block));
        // SAFETY: as in `size`.
        unsafe { (block as usize as *mut u32).write(bytes) };
    }

    /// Walks the whole tree.
    ///
    /// # Panics
    /// When the tree is not one: a mistake in it.
    pub fn measure(&self) -> Measure {
        let mut measure = Measure { used: self.used, free: 0, largest: 0, depth: 0 };
        let root = self.nodes.at(Link::Root);
        measure.largest = root.1 as usize;
        let mut waiting = vec![(root, 1, self.memory.at as u32..self.top)];
        while let Some(((node, bytes), depth, range)) = waiting.pop() {
            if node == 0 {
                continue;
            }
            let address = self.nodes.address(node);
            assert!(range.start <= address && address + bytes <= range.end, "a node is on the wrong side");
            assert_eq!(self.size(address), bytes, "link and block disagree");
            measure.free += bytes as usize;
            measure.depth = measure.depth.max(depth);
            let ranges = [range.start..address, address + bytes..range.end];
            for (side, range) in [crate::Side::Left, crate::Side::Right].into_iter().zip(ranges) {
                let child = self.nodes.at(Link::Child(node, side));
                assert!(child.1 <= bytes, "a child is larger than its parent");
                waiting.push((child, depth + 1, range));
            }
        }
        measure
    }

    /// Bytes of the memory that are in use or were since the upper end last came back.
    pub fn spread(&self) -> usize {
        (self.top as usize).saturating_sub(self.memory.at + HEADER as usize)
    }
}
