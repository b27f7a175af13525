//! MP-MC (S-41): many producers, many consumers.

use crate::ends::{Full, ends};
use crate::ring::{Among, Ring};
use crate::sync::Arc;

/// The end items are put into. Clone it for each thread.
pub struct Producer<T>(Arc<Ring<T>>);

/// The end items are taken from. Clone it for each thread.
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
}

impl<T> Consumer<T> {
    /// Qget: takes the oldest item, if one is ready.
    #[inline]
    pub fn get(&self) -> Option<T> {
        self.0.get::<Among>()
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Producer<T> {
        Producer(self.0.clone())
    }
}

impl<T> Clone for Consumer<T> {
    fn clone(&self) -> Consumer<T> {
        Consumer(self.0.clone())
    }
}

ends!(Producer, Consumer);
