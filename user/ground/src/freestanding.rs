//! What a library for C programs needs when Rust's `std` is not there: memory from the C library, and an end for bugs.

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

struct CLibrary;

// SAFETY: 1. malloc's memory is aligned for 16 bytes, and larger alignments get none. 2. free takes what malloc gave.
unsafe impl GlobalAlloc for CLibrary {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 16 {
            return core::ptr::null_mut();
        }
        // SAFETY: any size may be asked for.
        unsafe { libc::malloc(layout.size()) }.cast()
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: the caller's promise: `alloc` gave it.
        unsafe { libc::free(at.cast()) };
    }
}

#[global_allocator]
static ALLOCATOR: CLibrary = CLibrary;

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    crate::say("error: synthesis library: an invariant is broken\n");
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

// Named by the unwind tables of the precompiled core library; never called, because panics abort. Hidden, so that a preloaded
// library does not take the place of a program's own.
core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality, \"ax\", @progbits",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, @function",
    "rust_eh_personality: ud2",
    ".popsection",
);
