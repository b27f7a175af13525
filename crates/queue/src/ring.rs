//! A ring whose places carry sequence numbers, for queues with many producers or many consumers.
//!
//! ```text
//!   place's number == index              free for the item `index`
//!   place's number == index + 1          holds the item `index`
//!   place's number == index + capacity   emptied: free for the item one round later
//! ```
//!
//! The paper's MP-SC claims a place with a compare-and-swap on Q_head; the number says when the claimed place is filled
//! (SPEC: machines of today have no two-address compare-and-swap). A thread that stalls between the claim and the number
//! makes the others see "empty" or "full" at its place, never a wrong item.
//!
//! `head` and `tail` carry no data, only claims, so Relaxed is enough for them; all ordering is in the numbers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ends::Full;
use crate::slots::Slots;
use crate::sync::{AtomicU64, Ordering::Relaxed, Padded, order};

pub(crate) struct Ring<T> {
    slots: Slots<T>,
    numbers: Box<[AtomicU64]>,
    /// Index of the next item to be put.
    head: Padded<AtomicU64>,
    /// Index of the next item to be taken.
    tail: Padded<AtomicU64>,
}

/// How an end claims a place.
pub(crate) trait Claim {
    /// Makes `counter` go from `index` to the next. False: somebody else did.
    fn claim(counter: &AtomicU64, index: u64) -> bool;
}

/// The only thread at this end.
pub(crate) struct Alone;
/// One of many.
pub(crate) struct Among;

impl Claim for Alone {
    #[inline(always)]
    fn claim(counter: &AtomicU64, index: u64) -> bool {
        counter.store(index + 1, Relaxed);
        true
    }
}

impl Claim for Among {
    #[inline(always)]
    fn claim(counter: &AtomicU64, index: u64) -> bool {
        counter.compare_exchange_weak(index, index + 1, Relaxed, Relaxed).is_ok()
    }
}

impl<T> Ring<T> {
    /// A ring for `capacity` items, rounded up to a power of two; at least 2, because with one place "filled" and "free
    /// for the next round" would be the same number.
    pub(crate) fn new(capacity: usize) -> Ring<T> {
        let slots = Slots::new(capacity, 2);
        let numbers: Vec<_> = (0..slots.capacity()).map(AtomicU64::new).collect();
        let index = || Padded(AtomicU64::new(0));
        Ring { slots, numbers: numbers.into_boxed_slice(), head: index(), tail: index() }
    }

    /// Puts an item. `C` is `Alone` only if no other thread puts.
    #[inline]
    pub(crate) fn put<C: Claim>(&self, item: T) -> Result<(), Full<T>> {
        self.put_with::<C>(item, || ())
    }

    /// The same; the first try is disturbed by `between`, which comes between look and claim.
    #[inline]
    pub(crate) fn put_with<C: Claim>(&self, item: T, between: impl FnOnce()) -> Result<(), Full<T>> {
        let mut between = Some(between);
        let mut index = self.head.0.load(Relaxed);
        loop {
            let number = &self.numbers[self.slots.place(index)];
            // Acquire: the consumer's Release in `get`. The last round's item is out of its place.
            let seen = number.load(order!("ring.put.free", Acquire));
            if let Some(between) = between.take() {
                between();
            }
            if seen == index && C::claim(&self.head.0, index) {
                // SAFETY: 1. The claim made `index` ours: `head` never has the same value again. 2. The acquired number
                // says that the place is empty.
                unsafe { self.slots.fill(index, item) };
                // Release: the consumer's Acquire in `get`.
                number.store(index + 1, order!("ring.put.filled", Release));
                return Ok(());
            }
            if seen < index {
                return Err(Full(item));
            }
            index = self.head.0.load(Relaxed);
        }
    }

    /// Takes an item. `C` is `Alone` only if no other thread takes.
    #[inline]
    pub(crate) fn get<C: Claim>(&self) -> Option<T> {
        let mut index = self.tail.0.load(Relaxed);
        loop {
            let number = &self.numbers[self.slots.place(index)];
            // Acquire: the producer's Release in `put`. The item is in its place.
            let seen = number.load(order!("ring.get.filled", Acquire));
            if seen == index + 1 && C::claim(&self.tail.0, index) {
                // SAFETY: 1. The acquired number says that the place holds the item. 2. The claim made it ours, and the
                // place is filled again only after the number below.
                let item = unsafe { self.slots.take(index) };
                // Release: the producer's Acquire in `put`.
                number.store(index + self.slots.capacity(), order!("ring.get.free", Release));
                return Some(item);
            }
            if seen <= index {
                return None;
            }
            index = self.tail.0.load(Relaxed);
        }
    }

    /// Whether nobody has put an item that is not taken. A claimed place counts, filled or not.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.0.load(Relaxed) == self.tail.0.load(Relaxed)
    }

    /// Whether the oldest item can be taken now.
    pub(crate) fn is_ready(&self) -> bool {
        let index = self.tail.0.load(Relaxed);
        self.numbers[self.slots.place(index)].load(order!("ring.ready", Acquire)) == index + 1
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // All ends are gone, so every claimed place is filled and `get` finds all items.
        while self.get::<Alone>().is_some() {}
    }
}
