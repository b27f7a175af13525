//! The kernel heap: size classes of free blocks in front of whole pages.
//!
//! A block's class is its size rounded up to a power of two or to the three-quarter step between two of them
//! (above 1024, to a third of a page), so that at most a third is wasted. Blocks of a class come from pages of
//! their own and go back to the class's free list; `trim` gives pages without used blocks back. What is larger
//! than half a page takes whole pages of fresh address space and gives them back when freed.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::null_mut;

use machine::{HeapLive, KERNEL_FRAMES_MIN, KernelCell, PAGE_BYTES};

/// Where the heap's pages come from: the machine's part.
pub trait HeapPages {
    /// First address of the range that is the heap's alone; a multiple of the page size.
    const START: usize;
    const BYTES: usize;
    /// Puts a page at `address`; `false`: there is none.
    fn add(address: usize) -> bool;
    /// Takes the page at `address` away, if there is one.
    fn remove(address: usize);
    /// Pages that `add` could give now.
    fn available() -> usize;
}

const CLASSES: [usize; 14] = [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1360, 2048];
const LARGEST: usize = 2048;
/// Blocks of at most this many pages may take the last frames.
const SMALL_PAGES: usize = 4;
/// Pages of address space that a heap can have at most.
const PAGES_MAX: usize = 1 << 17;

/// The kernel's allocator.
pub struct Heap<P> {
    state: KernelCell<State<P>>,
    free_blocks: KernelCell<[u16; WINDOW]>,
}

/// Pages that one pass of `trim` looks at; the heap counts the free blocks it finds in each.
const WINDOW: usize = 4096;

struct State<P> {
    free: [*mut Block; CLASSES.len()],
    /// Pages of address space never used so far, counted from the heap's start.
    next_page: usize,
    /// Bit per page below `next_page`: free again.
    again: [u64; PAGES_MAX / 64],
    /// No page below is free again.
    lowest: usize,
    /// Pages of address space in use.
    used: usize,
    /// Those among them that are cut into blocks, by class.
    cut: [usize; CLASSES.len()],
    pages: PhantomData<fn() -> P>,
}

/// A free block; its first word links to the next.
struct Block {
    next: *mut Block,
}

// SAFETY: the lists lead to blocks that nobody uses, in pages that are the heap's alone: they go wherever the state goes.
unsafe impl<P> Send for State<P> {}

impl<P: HeapPages> Heap<P> {
    pub const fn new() -> Heap<P> {
        Heap {
            state: KernelCell::new(State {
                free: [null_mut(); CLASSES.len()],
                next_page: 0,
                again: [0; PAGES_MAX / 64],
                lowest: 0,
                used: 0,
                cut: [0; CLASSES.len()],
                pages: PhantomData,
            }),
            free_blocks: KernelCell::new([0; WINDOW]),
        }
    }

    /// Pages of address space that are left, whether there are frames for them or not.
    pub fn room(&self) -> usize {
        self.state.borrow().room()
    }

    /// What is in use. Walks all free blocks: for those who look for a leak.
    pub fn live(&self) -> HeapLive {
        self.state.borrow().live()
    }

    /// Gives back the pages of size classes that hold no block in use; returns how many. Walks all free blocks:
    /// for when memory is out.
    pub fn trim(&self) -> usize {
        let mut state = self.state.borrow_mut();
        let mut counts = self.free_blocks.borrow_mut();
        let mut given = 0;
        for class in 0..CLASSES.len() {
            let mut first = 0;
            while first < state.next_page {
                given += state.trim_window(class, first, &mut counts);
                first += WINDOW;
            }
        }
        given
    }
}

impl<P: HeapPages> Default for Heap<P> {
    fn default() -> Heap<P> {
        Heap::new()
    }
}

const fn class_table() -> [u8; LARGEST / 16 + 1] {
    let mut table = [0; LARGEST / 16 + 1];
    let (mut step, mut class) = (0, 0);
    while step < table.len() {
        if step * 16 > CLASSES[class] {
            class += 1;
        }
        table[step] = class as u8;
        step += 1;
    }
    table
}

static CLASS_OF: [u8; LARGEST / 16 + 1] = class_table();

/// The class that serves `layout`, if one does.
fn class_of(layout: &Layout) -> Option<usize> {
    // Blocks are aligned to the largest power of two in their size: an alignment above 16 asks for
    // a power-of-two class.
    let size = if layout.align() > 16 { layout.size().max(layout.align()).next_power_of_two() } else { layout.size() };
    (size <= LARGEST).then(|| CLASS_OF[size.div_ceil(16)] as usize)
}

impl<P: HeapPages> State<P> {
    fn room(&self) -> usize {
        (P::BYTES / PAGE_BYTES).saturating_sub(self.used)
    }

    /// Nothing is counted as blocks come and go: what a class has cut and does not have free is in use.
    fn live(&self) -> HeapLive {
        let large = self.used - self.cut.iter().sum::<usize>();
        let mut live = HeapLive { blocks: large, bytes: large * PAGE_BYTES, pages: self.used };
        for (class, size) in CLASSES.into_iter().enumerate() {
            let blocks = self.cut[class] * (PAGE_BYTES / size) - self.free_blocks(class);
            live.blocks += blocks;
            live.bytes += blocks * size;
        }
        live
    }

    fn free_blocks(&self, class: usize) -> usize {
        let (mut count, mut block) = (0, self.free[class]);
        while !block.is_null() {
            count += 1;
            // SAFETY: a block on a free list is heap memory that nobody uses; its first word is the link.
            block = unsafe { (*block).next };
        }
        count
    }

    fn take(&mut self, class: usize) -> *mut u8 {
        if self.free[class].is_null() && !self.refill(class) {
            return null_mut();
        }
        let block = self.free[class];
        // SAFETY: a block on a free list is heap memory that nobody uses; its first word is the link.
        self.free[class] = unsafe { (*block).next };
        block.cast()
    }

    fn give(&mut self, class: usize, block: *mut u8) {
        let block = block.cast::<Block>();
        // SAFETY: the block was handed out by `take` for this class and is no longer used.
        unsafe { (*block).next = self.free[class] };
        self.free[class] = block;
    }

    /// Cuts a fresh page into blocks. No block lies across a page border, so that `trim` can free page by page.
    fn refill(&mut self, class: usize) -> bool {
        let size = CLASSES[class];
        let Some(start) = self.take_pages(1) else { return false };
        self.cut[class] += 1;
        for index in (0..PAGE_BYTES / size).rev() {
            self.give(class, (start + index * size) as *mut u8);
        }
        true
    }

    /// Fresh, mapped pages. Large blocks leave the kernel's last frames, and the last of the heap's addresses, to small ones:
    /// those who ask for large blocks can be refused, those who need a small record cannot.
    fn take_pages(&mut self, pages: usize) -> Option<usize> {
        if pages > SMALL_PAGES && P::available().min(self.room()) < pages + KERNEL_FRAMES_MIN {
            return None;
        }
        let page = self.take_stretch(pages)?;
        for index in page..page + pages {
            if !P::add(P::START + index * PAGE_BYTES) {
                self.give_pages(page, index - page);
                return None;
            }
        }
        Some(P::START + page * PAGE_BYTES)
    }

    fn take_stretch(&mut self, pages: usize) -> Option<usize> {
        if let Some(page) = self.find_again(pages) {
            (page..page + pages).for_each(|page| self.again[page / 64] &= !(1 << (page % 64)));
            if page == self.lowest {
                self.lowest += pages;
            }
            self.used += pages;
            return Some(page);
        }
        let page = self.next_page;
        if (page + pages) * PAGE_BYTES > P::BYTES {
            return None;
        }
        self.next_page += pages;
        self.used += pages;
        Some(page)
    }

    /// The first stretch of so many pages that are free again.
    fn find_again(&self, pages: usize) -> Option<usize> {
        if self.next_page - self.used < pages {
            return None;
        }
        let (mut at, mut run) = (self.lowest, 0);
        while at < self.next_page {
            let word = self.again[at / 64] >> (at % 64);
            let free = (!word).trailing_zeros() as usize;
            run = if free == 0 { 0 } else { run + free };
            if run >= pages {
                return Some(at + free - run);
            }
            at = match (free, word) {
                (0, 0) => (at / 64 + 1) * 64,
                (0, _) => at + word.trailing_zeros() as usize,
                _ => at + free,
            };
        }
        None
    }

    /// Unmaps pages, gives their frames back and remembers their addresses.
    fn give_pages(&mut self, page: usize, pages: usize) {
        for index in page..page + pages {
            P::remove(P::START + index * PAGE_BYTES);
            self.again[index / 64] |= 1 << (index % 64);
        }
        self.used -= pages;
        self.lowest = self.lowest.min(page);
    }
}

fn page_of<P: HeapPages>(block: *mut Block) -> usize {
    (block as usize - P::START) / PAGE_BYTES
}

impl<P: HeapPages> State<P> {
    /// As `trim`, for one class and the pages from `first` on.
    fn trim_window(&mut self, class: usize, first: usize, counts: &mut [u16; WINDOW]) -> usize {
        counts.fill(0);
        let mut block = self.free[class];
        while !block.is_null() {
            if let Some(count) = page_of::<P>(block).checked_sub(first).and_then(|index| counts.get_mut(index)) {
                *count += 1;
            }
            // SAFETY: a block on a free list is heap memory that nobody uses; its first word is the link.
            block = unsafe { (*block).next };
        }
        let blocks = PAGE_BYTES / CLASSES[class];
        counts.iter_mut().filter(|count| usize::from(**count) < blocks).for_each(|count| *count = 0);
        if counts.iter().all(|count| *count == 0) {
            return 0;
        }
        self.unlink(class, first, counts);
        let empty = (0..WINDOW).filter(|index| counts[*index] > 0);
        let given = empty.map(|index| self.give_pages(first + index, 1)).count();
        self.cut[class] -= given;
        given
    }

    /// Takes the blocks of the pages that go off the free list.
    fn unlink(&mut self, class: usize, first: usize, counts: &[u16; WINDOW]) {
        let goes =
            |block| page_of::<P>(block).checked_sub(first).and_then(|index| counts.get(index)).is_some_and(|&c| c > 0);
        let mut kept = null_mut();
        let mut block = self.free[class];
        while !block.is_null() {
            // SAFETY: as in `trim_window`.
            let next = unsafe { (*block).next };
            if !goes(block) {
                // SAFETY: as above; the word is the link.
                unsafe { (*block).next = kept };
                kept = block;
            }
            block = next;
        }
        self.free[class] = kept;
    }
}

// SAFETY: 1. Blocks handed out do not overlap: each comes from one free list or one stretch and
// returns there only through `dealloc`. 2. Sizes and alignments are at least those asked for (see
// `class_of`; whole pages are page-aligned). 3. `KernelCell` panics on re-entry instead of aliasing.
unsafe impl<P: HeapPages> GlobalAlloc for Heap<P> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        machine::failing::count(layout.size());
        if let Some(class) = class_of(&layout) {
            return self.state.borrow_mut().take(class);
        }
        assert!(layout.align() <= PAGE_BYTES, "heap alignment above a page");
        let pages = layout.size().div_ceil(PAGE_BYTES);
        let take = || self.state.borrow_mut().take_pages(pages);
        // Pages of small blocks that are all free again may lie between stretches that are too short.
        let address = take().or_else(|| if self.trim() > 0 { take() } else { None });
        address.map_or(null_mut(), |address| address as *mut u8)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mut state = self.state.borrow_mut();
        match class_of(&layout) {
            Some(class) => state.give(class, block),
            None => {
                let page = (block as usize - P::START) / PAGE_BYTES;
                state.give_pages(page, layout.size().div_ceil(PAGE_BYTES));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = KERNEL_FRAMES_MIN + 64;

    /// Addresses where nothing is: only whole pages are taken, and nobody touches them.
    struct Nowhere;

    impl HeapPages for Nowhere {
        const START: usize = 1 << 40;
        const BYTES: usize = PAGES * PAGE_BYTES;

        fn add(_address: usize) -> bool {
            true
        }

        fn remove(_address: usize) {}

        fn available() -> usize {
            usize::MAX / 2
        }
    }

    #[test]
    fn large_blocks_leave_the_last_addresses_to_small_ones() {
        let heap = Heap::<Nowhere>::new();
        let large = Layout::from_size_align(16 * PAGE_BYTES, 8).expect("a layout");
        let small = Layout::from_size_align(PAGE_BYTES, 8).expect("a layout");
        // SAFETY: nobody touches the blocks, and each goes back once with its layout.
        unsafe {
            let blocks = [(); 4].map(|()| heap.alloc(large));
            assert!(blocks.iter().all(|block| !block.is_null()) && heap.alloc(large).is_null());
            assert_eq!(heap.room(), KERNEL_FRAMES_MIN);
            assert!((0..KERNEL_FRAMES_MIN).all(|_| !heap.alloc(small).is_null()) && heap.alloc(small).is_null());
            heap.dealloc(blocks[1], large);
            assert_eq!(heap.room(), 16);
            assert!(!heap.alloc(small).is_null() && heap.alloc(large).is_null());
            assert_eq!(heap.room(), 15);
        }
    }

    #[test]
    fn large_blocks_in_use_are_counted_by_pages() {
        let heap = Heap::<Nowhere>::new();
        let layout = Layout::from_size_align(3 * PAGE_BYTES - 5, 8).expect("a layout");
        // SAFETY: as above.
        unsafe {
            let block = heap.alloc(layout);
            assert_eq!(heap.live(), HeapLive { blocks: 3, bytes: 3 * PAGE_BYTES, pages: 3 });
            heap.dealloc(block, layout);
        }
        assert_eq!(heap.live(), HeapLive::default());
    }

    #[test]
    fn pages_in_pieces_are_found_again() {
        let heap = Heap::<Nowhere>::new();
        let layout = |pages: usize| Layout::from_size_align(pages * PAGE_BYTES, 8).expect("a layout");
        // SAFETY: as above.
        unsafe {
            let blocks = [(); PAGES].map(|()| heap.alloc(layout(1)));
            assert_eq!(heap.room(), 0);
            blocks.iter().step_by(2).for_each(|block| heap.dealloc(*block, layout(1)));
            assert_eq!(heap.room(), PAGES / 2);
            assert!(heap.alloc(layout(2)).is_null());
            heap.dealloc(blocks[101], layout(1));
            heap.dealloc(blocks[63], layout(1));
            assert_eq!([heap.alloc(layout(3)), heap.alloc(layout(2))], [blocks[62], blocks[100]]);
            assert_eq!(heap.alloc(layout(1)), blocks[0]);
            assert!((1..PAGES / 2 - 3).all(|_| !heap.alloc(layout(1)).is_null()) && heap.alloc(layout(1)).is_null());
        }
    }
}
