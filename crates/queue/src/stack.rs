//! A stack that many threads push on and whose items are taken all at once: the form of the papers' pending signals.
//!
//! Taking all has no ABA: nobody compares a node that could have been freed and made again.

use alloc::boxed::Box;
use core::ptr;

use crate::sync::{AtomicPtr, Ordering::Relaxed, UnsafeCell, order};

struct Node<T> {
    next: *mut Node<T>,
    item: UnsafeCell<T>,
}

/// Items, the newest first.
pub struct Stack<T> {
    top: AtomicPtr<Node<T>>,
}

// SAFETY: 1. Items are moved from the thread that pushes to the one that takes, never shared.
unsafe impl<T: Send> Send for Stack<T> {}
// SAFETY: 1. As above: `push` and `take_all` give each node one owner at a time.
unsafe impl<T: Send> Sync for Stack<T> {}

impl<T> Default for Stack<T> {
    fn default() -> Stack<T> {
        Stack::new()
    }
}

impl<T> Stack<T> {
    /// An empty stack.
    pub fn new() -> Stack<T> {
        Stack { top: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts `item` on top.
    pub fn push(&self, item: T) {
        let node = Box::into_raw(Box::new(Node { next: ptr::null_mut(), item: UnsafeCell::new(item) }));
        let mut top = self.top.load(Relaxed);
        loop {
            // SAFETY: 1. `node` comes from a box. 2. Nobody else knows it before the exchange succeeds.
            unsafe { (*node).next = top };
            // Release: the Acquire in `take_all`.
            match self.top.compare_exchange_weak(top, node, order!("stack.push", Release), Relaxed) {
                Ok(_) => return,
                Err(newer) => top = newer,
            }
        }
    }

    /// Takes all items, the newest first.
    pub fn take_all(&self) -> Taken<T> {
        // Acquire: the Release of every `push` on the way (exchanges continue each other's release).
        Taken { next: self.top.swap(ptr::null_mut(), order!("stack.take", Acquire)) }
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// What `take_all` took. What is not looked at is dropped.
pub struct Taken<T> {
    next: *mut Node<T>,
}

impl<T> Iterator for Taken<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: 1. The node came from a box in `push`. 2. `take_all` made the chain ours alone, and each is freed once.
        let node = unsafe { Box::from_raw(self.next) };
        self.next = node.next;
        // For the model checker: from here on nobody else may have access.
        node.item.with_mut(|_| ());
        Some(node.item.into_inner())
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
