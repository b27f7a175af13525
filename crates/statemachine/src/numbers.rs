//! Numbers for what has been seen: equal keys get the same one.

use alloc::vec;
use alloc::vec::Vec;

/// A key: what tells one thing from others, as numbers.
pub(crate) type Key = [u32; 5];

/// Keys in the order of their numbers, and a hash table with open addressing over them.
pub(crate) struct Numbers {
    keys: Vec<Key>,
    /// Numbers plus 1; 0: free.
    slots: Vec<u32>,
}

const SLOTS: usize = 256;

impl Numbers {
    pub fn new() -> Numbers {
        Numbers { keys: Vec::new(), slots: vec![0; SLOTS] }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of a key; a new one counts on from 0.
    pub fn of(&mut self, key: Key) -> u32 {
        if 2 * self.keys.len() >= self.slots.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            for number in 0..self.keys.len() {
                let slot = self.slot(&self.keys[number]);
                self.slots[slot] = number as u32 + 1;
            }
        }
        let slot = self.slot(&key);
        if self.slots[slot] == 0 {
            self.keys.push(key);
            self.slots[slot] = self.keys.len() as u32;
        }
        self.slots[slot] - 1
    }

    /// Where the key is, or may be put.
    fn slot(&self, key: &Key) -> usize {
        // Knuth's multiplicative hash; the upper bits are the good ones.
        let hash = key.iter().fold(0u32, |hash, part| (hash.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b1));
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 12) as usize & mask;
        while let number @ 1.. = self.slots[slot] {
            if self.keys[number as usize - 1] == *key {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }
}
