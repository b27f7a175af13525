//! In place of the C library's `malloc`, by LD_PRELOAD or by linking: one pool for all threads.

use core::ffi::c_void;
use core::fmt::Write;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use ground::{Errno, say};
use libc::{c_char, c_int};

use crate::lock::{Held, Lock};
use crate::pool::{self, LARGE_BYTES, Pool};

/// What no request may exceed (C: differences of pointers must fit).
const REQUEST_BYTES_MAX: usize = isize::MAX as usize - (1 << 20);
const PAGE: usize = 4096;

struct State {
    pool: Option<Pool>,
    /// The system refused even a small one; all blocks are mappings then.
    refused: bool,
}

static STATE: Lock<State> = Lock::new(State { pool: None, refused: false });

/// The state with its pool; made by the first who asks, which is before `main`.
#[inline]
fn state() -> Held<'static, State> {
    let mut state = STATE.lock();
    if state.pool.is_none() && !state.refused {
        make_pool(&mut state);
    }
    state
}

#[cold]
fn make_pool(state: &mut State) {
    let before = Errno::last();
    state.pool = Pool::new().ok();
    state.refused = state.pool.is_none();
    before.set();
}

/// Runs before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = begin;

/// A forked child has the threads' memory but not the threads: nobody may be inside when it is copied.
extern "C" fn begin() {
    // SAFETY: these functions stay as long as the program.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    // SAFETY: the name is a C text, and nobody changes the environment before `main`.
    let report_to = unsafe { libc::getenv(c"SYNTHMALLOC_REPORT".as_ptr()) };
    if !report_to.is_null() {
        REPORT_TO.store(report_to, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { libc::atexit(report) };
    }
}

unsafe extern "C" fn before_fork() {
    STATE.begin_fork();
}

unsafe extern "C" fn after_fork() {
    STATE.end_fork();
}

/// The file that `report` appends to, a text of the environment.
static REPORT_TO: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

struct File(c_int);

impl Write for File {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // SAFETY: the text is readable.
        let written = unsafe { libc::write(self.0, text.as_ptr().cast(), text.len()) };
        if written == text.len() as isize { Ok(()) } else { Err(core::fmt::Error) }
    }
}

/// At the end of the program, when its streams may be closed.
extern "C" fn report() {
    let mut state = state();
    let Some((used, spread)) = state.pool.as_mut().map(Pool::fill) else { return };
    drop(state);
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: a C text of the environment.
    let file = unsafe { libc::open(REPORT_TO.load(Ordering::Relaxed), flags, 0o666) };
    let _ = writeln!(File(file), "synthmalloc: {used} bytes in use, in a heap of {spread}");
    // SAFETY: it was opened just now, or is -1.
    unsafe { libc::close(file) };
}

#[inline]
fn from_pool(bytes: usize) -> Option<NonNull<u8>> {
    if bytes < LARGE_BYTES { state().pool.as_mut()?.allocate(bytes) } else { None }
}

#[cold]
fn mapped(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    if bytes > REQUEST_BYTES_MAX || align > REQUEST_BYTES_MAX {
        return None;
    }
    pool::allocate_large(bytes, align)
}

#[inline]
fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    from_pool(bytes).or_else(|| mapped(bytes, 16))
}

fn allocate_aligned(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    if bytes >= LARGE_BYTES || align >= LARGE_BYTES {
        return mapped(bytes, align);
    }
    let given = state().pool.as_mut().and_then(|pool| pool.allocate_aligned(bytes, align));
    given.or_else(|| mapped(bytes, align))
}

#[inline]
fn answer(given: Option<NonNull<u8>>) -> *mut c_void {
    match given {
        Some(block) => block.as_ptr().cast(),
        None => {
            Errno(libc::ENOMEM).set();
            null_mut()
        }
    }
}

#[cold]
fn no_block() -> ! {
    say("error: synthmalloc: what is freed or resized was not allocated, or was freed before\n");
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

#[unsafe(no_mangle)]
extern "C" fn malloc(bytes: usize) -> *mut c_void {
    answer(allocate(bytes))
}

/// # Safety
/// `block` is null or came from one of these functions, and nobody uses it any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return };
    if let Some(pool) = &mut state().pool
        && pool.contains(block.as_ptr())
    {
        // SAFETY: the caller's promise.
        if !unsafe { pool.free(block) } {
            no_block();
        }
        return;
    }
    // SAFETY: the caller's promise.
    if !unsafe { pool::free_large(block) } {
        no_block();
    }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(bytes) else { return answer(None) };
    let Some(block) = from_pool(bytes) else {
        // Fresh mappings are zero already.
        return answer(mapped(bytes, 16));
    };
    // SAFETY: the block has so many bytes and is nobody else's.
    unsafe { block.write_bytes(0, bytes) };
    answer(Some(block))
}

/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else { return malloc(bytes) };
    if bytes == 0 {
        // SAFETY: the caller's promise.
        unsafe { free(block) };
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let resized = unsafe { resize(old, bytes) };
    if resized.is_some() {
        return answer(resized);
    }
    let Some(new) = allocate(bytes) else { return answer(None) };
    // SAFETY: the caller's promise.
    let held = unsafe { malloc_usable_size(block) };
    // SAFETY: both have so many bytes, and they are two blocks.
    unsafe { new.copy_from_nonoverlapping(old, held.min(bytes)) };
    // SAFETY: the caller's promise; it has the new block instead.
    unsafe { free(block) };
    answer(Some(new))
}

/// The block with another size, if that can be had without copying.
///
/// # Safety
/// As [`free`], for what is cut off.
unsafe fn resize(block: NonNull<u8>, bytes: usize) -> Option<NonNull<u8>> {
    let mut state = state();
    let Some(pool) = state.pool.as_mut().filter(|pool| pool.contains(block.as_ptr())) else {
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { pool::resize_large(block, bytes) };
    };
    // A large block comes back as a mapping, which is moved without copying next time.
    // SAFETY: the caller's promise.
    (bytes < LARGE_BYTES && unsafe { pool.resize(block, bytes) }).then_some(block)
}

/// # Safety
/// As [`free`], but it stays.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return 0 };
    let state = state();
    let bytes = match state.pool.as_ref().filter(|pool| pool.contains(block.as_ptr())) {
        Some(pool) => pool.usable_bytes(block),
        // SAFETY: the caller's promise.
        None => unsafe { pool::usable_large(block) },
    };
    bytes.unwrap_or_else(|| no_block())
}

#[unsafe(no_mangle)]
extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => answer(allocate_aligned(bytes, align)),
        None => answer(None),
    }
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    memalign(align, bytes)
}

/// # Safety
/// `at` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(at: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let Some(block) = allocate_aligned(bytes, align) else { return libc::ENOMEM };
    // SAFETY: the caller's promise.
    unsafe { at.write(block.as_ptr().cast()) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn valloc(bytes: usize) -> *mut c_void {
    memalign(PAGE, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(PAGE) {
        Some(bytes) => valloc(bytes),
        None => answer(None),
    }
}
