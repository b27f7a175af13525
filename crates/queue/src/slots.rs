//! Places for items: memory that is filled and emptied by index.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;

use crate::sync::UnsafeCell;

/// A power of two of places. Which of them hold items is known to the queue alone.
pub(crate) struct Slots<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

impl<T> Slots<T> {
    /// `capacity` places, rounded up to a power of two, at least `least` (itself a power of two).
    ///
    /// # Panics
    /// When the capacity is beyond 2^32 or there is no memory.
    pub(crate) fn new(capacity: usize, least: usize) -> Slots<T> {
        assert!(capacity <= 1 << 32, "a queue of {capacity} places");
        let capacity = capacity.max(least).next_power_of_two();
        let places: Vec<_> = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Slots { places: places.into_boxed_slice() }
    }

    #[inline(always)]
    pub(crate) fn capacity(&self) -> u64 {
        self.places.len() as u64
    }

    /// The place of the item with this index.
    #[inline(always)]
    pub(crate) fn place(&self, index: u64) -> usize {
        index as usize & (self.places.len() - 1)
    }

    /// Fills the place of `index`.
    ///
    /// # Safety
    /// 1. Until it is published, the place belongs to the caller: no other thread reads or writes it now.
    /// 2. It holds no item (an item in it would be forgotten, not dropped).
    #[inline(always)]
    pub(crate) unsafe fn fill(&self, index: u64, item: T) {
        self.places[self.place(index)].with_mut(|place| {
            // SAFETY: 1. `place` comes from a cell, so it is aligned and valid. 2. Nobody else uses it: the caller's (1).
            unsafe { place.write(MaybeUninit::new(item)) }
        });
    }

    /// Takes the item out of the place of `index`.
    ///
    /// # Safety
    /// 1. The place holds an item, and its writing happened before this call.
    /// 2. No other thread takes the same item, and none fills the place before this call's end happened.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, index: u64) -> T {
        self.places[self.place(index)].with(|place| {
            // SAFETY: 1. The cell's pointer is valid for reading, and nobody writes: the caller's (2).
            let item = unsafe { place.read() };
            // SAFETY: 1. The place was filled: the caller's (1). 2. It is read once: the caller's (2).
            unsafe { item.assume_init() }
        })
    }
}

// SAFETY: 1. All access is through `fill` and `take`, whose callers see to it that one thread at a time has a place.
// 2. Items move from thread to thread, never are shared, so `T: Send` is enough.
unsafe impl<T: Send> Sync for Slots<T> {}
// SAFETY: 1. As above: the items go with the slots.
unsafe impl<T: Send> Send for Slots<T> {}
