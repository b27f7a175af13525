//! Memory for streams: the low 2 GB, code apart from data, never both writable and executable.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::ptr::NonNull;

use ground::Errno;
use libc::{MAP_32BIT, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, c_int};

/// Where the three standard streams are, one after the other. The header has the same number.
pub const STANDARD: usize = 0x5E00_0000;
/// Bytes of a region.
pub const REGION_BYTES: usize = 0x13000;
pub const CODE_BYTES: usize = 0x1000;
const STREAM: usize = 0x1000;
/// Offset of the end of the buffer.
const END: usize = 0x12000;
/// Room before the buffer for bytes that are put back.
const PUT_BACK: usize = 16;
/// Most bytes that a stream buffers.
pub const BUFFER_BYTES_MAX: usize = END - 0x2000 - PUT_BACK;

/// One stream's memory. It is never unmapped: a closed stream's region waits for the next `open` (R4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region(usize);

impl Region {
    /// A fresh region in the low 2 GB.
    ///
    /// # Errors
    /// The system's, `ENOMEM` when there is no room.
    pub fn new() -> Result<Region, Errno> {
        map(0, MAP_32BIT).map(Region)
    }

    /// The region of standard stream `number`, 0 to 2.
    ///
    /// # Errors
    /// `EEXIST` when the program has something else there.
    pub fn standard(number: usize) -> Result<Region, Errno> {
        let wanted = Region::of_standard(number);
        let got = map(wanted.0, MAP_FIXED_NOREPLACE)?;
        if got == wanted.0 {
            return Ok(wanted);
        }
        // SAFETY: the mapping was made just now, elsewhere (a kernel without MAP_FIXED_NOREPLACE), and nobody knows it.
        unsafe { ground::unmap(got, REGION_BYTES) };
        Err(Errno(libc::EEXIST))
    }

    pub const fn of_standard(number: usize) -> Region {
        Region(STANDARD + number * 0x14000)
    }

    pub fn code(self) -> usize {
        self.0
    }

    pub fn stream<T>(self) -> NonNull<T> {
        NonNull::new((self.0 + STREAM) as *mut T).expect("regions are not at zero")
    }

    /// The end of the buffer.
    pub fn end(self) -> usize {
        self.0 + END
    }

    /// The region in which a stream lies.
    pub fn of_stream<T>(stream: NonNull<T>) -> Region {
        Region(stream.as_ptr() as usize - STREAM)
    }

    /// Replaces the code: writable while it is written, then executable. Nobody may be inside it.
    ///
    /// # Errors
    /// The system's, when it refuses memory that was written to be executed.
    pub fn publish(self, code: &[u8]) -> Result<(), Errno> {
        assert!(code.len() <= CODE_BYTES, "a stream's routines fit a page");
        protect(self.0, PROT_READ | PROT_WRITE)?;
        // SAFETY: 1. the page belongs to this region and is writable now. 2. The code fits it.
        unsafe {
            core::ptr::write_bytes(self.0 as *mut u8, 0xCC, CODE_BYTES);
            core::ptr::copy_nonoverlapping(code.as_ptr(), self.0 as *mut u8, code.len());
        }
        protect(self.0, PROT_READ | PROT_EXEC)
    }
}

fn map(address: usize, placing: c_int) -> Result<usize, Errno> {
    ground::map(address, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | placing, -1)
}

fn protect(page: usize, protection: c_int) -> Result<(), Errno> {
    // SAFETY: the page is the code page of a region; its users wait (see `publish`).
    unsafe { ground::protect(page, CODE_BYTES, protection) }
}
