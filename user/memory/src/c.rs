//! What C programs call: see `include/synthmem.h` and `man/synthmem.3`.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};
use core::slice;

use ground::Errno;
use libc::c_int;

use crate::blocks::Routines;
use crate::code_nodes::CodeNodes;
use crate::data_nodes::DataNodes;
use crate::heap::Heap;

/// A heap of either kind.
enum Kind {
    Words(Heap<DataNodes>),
    Code(Heap<CodeNodes>),
}

/// The same with the heap inside, whatever its nodes are.
macro_rules! with {
    ($kind:expr, $heap:ident => $value:expr) => {
        match $kind {
            Kind::Words($heap) => $value,
            Kind::Code($heap) => $value,
        }
    };
}

#[repr(C)]
struct Measured {
    used: usize,
    free: usize,
    largest: usize,
    depth: usize,
    spread: usize,
}

fn boxed<T>(made: Result<T, Errno>) -> *mut T {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            error.set();
            null_mut()
        }
    }
}

/// 0, or -1 and this errno.
fn done(is_done: bool, otherwise: c_int) -> c_int {
    if is_done {
        return 0;
    }
    Errno(otherwise).set();
    -1
}

fn given(block: Option<NonNull<u8>>) -> *mut c_void {
    done(block.is_some(), libc::ENOMEM);
    block.map_or(null_mut(), |block| block.as_ptr().cast())
}

#[unsafe(no_mangle)]
extern "C" fn smem_heap_new(bytes: usize, nodes: c_int) -> *mut Kind {
    match nodes {
        0 => boxed(Heap::new(bytes, 1).map(Kind::Words)),
        1 => boxed(Heap::of_code(bytes, 1).map(Kind::Code)),
        _ => boxed(Err(Errno(libc::EINVAL))),
    }
}

/// # Safety
/// `heap` is null or one that was made and not deleted, and nobody uses it or its blocks any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_heap_delete(heap: *mut Kind) {
    if !heap.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(heap) });
    }
}

/// # Safety
/// `heap` was made and not deleted, and nobody else uses it now. So it is with all that follow.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_alloc(heap: *mut Kind, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    given(with!(unsafe { &mut *heap }, heap => heap.allocate(bytes)))
}

/// # Safety
/// See `smem_alloc`.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_alloc_aligned(heap: *mut Kind, align: usize, bytes: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        Errno(libc::EINVAL).set();
        return null_mut();
    }
    // SAFETY: the caller's promise.
    given(with!(unsafe { &mut *heap }, heap => heap.allocate_aligned(bytes, align)))
}

/// # Safety
/// See `smem_alloc`; nobody uses the block any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_free(heap: *mut Kind, block: *mut u8) -> c_int {
    let Some(block) = NonNull::new(block) else { return 0 };
    // SAFETY: the caller's promise.
    done(with!(unsafe { &mut *heap }, heap => unsafe { heap.free(block) }), libc::EINVAL)
}

/// # Safety
/// See `smem_alloc`; nobody uses what is cut off.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_resize(heap: *mut Kind, block: *mut u8, bytes: usize) -> c_int {
    let Some(block) = NonNull::new(block) else { return done(false, libc::EINVAL) };
    // SAFETY: the caller's promise.
    done(with!(unsafe { &mut *heap }, heap => unsafe { heap.resize(block, bytes) }), libc::ENOMEM)
}

/// # Safety
/// See `smem_alloc`.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_usable(heap: *mut Kind, block: *mut u8) -> usize {
    let Some(block) = NonNull::new(block) else { return 0 };
    // SAFETY: the caller's promise.
    with!(unsafe { &*heap }, heap => heap.usable_bytes(block)).unwrap_or(0)
}

/// # Safety
/// See `smem_alloc`; `into` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_measure(heap: *mut Kind, into: *mut Measured) {
    // SAFETY: the caller's promise.
    let (measure, spread) = with!(unsafe { &*heap }, heap => (heap.measure(), heap.spread()));
    let crate::Measure { used, free, largest, depth } = measure;
    // SAFETY: the caller's promise.
    unsafe { into.write(Measured { used, free, largest, depth, spread }) };
}

#[unsafe(no_mangle)]
extern "C" fn smem_routines_new(bytes: usize) -> *mut Routines {
    boxed(Routines::new(bytes))
}

/// # Safety
/// `routines` is null or was made and not deleted, and nobody is in a routine of it.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_routines_delete(routines: *mut Routines) {
    if !routines.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(routines) });
    }
}

fn routine(entry: Option<usize>) -> *const c_void {
    done(entry.is_some(), libc::ENOMEM);
    entry.map_or(null(), |entry| entry as *const c_void)
}

/// # Safety
/// `routines` was made and not deleted, and nobody else uses it now.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_copier(routines: *mut Routines, bytes: usize, aligned: c_int) -> *const c_void {
    // SAFETY: the caller's promise.
    routine(unsafe { &mut *routines }.copying(bytes, aligned != 0))
}

/// # Safety
/// As `smem_copier`; so many bytes of text can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn smem_comparer(routines: *mut Routines, text: *const u8, bytes: usize) -> *const c_void {
    let text = if bytes == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts(text, bytes) }
    };
    // SAFETY: the caller's promise.
    routine(unsafe { &mut *routines }.comparing(text))
}
