//! A sorted list that many threads insert into and read: one compare-and-swap at the place of insertion.
//!
//! Items leave with the list. That is what makes a plain compare-and-swap right: a node that was seen stays in its place.

use alloc::boxed::Box;
use core::ptr;

use crate::sync::{AtomicPtr, Ordering::Relaxed, order};

struct Node<T> {
    item: T,
    next: AtomicPtr<Node<T>>,
}

/// Items in ascending order; equal ones in order of insertion.
pub struct List<T> {
    first: AtomicPtr<Node<T>>,
}

// SAFETY: 1. Items are dropped by who drops the list, so they must be `Send`. 2. Pointers are to boxed nodes only.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: 1. Readers in many threads share the items, so they must be `Sync` too. 2. Links are atomics.
unsafe impl<T: Send + Sync> Sync for List<T> {}

impl<T: Ord> Default for List<T> {
    fn default() -> List<T> {
        List::new()
    }
}

impl<T: Ord> List<T> {
    /// An empty list.
    pub fn new() -> List<T> {
        List { first: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Inserts `item` behind those that are not greater.
    pub fn insert(&self, item: T) {
        let node = Box::into_raw(Box::new(Node { item, next: AtomicPtr::new(ptr::null_mut()) }));
        // SAFETY: 1. `node` comes from a box that lives as long as the list. 2. Its item is never written again.
        let new = unsafe { &*node };
        let mut link = &self.first;
        loop {
            // Acquire: the Release of who inserted the node.
            let next = link.load(order!("list.insert.next", Acquire));
            // SAFETY: 1. Not null, else skipped. 2. Nodes live as long as the list, and `Acquire` saw the node made.
            match unsafe { next.as_ref() } {
                Some(node) if node.item <= new.item => link = &node.next,
                _ => {
                    new.next.store(next, Relaxed);
                    // Release: the Acquire of who follows the link.
                    if link.compare_exchange(next, node, order!("list.insert.link", Release), Relaxed).is_ok() {
                        return;
                    }
                }
            }
        }
    }

    /// All items there are now, and those that come while one looks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut link = &self.first;
        core::iter::from_fn(move || {
            let next = link.load(order!("list.iter.next", Acquire));
            // SAFETY: 1. Nodes live as long as the list, which `self` borrows. 2. `Acquire` saw the node made.
            let node = unsafe { next.as_ref() }?;
            link = &node.next;
            Some(&node.item)
        })
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        let mut next = self.first.load(order!("list.drop", Acquire));
        while !next.is_null() {
            // SAFETY: 1. Every node came from a box. 2. Nobody else has the list any more, and each is freed once.
            let node = unsafe { Box::from_raw(next) };
            next = node.next.load(Relaxed);
        }
    }
}
