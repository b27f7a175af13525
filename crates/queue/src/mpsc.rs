//! MP-SC (S-39): many producers, one consumer. One compare-and-swap more than SP-SC, in `put`.

use crate::ends::{Full, ends};
use crate::ring::{Alone, Among, Ring};
use crate::sync::Arc;

/// The end items are put into. Clone it for each thread.
pub struct Producer<T>(Arc<Ring<T>>);

/// The end items are taken from. There is one: it cannot be cloned.
pub struct Consumer<T>(Arc<Ring<T>>);

/// A queue for `capacity` items (rounded up to a power of two, at least 2), as its two ends.
pub fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let ring = Arc::new(Ring::new(capacity));
    (Producer(ring.clone()), Consumer(ring))
}

impl<T> Producer<T> {
    /// Qput: inserts `item`, or gives it back when the queue is full.
    #[inline]
    pub fn put(&self, item: T) -> Result<(), Full<T>> {
        self.0.put::<Among>(item)
    }

    /// The same, disturbed: `between` is done after the first look at the queue and before the place there is claimed, as an
    /// interrupt may be. For those who measure or test the second try.
    #[inline]
    pub fn put_with(&self, item: T, between: impl FnOnce()) -> Result<(), Full<T>> {
        self.0.put_with::<Among>(item, between)
    }
}

impl<T> Consumer<T> {
    /// Qget: takes the oldest item, if one is ready.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        self.0.get::<Alone>()
    }

    /// Whether nobody has put an item, or begun to, that is not taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Producer<T> {
        Producer(self.0.clone())
    }
}

ends!(Producer, Consumer);
