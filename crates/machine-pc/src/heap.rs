//! The kernel heap's pages: frames mapped into the heap's window.

use core::alloc::{GlobalAlloc, Layout};

use bare::HeapPages;
use machine::{FrameNumber, FrameSource, HeapLive};

use crate::frames::{FRAMES, number};
use crate::layout::{HEAP, HEAP_BYTES};
use crate::paging::{NO_EXECUTE, WRITE, map_kernel, unmap_kernel};

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

/// Pages that the heap could take now.
pub fn room() -> usize {
    THE.room().min(HeapWindow::available())
}

/// What of the heap is in use.
pub fn live() -> HeapLive {
    THE.live()
}

struct HeapWindow;

impl HeapPages for HeapWindow {
    const START: usize = HEAP as usize;
    const BYTES: usize = HEAP_BYTES as usize;

    fn add(address: usize) -> bool {
        let Ok(frame) = FRAMES.take_dirty() else { return false };
        // SAFETY: the address belongs to the heap alone and was not mapped; the frame is ours.
        if unsafe { map_kernel(address as u64, frame.physical_address(), WRITE | NO_EXECUTE, &FRAMES) }.is_err() {
            FRAMES.give(frame);
            return false;
        }
        true
    }

    fn remove(address: usize) {
        if let Some(physical) = unmap_kernel(address as u64) {
            // SAFETY: the frame was taken for this page of the heap, which no longer shows it.
            FRAMES.give(unsafe { FrameNumber::new(number(physical)) });
        }
    }

    fn available() -> usize {
        FRAMES.available()
    }
}
