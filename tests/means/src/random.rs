//! Random numbers, the same everywhere.

/// xorshift64* (S. Vigna, *An experimental exploration of Marsaglia's xorshift generators*).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed; seeds may be near each other.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D);
        // The lowest bits are the weakest.
        word.rotate_right(32)
    }

    /// A number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// The same for places in a list.
    pub fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }
}
