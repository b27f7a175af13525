//! The allocator of the tests. Synthesized code names everything by a 32-bit address, so boxes must lie below 2 GB.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

const ARENA_BYTES: usize = 768 << 20;
/// Size classes are powers of two from 16 bytes.
const CLASSES: usize = 26;

struct Arena {
    locked: AtomicBool,
    state: UnsafeCell<State>,
}

struct State {
    next: usize,
    end: usize,
    free: [*mut u8; CLASSES],
}

// SAFETY: `locked` guards every access to the state.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena {
    locked: AtomicBool::new(false),
    state: UnsafeCell::new(State { next: 0, end: 0, free: [null_mut(); CLASSES] }),
};

/// Fresh memory below 2 GB, without access to its pages until somebody gives it.
pub fn low_memory(bytes: usize, protection: i32) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping disturbs nobody.
    let address = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    assert!(address != libc::MAP_FAILED, "no memory below 2 GB");
    address as usize
}

fn class_of(layout: &Layout) -> usize {
    let bytes = layout.size().max(layout.align()).max(16).next_power_of_two();
    bytes.trailing_zeros() as usize - 4
}

impl Arena {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: the lock is held.
        let result = act(unsafe { &mut *self.state.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

impl State {
    fn take(&mut self, class: usize) -> *mut u8 {
        let block = self.free[class];
        if !block.is_null() {
            // SAFETY: a free block's first word is the link to the next.
            self.free[class] = unsafe { *block.cast() };
            return block;
        }
        if self.end == 0 {
            self.next = low_memory(ARENA_BYTES, libc::PROT_READ | libc::PROT_WRITE);
            self.end = self.next + ARENA_BYTES;
        }
        let bytes = 16 << class;
        let block = self.next.next_multiple_of(bytes.min(4096));
        if block + bytes > self.end {
            return null_mut();
        }
        self.next = block + bytes;
        block as *mut u8
    }
}

// SAFETY: 1. Blocks of a class do not overlap. 2. A block is as large as its class and aligned to it, up to a page.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class_of(&layout);
        if class >= CLASSES || layout.align() > 4096 {
            return null_mut();
        }
        self.with(|state| state.take(class))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.with(|state| {
            let class = class_of(&layout);
            // SAFETY: the block came from `take` of this class and nobody uses it any more.
            unsafe { block.cast::<*mut u8>().write(state.free[class]) };
            state.free[class] = block;
        });
    }
}
