//! MP-SC with atomic insert of many items (S-42, figure 2 of the paper, corrected).
//!
//! A producer claims all its places with one compare-and-swap ("staking a claim"), fills them beside the others, and then
//! sets a flag per place, from the last to the first. The consumer goes by the flags alone, and since it stands at the
//! first one, a batch becomes visible as a whole.
//!
//! Corrections to the printed figure: its loop leaves without a claim when space is short, and its indices wrap (ABA).
//! Here indices are 64 bits and only grow. The consumer copies, clears the flag, and only then frees the place: a flag
//! cleared after that could be the next producer's.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ends::{Full, ends};
use crate::slots::Slots;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering::Relaxed, Padded, mutant, order};

struct Shared<T> {
    slots: Slots<T>,
    /// A place holds an item that may be taken.
    flags: Box<[AtomicBool]>,
    /// One past the newest claim. Written by all producers.
    head: Padded<AtomicU64>,
    /// The oldest item. Written by the consumer.
    tail: Padded<AtomicU64>,
}

/// The end items are put into. Clone it for each thread.
pub struct Producer<T>(Arc<Shared<T>>);

/// The end items are taken from. There is one. Invariant: `tail` is `shared.tail`.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    tail: u64,
}

/// A queue for `capacity` items (rounded up to a power of two), as its two ends.
pub fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let slots = Slots::new(capacity, 1);
    let flags: Vec<_> = (0..slots.capacity()).map(|_| AtomicBool::new(false)).collect();
    let index = || Padded(AtomicU64::new(0));
    let shared = Arc::new(Shared { slots, flags: flags.into_boxed_slice(), head: index(), tail: index() });
    (Producer(shared.clone()), Consumer { shared, tail: 0 })
}

impl<T> Producer<T> {
    /// Inserts one item.
    #[inline]
    pub fn put(&self, item: T) -> Result<(), Full<T>> {
        self.put_all([item]).map_err(|Full([item])| Full(item))
    }

    /// Inserts all items with none of another producer between them, visible together; or gives them back when they do
    /// not all fit. More items than the capacity never fit.
    pub fn put_all<const N: usize>(&self, items: [T; N]) -> Result<(), Full<[T; N]>> {
        match self.claim(N as u64) {
            None => Err(Full(items)),
            Some(first) => {
                self.fill(first, items);
                Ok(())
            }
        }
    }

    /// Claims `count` places in a row and returns the first one's index.
    #[inline(always)]
    fn claim(&self, count: u64) -> Option<u64> {
        let shared = &*self.0;
        let capacity = shared.slots.capacity();
        let mut head = shared.head.0.load(Relaxed);
        loop {
            // Acquire: the consumer's Release of `tail` in `get`: items are out, flags are cleared.
            let tail = shared.tail.0.load(order!("multi.put.tail", Acquire));
            let used = head.wrapping_sub(tail);
            let is_stale = used > capacity;
            if !is_stale && capacity - used < count {
                return None;
            }
            if !is_stale && shared.head.0.compare_exchange_weak(head, head + count, Relaxed, Relaxed).is_ok() {
                return Some(head);
            }
            head = shared.head.0.load(Relaxed);
        }
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, first: u64, items: [T; N]) {
        let shared = &*self.0;
        for (index, item) in (first..).zip(items) {
            // SAFETY: 1. The claim made the places `first..first + N` ours. 2. They are empty, by the `tail` that the claim
            // acquired.
            unsafe { shared.slots.fill(index, item) };
        }
        for step in 0..N as u64 {
            let index = if mutant!("multi.put.forward") { first + step } else { first + (N as u64 - 1 - step) };
            // Release: the consumer's Acquire in `get`, which looks at the first flag first.
            shared.flags[shared.slots.place(index)].store(true, order!("multi.put.flag", Release));
        }
    }
}

impl<T> Consumer<T> {
    /// Qget: takes the oldest item, if it is filled.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        let shared = &*self.shared;
        let flag = &shared.flags[shared.slots.place(self.tail)];
        // Acquire: the producer's Release in `fill`.
        if !flag.load(order!("multi.get.flag", Acquire)) {
            return None;
        }
        // SAFETY: 1. The acquired flag says that the place holds an item. 2. There is one consumer, and the place is
        // claimed again only after `tail` has been released below.
        let item = unsafe { shared.slots.take(self.tail) };
        if !mutant!("multi.get.late") {
            flag.store(false, Relaxed);
        }
        self.tail += 1;
        // Release: the producers' Acquire in `claim`.
        shared.tail.0.store(self.tail, order!("multi.get.tail", Release));
        if mutant!("multi.get.late") {
            flag.store(false, Relaxed);
        }
        Some(item)
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Producer<T> {
        Producer(self.0.clone())
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // All ends are gone, so every claimed place is filled.
        for index in self.tail.0.load(Relaxed)..self.head.0.load(Relaxed) {
            // SAFETY: 1. `tail..head` are filled. 2. Nobody else is left to take them.
            drop(unsafe { self.slots.take(index) });
        }
    }
}

ends!(Producer, Consumer);
