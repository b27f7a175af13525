//! Memory in the low 2 GB that is seen twice: through one view it is written, through the other executed. No view is ever
//! both.

use libc::{
    MAP_32BIT, MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MFD_CLOEXEC, PROT_EXEC, PROT_READ,
    PROT_WRITE, c_int, close, ftruncate, memfd_create, mmap, munmap,
};

/// The number of a system's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

impl Errno {
    /// That of the calling thread's last failed call.
    pub(crate) fn last() -> Errno {
        // SAFETY: the calling thread's errno.
        Errno(unsafe { *libc::__errno_location() })
    }
}

/// Two views of one memory.
#[derive(Debug)]
pub struct Twin {
    bytes: usize,
    write: usize,
    run: usize,
}

impl Twin {
    /// Zeroed memory of this size; pages that are never touched cost nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize) -> Result<Twin, Errno> {
        // SAFETY: the name is a C text.
        let file = unsafe { memfd_create(c"synthmem".as_ptr(), MFD_CLOEXEC) };
        if file < 0 {
            return Err(Errno::last());
        }
        let twin = Twin::of_file(file, bytes);
        // SAFETY: the file was opened above; the views keep its memory.
        unsafe { close(file) };
        twin
    }

    fn of_file(file: c_int, bytes: usize) -> Result<Twin, Errno> {
        // SAFETY: the file is ours.
        if unsafe { ftruncate(file, bytes as libc::off_t) } != 0 {
            return Err(Errno::last());
        }
        let write = map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file)?;
        match map(bytes, PROT_READ | PROT_EXEC, MAP_SHARED, file) {
            Ok(run) => Ok(Twin { bytes, write, run }),
            Err(error) => {
                unmap(write, bytes);
                Err(error)
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where offset 0 is executed.
    pub fn run(&self) -> usize {
        self.run
    }

    /// Stores through the view for writing. Code that is changed runs as it was, or as it is, until [`serialize`].
    ///
    /// # Panics
    /// When it does not fit.
    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.bytes && bytes.len() <= self.bytes - offset, "outside the region");
        // SAFETY: 1. the bounds are checked. 2. `&mut self`: nobody else writes, and readers use raw loads.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (self.write + offset) as *mut u8, bytes.len()) };
    }

    /// Stores one word; as [`Twin::store`].
    #[inline]
    pub fn store_u32(&mut self, offset: usize, value: u32) {
        assert!(offset + 4 <= self.bytes, "outside the region");
        // SAFETY: as in `store`; x86 stores words at any address.
        unsafe { ((self.write + offset) as *mut u32).write_unaligned(value) };
    }

    /// Loads one word.
    #[inline]
    pub fn load_u32(&self, offset: usize) -> u32 {
        assert!(offset + 4 <= self.bytes, "outside the region");
        // SAFETY: as in `store_u32`.
        unsafe { ((self.write + offset) as *const u32).read_unaligned() }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        unmap(self.write, self.bytes);
        unmap(self.run, self.bytes);
    }
}

/// Ordinary memory in the low 2 GB.
#[derive(Debug)]
pub(crate) struct Low {
    pub at: usize,
    pub bytes: usize,
}

impl Low {
    pub fn new(bytes: usize) -> Result<Low, Errno> {
        Ok(Low { at: map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)?, bytes })
    }
}

impl Drop for Low {
    fn drop(&mut self) {
        unmap(self.at, self.bytes);
    }
}

fn map(bytes: usize, protection: c_int, flags: c_int, file: c_int) -> Result<usize, Errno> {
    // SAFETY: without MAP_FIXED a new mapping touches no memory that anybody has.
    let got = unsafe { mmap(core::ptr::null_mut(), bytes, protection, flags | MAP_NORESERVE | MAP_32BIT, file, 0) };
    if got == MAP_FAILED { Err(Errno::last()) } else { Ok(got as usize) }
}

fn unmap(at: usize, bytes: usize) {
    // SAFETY: the owner is being dropped, or nobody knows the mapping yet.
    unsafe { munmap(at as *mut _, bytes) };
}

/// Makes the processor forget instructions that it fetched before they were changed. Needed because the change went through
/// another address than the one they run at (Intel SDM 3A, 9.1.3). `iretq` is the cheapest instruction that does it for a
/// program under a hypervisor, where `cpuid` traps.
#[inline]
pub fn serialize() {
    // SAFETY: returns to the next instruction with the same stack, flags and segments.
    unsafe {
        core::arch::asm!(
            "mov {stack}, rsp",
            "mov {word:e}, ss",
            "push {word}",
            "push {stack}",
            "pushfq",
            "mov {word:e}, cs",
            "push {word}",
            "lea {word}, [rip + 2f]",
            "push {word}",
            "iretq",
            "2:",
            stack = out(reg) _,
            word = out(reg) _,
        );
    }
}
