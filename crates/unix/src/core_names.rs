//! How core files are called: the pattern in /proc/sys/kernel.

use alloc::vec::Vec;

use abi::Errno;
use machine::{KernelCell, KernelValue, try_to_vec};

/// Most bytes of a pattern (Linux `CORENAME_MAX_SIZE`), with the NUL.
const PATTERN_BYTES: usize = 128;

/// `/proc/sys/kernel/core_pattern` and `core_uses_pid`.
pub struct CoreNames {
    pattern: KernelCell<[u8; PATTERN_BYTES]>,
    /// The process's number stands behind a name in which it is not.
    pub uses_pid: KernelValue<bool>,
}

impl CoreNames {
    pub const fn new() -> CoreNames {
        let mut pattern = [0; PATTERN_BYTES];
        (pattern[0], pattern[1], pattern[2], pattern[3]) = (b'c', b'o', b'r', b'e');
        CoreNames { pattern: KernelCell::new(pattern), uses_pid: KernelValue::new(false) }
    }

    pub fn pattern(&self) -> Result<Vec<u8>, Errno> {
        let pattern = self.pattern.borrow();
        let bytes = pattern.iter().position(|byte| *byte == 0).unwrap_or(PATTERN_BYTES);
        Ok(try_to_vec(&pattern[..bytes])?)
    }

    /// Takes at most 127 bytes. Error: `EINVAL` for a program that would be started with the core file (`|program`): none is.
    pub fn set_pattern(&self, text: &[u8]) -> Result<(), Errno> {
        if text.first() == Some(&b'|') {
            return Err(Errno::EINVAL);
        }
        let bytes = text.len().min(PATTERN_BYTES - 1);
        let mut pattern = self.pattern.borrow_mut();
        *pattern = [0; PATTERN_BYTES];
        pattern[..bytes].copy_from_slice(&text[..bytes]);
        Ok(())
    }
}
