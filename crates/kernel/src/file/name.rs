//! Names as the kernel compares them: hashed strings stored backwards (S-100).
//!
//! Paths share their beginnings (`/usr/lib/…`) and differ at their ends, so a comparison that starts
//! at the end finds the difference in its first word.

/// The eight-byte words of a name, last word first. The first word in the name may overlap the one
/// behind it, so that no word is partial; a name below eight bytes is one word.
pub(super) struct WordsBackwards<'a> {
    bytes: &'a [u8],
    /// Bytes not yet delivered.
    left: usize,
}

pub(super) fn words_backwards(bytes: &[u8]) -> WordsBackwards<'_> {
    WordsBackwards { bytes, left: bytes.len() }
}

impl Iterator for WordsBackwards<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        if let Some(word) = self.bytes.get(..self.left).and_then(|rest| rest.last_chunk::<8>()) {
            self.left -= 8;
            return Some(u64::from_le_bytes(*word));
        }
        self.left = 0;
        match self.bytes.first_chunk::<8>() {
            Some(word) => Some(u64::from_le_bytes(*word)),
            None => Some(short_word(self.bytes)),
        }
    }
}

/// A name of one to seven bytes as a number. Names of equal length have equal numbers only if they
/// are equal.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)),
        _ => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Hash of a name, computed from its end. `seed` keeps equal names in different places apart.
#[inline]
pub(super) fn hash_backwards(seed: u64, bytes: &[u8]) -> u64 {
    // An odd constant near 2^64 / golden ratio spreads the bits; the rotation brings the well-mixed
    // high half back down before the next word.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = seed ^ bytes.len() as u64;
    for word in words_backwards(bytes) {
        hash = (hash ^ word).wrapping_mul(SPREAD).rotate_left(29);
    }
    hash ^ hash >> 32
}
