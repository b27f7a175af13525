//! SP-SC (S-38, figure 1 of the paper): one producer, one consumer, no compare-and-swap.
//!
//! Code isolation (S-46): `head` has one writer, the producer, and `tail` has one, the consumer. Each end remembers its
//! own index in private and what it last saw of the other's: only a queue that looks full or empty makes it look again.

use crate::ends::{Full, ends};
use crate::slots::Slots;
use crate::sync::{Arc, AtomicU64, Padded, order};

struct Shared<T> {
    slots: Slots<T>,
    /// One past the newest item. Written by the producer.
    head: Padded<AtomicU64>,
    /// The oldest item. Written by the consumer.
    tail: Padded<AtomicU64>,
}

/// The end items are put into. Invariant: `head` is `shared.head`; `tail_seen <= shared.tail`.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    head: u64,
    tail_seen: u64,
}

/// The end items are taken from. Invariant: `tail` is `shared.tail`; `head_seen <= shared.head`.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    tail: u64,
    head_seen: u64,
}

/// A queue for `capacity` items (rounded up to a power of two), as its two ends.
pub fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let index = || Padded(AtomicU64::new(0));
    let shared = Arc::new(Shared { slots: Slots::new(capacity, 1), head: index(), tail: index() });
    (Producer { shared: shared.clone(), head: 0, tail_seen: 0 }, Consumer { shared, tail: 0, head_seen: 0 })
}

impl<T> Producer<T> {
    /// Qput: inserts `item`, or gives it back when the queue is full.
    #[inline]
    pub fn put(&mut self, item: T) -> Result<(), Full<T>> {
        let shared = &*self.shared;
        if self.head - self.tail_seen == shared.slots.capacity() {
            // Acquire: the consumer's Release of `tail` in `get`. What it took is out of its place.
            self.tail_seen = shared.tail.0.load(order!("spsc.put.tail", Acquire));
            if self.head - self.tail_seen == shared.slots.capacity() {
                return Err(Full(item));
            }
        }
        // SAFETY: 1. `head - tail < capacity`, and the consumer touches only `tail..head`. 2. The place was emptied, by
        // the acquired `tail`. There is one producer, for `pair` makes one and `put` needs it exclusively.
        unsafe { shared.slots.fill(self.head, item) };
        self.head += 1;
        // Release: the consumer's Acquire in `get`. The item is in its place before it can be seen.
        shared.head.0.store(self.head, order!("spsc.put.head", Release));
        Ok(())
    }

    /// Puts as many of `items` as there is room for, visible together, and returns their number.
    pub fn put_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy,
    {
        let count = self.room().min(items.len());
        for (index, item) in (self.head..).zip(&items[..count]) {
            // SAFETY: 1. and 2. as in `put`: `room` says that these places are ours and empty.
            unsafe { self.shared.slots.fill(index, *item) };
        }
        self.head += count as u64;
        // Release: the consumer's Acquire in `get` and `len`.
        self.shared.head.0.store(self.head, order!("spsc.put_slice.head", Release));
        count
    }

    /// Items that can be put now; the consumer may make it more.
    pub fn room(&mut self) -> usize {
        self.tail_seen = self.shared.tail.0.load(order!("spsc.room.tail", Acquire));
        (self.shared.slots.capacity() - (self.head - self.tail_seen)) as usize
    }
}

impl<T> Consumer<T> {
    /// Qget: takes the oldest item, if there is one.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        let shared = &*self.shared;
        if self.tail == self.head_seen {
            // Acquire: the producer's Release of `head` in `put`.
            self.head_seen = shared.head.0.load(order!("spsc.get.head", Acquire));
            if self.tail == self.head_seen {
                return None;
            }
        }
        // SAFETY: 1. `tail < head`, and the acquired `head` says the place is filled. 2. There is one consumer, and the
        // producer fills the place again only after `tail` has been released below.
        let item = unsafe { shared.slots.take(self.tail) };
        self.tail += 1;
        // Release: the producer's Acquire in `put`. The item is out of its place before that can be filled again.
        shared.tail.0.store(self.tail, order!("spsc.get.tail", Release));
        Some(item)
    }

    /// Copies the oldest items, at most `into.len()`, and leaves them in the queue; `skip` takes them out.
    pub fn peek(&mut self, into: &mut [T]) -> usize
    where
        T: Copy,
    {
        let count = self.len().min(into.len());
        for (index, item) in (self.tail..).zip(&mut into[..count]) {
            // SAFETY: 1. `len` acquired that these places are filled. 2. The item is `Copy`: taking it leaves it there, and
            // the producer does not touch the place before `tail` moves.
            *item = unsafe { self.shared.slots.take(index) };
        }
        count
    }

    /// Forgets the oldest items, at most `count`, and returns their number.
    pub fn skip(&mut self, count: usize) -> usize
    where
        T: Copy,
    {
        let count = self.len().min(count);
        self.tail += count as u64;
        // Release: the producer's Acquire in `put` and `room`.
        self.shared.tail.0.store(self.tail, order!("spsc.skip.tail", Release));
        count
    }

    /// Items that can be taken now; the producer may make it more.
    pub fn len(&mut self) -> usize {
        self.head_seen = self.shared.head.0.load(order!("spsc.len.head", Acquire));
        (self.head_seen - self.tail) as usize
    }

    /// Whether nothing can be taken now.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Relaxed: both ends are gone, and the last one's end was acquired by who drops this.
        let (head, tail) = (self.head.0.load(order!("-", Relaxed)), self.tail.0.load(order!("-", Relaxed)));
        for index in tail..head {
            // SAFETY: 1. `tail..head` are filled. 2. Nobody else is left to take them.
            drop(unsafe { self.slots.take(index) });
        }
    }
}

ends!(Producer, Consumer);
