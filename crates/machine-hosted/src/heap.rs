//! The kernel heap's pages: the host's memory in the heap's window.

use core::alloc::{GlobalAlloc, Layout};

use bare::HeapPages;
use machine::HeapLive;

use crate::layout::{HEAP, HEAP_BYTES};

/// The kernel's allocator. There is one heap, whoever holds this.
#[derive(Default)]
pub struct Heap;

static THE: bare::Heap<HeapWindow> = bare::Heap::new();

impl Heap {
    pub const fn new() -> Heap {
        Heap
    }
}

// SAFETY: every call goes to the one heap, which keeps the contract.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        unsafe { THE.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { THE.dealloc(block, layout) }
    }
}

/// Gives back what pages the heap can spare; returns how many.
pub fn trim() -> usize {
    THE.trim()
}

/// Pages that the heap's window has left.
pub fn room() -> usize {
    THE.room()
}

/// What of the heap is in use.
pub fn live() -> HeapLive {
    THE.live()
}

struct HeapWindow;

impl HeapPages for HeapWindow {
    const START: usize = HEAP as usize;
    const BYTES: usize = HEAP_BYTES as usize;

    /// The whole window is mapped at start; the host supplies memory at the first touch.
    fn add(_address: usize) -> bool {
        true
    }

    /// The memory stays for the next block: giving it back would cost a host call and a fault each time.
    fn remove(_address: usize) {}

    fn available() -> usize {
        // The window's own end is what limits the heap.
        usize::MAX / 2
    }
}
