//! The kernel heap's pages: the host's memory in the heap's window.

use bare::HeapPages;

use crate::layout::{HEAP, HEAP_BYTES};

pub type Heap = bare::Heap<HeapWindow>;

pub struct HeapWindow;

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
