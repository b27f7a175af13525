//! Memory in the low 2 GB that is seen twice: through one view it is written, through the other executed. No view is ever
//! both.

use libc::{
    MAP_32BIT, MAP_SHARED, MFD_CLOEXEC, PROT_EXEC, PROT_READ, PROT_WRITE, c_int, close, ftruncate, memfd_create,
};

use crate::Errno;
use crate::memory::Mapping;

/// Two views of one memory.
#[derive(Debug)]
pub struct Twin {
    write: Mapping,
    run: Mapping,
}

impl Twin {
    /// Zeroed memory of this size; pages that are never touched cost nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize) -> Result<Twin, Errno> {
        // SAFETY: the name is a C text.
        let file = unsafe { memfd_create(c"synthesis".as_ptr(), MFD_CLOEXEC) };
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
        let view = |protection| Mapping::new(bytes, protection, MAP_SHARED | MAP_32BIT, file);
        Ok(Twin { write: view(PROT_READ | PROT_WRITE)?, run: view(PROT_READ | PROT_EXEC)? })
    }

    pub fn bytes(&self) -> usize {
        self.write.bytes()
    }

    /// Where offset 0 is executed.
    pub fn run(&self) -> usize {
        self.run.at()
    }

    /// Stores through the view for writing. Code that is changed runs as it was, or as it is, until [`serialize`].
    ///
    /// # Panics
    /// When it does not fit.
    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.bytes() && bytes.len() <= self.bytes() - offset, "outside the region");
        // SAFETY: 1. the bounds are checked. 2. `&mut self`: nobody else writes, and readers use raw loads.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (self.write.at() + offset) as *mut u8, bytes.len()) };
    }

    /// Stores one word; as [`Twin::store`].
    #[inline]
    pub fn store_u32(&mut self, offset: usize, value: u32) {
        assert!(offset + 4 <= self.bytes(), "outside the region");
        // SAFETY: as in `store`; x86 stores words at any address.
        unsafe { ((self.write.at() + offset) as *mut u32).write_unaligned(value) };
    }

    /// Loads one word.
    #[inline]
    pub fn load_u32(&self, offset: usize) -> u32 {
        assert!(offset + 4 <= self.bytes(), "outside the region");
        // SAFETY: as in `store_u32`.
        unsafe { ((self.write.at() + offset) as *const u32).read_unaligned() }
    }
}

/// Makes the processor forget instructions that it fetched before they were changed. Needed because the change went through
/// another address than the one they run at (Intel SDM 3A, 9.1.3). `iretq` would be cheaper under a hypervisor, where `cpuid`
/// traps, but QEMU before 9.1 does it with the kernel's privilege and cannot reach a program's stack.
#[inline]
pub fn serialize() {
    core::hint::black_box(core::arch::x86_64::__cpuid(0));
}
