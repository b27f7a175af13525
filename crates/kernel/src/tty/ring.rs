//! A ring of bytes of fixed capacity, addressed by indices that only grow.

use alloc::boxed::Box;
use machine::{KernelValue, try_filled};

/// There was no memory for a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// The indices of a ring, at a fixed address for synthesized code.
#[repr(C)]
#[derive(Default)]
pub(super) struct RingWords {
    /// One past the newest byte.
    pub head: KernelValue<u64>,
    /// The oldest byte.
    pub tail: KernelValue<u64>,
}

/// Bytes between `tail` (oldest) and `head` (one past the newest).
///
/// Both indices are monotonic: an index names a byte for ever, and its place in memory is the index
/// modulo the capacity. Invariant: `tail <= head <= tail + capacity`, capacity a power of two.
pub struct ByteRing {
    /// The ring, and bytes behind its end for code that finds out only there that it is one.
    bytes: Box<[u8]>,
    /// The capacity less one.
    mask: usize,
    words: Box<RingWords>,
}

impl ByteRing {
    /// An empty ring for `capacity` bytes, rounded up to a power of two. Nothing is allocated later.
    pub fn new(capacity: usize) -> Result<ByteRing, NoMemory> {
        ByteRing::with_overhang(capacity, 0)
    }

    /// As `new`; so many bytes may be stored beyond the end before `filled` says so.
    pub(super) fn with_overhang(capacity: usize, overhang: usize) -> Result<ByteRing, NoMemory> {
        let capacity = capacity.checked_next_power_of_two().ok_or(NoMemory)?;
        let all = capacity.checked_add(overhang).ok_or(NoMemory)?;
        let bytes = try_filled(0, all).map_err(|_| NoMemory)?;
        Ok(ByteRing { bytes: bytes.into_boxed_slice(), mask: capacity - 1, words: Box::default() })
    }

    /// Bytes the ring can hold.
    pub fn capacity(&self) -> usize {
        self.mask + 1
    }

    /// Bytes in the ring.
    pub fn len(&self) -> usize {
        (self.head() - self.tail()) as usize
    }

    /// Whether nothing is in the ring.
    pub fn is_empty(&self) -> bool {
        self.head() == self.tail()
    }

    /// Bytes that still fit.
    pub fn free(&self) -> usize {
        self.capacity() - self.len()
    }

    /// Index of the next byte to be put.
    pub fn head(&self) -> u64 {
        self.words.head.get()
    }

    /// Index of the next byte to be taken.
    pub fn tail(&self) -> u64 {
        self.words.tail.get()
    }

    pub(super) fn words(&self) -> &RingWords {
        &self.words
    }

    /// Address of the byte with index 0, for templates.
    pub(super) fn base(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }

    /// Addresses of the next byte to be put, and of the ring's end.
    pub(super) fn open_end(&self) -> (u64, u64) {
        (self.base() + self.place(self.head()) as u64, self.base() + self.capacity() as u64)
    }

    /// So many bytes, for which there is room, stand at the open end and in the overhang.
    pub(super) fn filled(&mut self, bytes: usize) {
        let end = self.place(self.head()) + bytes;
        if end > self.capacity() {
            self.bytes.copy_within(self.capacity()..end, 0);
        }
        self.words.head.set(self.head() + bytes as u64);
    }

    /// The byte at `index`. Outside `tail..head` it is a byte of the past.
    pub fn at(&self, index: u64) -> u8 {
        self.bytes[self.place(index)]
    }

    /// Puts one byte. False when the ring is full.
    #[must_use]
    pub fn put(&mut self, byte: u8) -> bool {
        if self.free() == 0 {
            return false;
        }
        let place = self.place(self.head());
        self.bytes[place] = byte;
        self.words.head.set(self.head() + 1);
        true
    }

    /// Puts as many of `bytes` as fit and returns their number.
    pub fn put_slice(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.free());
        let place = self.place(self.head());
        let first = count.min(self.capacity() - place);
        self.bytes[place..place + first].copy_from_slice(&bytes[..first]);
        self.bytes[..count - first].copy_from_slice(&bytes[first..count]);
        self.words.head.set(self.head() + count as u64);
        count
    }

    /// Takes the oldest byte.
    pub fn take(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        let byte = self.at(self.tail());
        self.words.tail.set(self.tail() + 1);
        Some(byte)
    }

    /// Moves up to `into.len()` of the oldest bytes out and returns their number.
    pub fn take_slice(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len());
        let place = self.place(self.tail());
        let first = count.min(self.capacity() - place);
        into[..first].copy_from_slice(&self.bytes[place..place + first]);
        into[first..count].copy_from_slice(&self.bytes[..count - first]);
        self.words.tail.set(self.tail() + count as u64);
        count
    }

    /// Forgets the oldest bytes up to `index` (clamped to the ring).
    pub fn drop_until(&mut self, index: u64) {
        self.words.tail.set(index.clamp(self.tail(), self.head()));
    }

    /// Forgets the newest bytes from `index` on (clamped to the ring).
    pub fn cut_from(&mut self, index: u64) {
        self.words.head.set(index.clamp(self.tail(), self.head()));
    }

    /// Forgets everything. Indices go on growing.
    pub fn clear(&mut self) {
        self.words.tail.set(self.head());
    }

    fn place(&self, index: u64) -> usize {
        index as usize & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_wrap_around_the_end() {
        let mut ring = ByteRing::new(8).unwrap();
        assert_eq!(ring.put_slice(b"abcdef"), 6);
        let mut out = [0; 4];
        assert_eq!(ring.take_slice(&mut out), 4);
        assert_eq!(ring.put_slice(b"ghijklm"), 6);
        assert_eq!(ring.free(), 0);
        assert!(!ring.put(b'x'));
        let mut all = [0; 16];
        assert_eq!(ring.take_slice(&mut all), 8);
        assert_eq!(&all[..8], b"efghijkl");
        assert_eq!(ring.take(), None);
    }

    #[test]
    fn cutting_and_dropping_stay_inside() {
        let mut ring = ByteRing::new(5).unwrap();
        assert_eq!(ring.capacity(), 8);
        ring.put_slice(b"abcd");
        ring.cut_from(3);
        ring.drop_until(1);
        assert_eq!((ring.at(ring.tail()), ring.len()), (b'b', 2));
        ring.cut_from(0);
        assert!(ring.is_empty());
        ring.drop_until(99);
        assert_eq!(ring.tail(), ring.head());
    }
}
