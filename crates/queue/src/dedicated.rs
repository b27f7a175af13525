//! Dedicated (S-36): both ends in one thread, so there is no synchronization code.
//!
//! The knowledge that only one thread uses the queue costs nothing to use and saves everything else: no atomics, no
//! flags, and the ends cannot leave the thread.

use alloc::rc::Rc;
use core::cell::RefCell;

use alloc::collections::VecDeque;

use crate::ends::{Full, ends};

/// The end items are put into. Cannot leave its thread.
pub struct Producer<T>(Rc<Items<T>>);

/// The end items are taken from. Cannot leave its thread.
pub struct Consumer<T>(Rc<Items<T>>);

struct Items<T> {
    items: RefCell<VecDeque<T>>,
    capacity: usize,
}

/// A queue for `capacity` items, as its two ends.
pub fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let items = Rc::new(Items { items: RefCell::new(VecDeque::with_capacity(capacity)), capacity });
    (Producer(items.clone()), Consumer(items))
}

impl<T> Producer<T> {
    /// Qput: inserts `item`, or gives it back when the queue is full.
    #[inline]
    pub fn put(&mut self, item: T) -> Result<(), Full<T>> {
        let mut items = self.0.items.borrow_mut();
        if items.len() == self.0.capacity {
            return Err(Full(item));
        }
        items.push_back(item);
        Ok(())
    }
}

impl<T> Consumer<T> {
    /// Qget: takes the oldest item, if there is one.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        self.0.items.borrow_mut().pop_front()
    }
}

ends!(Producer, Consumer);
