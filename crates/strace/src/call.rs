//! One call under way: its registers, and careful reading of the program's memory.

use alloc::vec;
use alloc::vec::Vec;

use abi::Field;

/// Bytes of a page: reads of unknown length never cross one without need.
const PAGE_BYTES: u64 = 4096;

/// A call as it is printed.
pub struct Call<'a> {
    /// The six argument registers.
    pub arguments: [u64; 6],
    /// What the call returned; `None` before it has.
    pub result: Option<i64>,
    /// Fills a buffer from the program's memory, or says false.
    pub memory: &'a dyn Fn(u64, &mut [u8]) -> bool,
}

impl Call<'_> {
    /// The error the call returned, as a positive number.
    pub fn error(&self) -> Option<u16> {
        match self.result {
            Some(result @ -4095..=-1) => Some(result.unsigned_abs() as u16),
            _ => None,
        }
    }

    /// Whether the call has returned without error, so that what it writes is there.
    pub fn succeeded(&self) -> bool {
        self.result.is_some() && self.error().is_none()
    }

    /// Argument `index` as a 32-bit number.
    pub fn word(&self, index: usize) -> u32 {
        self.arguments[index] as u32
    }

    /// `count` bytes at `address`.
    pub fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        (address != 0 && (self.memory)(address, &mut bytes)).then_some(bytes)
    }

    /// A record at `address`.
    pub fn record<T: Field>(&self, address: u64) -> Option<T> {
        self.bytes(address, T::BYTES).map(|bytes| T::get(&bytes))
    }

    /// Element `index` of an array of records at `address`.
    pub fn element<T: Field>(&self, address: u64, index: u64) -> Option<T> {
        self.record(address.checked_add(index.checked_mul(T::BYTES as u64)?)?)
    }

    /// The string at `address` without its zero, and whether the zero was found within `limit` bytes.
    pub fn string(&self, address: u64, limit: usize) -> Option<(Vec<u8>, bool)> {
        let mut text = Vec::new();
        while text.len() < limit {
            let place = address.checked_add(text.len() as u64)?;
            let rest_of_page = (PAGE_BYTES - place % PAGE_BYTES) as usize;
            let piece = self.bytes(place, rest_of_page.min(limit - text.len()).min(256))?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Some((text, true));
            }
            text.extend_from_slice(&piece);
        }
        Some((text, false))
    }
}
