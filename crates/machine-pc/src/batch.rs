//! Telling of many things with few calls.

/// So many are told together.
const BATCH: usize = 32;

pub(crate) struct Batch<T> {
    items: [T; BATCH],
    used: usize,
}

impl<T: Copy> Batch<T> {
    #[inline(always)]
    pub fn new(nothing: T) -> Batch<T> {
        Batch { items: [nothing; BATCH], used: 0 }
    }

    /// Adds one; `tell` gets all of a full batch.
    #[inline(always)]
    pub fn push(&mut self, item: T, tell: &mut impl FnMut(&[T])) {
        self.items[self.used] = item;
        self.used += 1;
        if self.used == BATCH {
            self.used = 0;
            tell(&self.items);
        }
    }

    /// What was added since the last full batch.
    pub fn rest(&self) -> &[T] {
        &self.items[..self.used]
    }
}
