//! The kernel heap's pages: frames mapped into the heap's window.

use bare::HeapPages;
use machine::{FrameNumber, FrameSource, PAGE_BYTES};

use crate::frames::FRAMES;
use crate::layout::{HEAP, HEAP_BYTES};
use crate::paging::{NO_EXECUTE, WRITE, map_kernel, unmap_kernel};

pub type Heap = bare::Heap<HeapWindow>;

pub struct HeapWindow;

impl HeapPages for HeapWindow {
    const START: usize = HEAP as usize;
    const BYTES: usize = HEAP_BYTES as usize;

    fn add(address: usize) -> bool {
        let Ok(frame) = FRAMES.take() else { return false };
        // SAFETY: the address belongs to the heap alone and was not mapped; the frame is ours.
        if unsafe { map_kernel(address as u64, frame.physical_address(), WRITE | NO_EXECUTE, &FRAMES) }.is_err() {
            FRAMES.give(frame);
            return false;
        }
        true
    }

    fn remove(address: usize) {
        if let Some(physical) = unmap_kernel(address as u64) {
            FRAMES.give(FrameNumber((physical / PAGE_BYTES as u64) as u32));
        }
    }

    fn available() -> usize {
        FRAMES.available()
    }
}
