//! Lines that grows while there is memory: what /proc shows may be long, and whoever reads it may be the one who took the memory.

use alloc::vec::Vec;
use core::fmt::{Arguments, Write};

use abi::Errno;
use machine::TryGrow;

/// What is written behind the end of memory is lost, and [`Lines::whole`] says so.
#[derive(Default)]
pub struct Lines {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Lines {
    /// Error: `ENOMEM` when a part of it is missing.
    pub fn whole(self) -> Result<Vec<u8>, Errno> {
        if self.is_cut { Err(Errno::ENOMEM) } else { Ok(self.bytes) }
    }

    pub fn push_bytes(&mut self, part: &[u8]) {
        self.is_cut = self.is_cut || self.bytes.try_extend_from_slice(part).is_err();
    }

    pub fn push_str(&mut self, part: &str) {
        self.push_bytes(part.as_bytes());
    }

    pub fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    /// Spaces, until it has so many bytes. They are counted beforehand: where memory is out, no length is ever reached.
    pub fn pad_to(&mut self, bytes: usize) {
        (self.len()..bytes).for_each(|_| self.push(' '));
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Write for Lines {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        self.push_str(part);
        if self.is_cut { Err(core::fmt::Error) } else { Ok(()) }
    }
}

/// As `format!`, in bytes.
pub fn written(arguments: Arguments<'_>) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    let _ = text.write_fmt(arguments);
    text.whole()
}

/// A copy of what is always the same.
pub fn constant(bytes: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(machine::try_to_vec(bytes)?)
}
