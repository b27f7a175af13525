//! Mappings.

use libc::{MAP_FAILED, MAP_NORESERVE, PROT_READ, PROT_WRITE, c_int, mmap, mprotect, munmap};

use crate::Errno;

/// A fresh mapping whose pages cost nothing until they are touched. `flags` are `mmap`'s and must not have `MAP_FIXED`;
/// `file` is -1 or a descriptor. Its address.
///
/// # Errors
/// The system's.
pub fn map(address: usize, bytes: usize, protection: c_int, flags: c_int, file: c_int) -> Result<usize, Errno> {
    // SAFETY: without MAP_FIXED a new mapping touches no memory that anybody has.
    let got = unsafe { mmap(address as *mut _, bytes, protection, flags | MAP_NORESERVE, file, 0) };
    if got == MAP_FAILED { Err(Errno::last()) } else { Ok(got as usize) }
}

/// Gives a mapping back.
///
/// # Safety
/// The caller owns it, and nobody uses it any more.
pub unsafe fn unmap(at: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { munmap(at as *mut _, bytes) };
}

/// What pages held is forgotten; they read as zeros and cost nothing until they are touched. Says nothing when that fails, and
/// leaves errno alone.
///
/// # Safety
/// They are private anonymous memory of the caller's, and nobody needs what they hold.
pub unsafe fn discard(at: usize, bytes: usize) {
    let before = Errno::last();
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) };
    before.set();
}

/// Changes what may be done with pages.
///
/// # Safety
/// The caller owns them, and nobody is using them otherwise.
///
/// # Errors
/// The system's.
pub unsafe fn protect(at: usize, bytes: usize, protection: c_int) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    match unsafe { mprotect(at as *mut _, bytes, protection) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Memory that is mapped as long as this lives.
#[derive(Debug)]
pub struct Mapping {
    at: usize,
    bytes: usize,
}

impl Mapping {
    /// As [`map`].
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize, protection: c_int, flags: c_int, file: c_int) -> Result<Mapping, Errno> {
        Ok(Mapping { at: map(0, bytes, protection, flags, file)?, bytes })
    }

    /// Zeroed memory to read and write.
    ///
    /// # Errors
    /// The system's.
    pub fn zeroed(bytes: usize) -> Result<Mapping, Errno> {
        Mapping::new(bytes, PROT_READ | PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { unmap(self.at, self.bytes) };
    }
}
