//! Shared kernel data under the big kernel lock.
#![allow(unsafe_code, reason = "the lock that makes a cell shareable is not visible to the compiler")]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Ref, RefCell, RefMut, UnsafeCell};

use crate::grow::{NoMemory, TryGrow};

/// Data that only slow paths touch. A slow path holds the big kernel lock (on one processor:
/// interrupts off), so a borrow can never meet another processor's; what it can meet is a borrow
/// of the same thread higher up its own stack, or one held across a sleep. Both are kernel bugs and
/// panic here, at the second borrow, instead of corrupting the data.
pub struct KernelCell<T>(RefCell<T>);

// SAFETY: 1. The machine runs slow paths one at a time, under the big kernel lock, and only slow
// paths reach cells. 2. Nothing in a cell is bound to the processor that made it. 3. Host tests give
// each test its own cells.
unsafe impl<T> Sync for KernelCell<T> {}
// SAFETY: as for Sync.
unsafe impl<T> Send for KernelCell<T> {}

impl<T> KernelCell<T> {
    pub const fn new(value: T) -> KernelCell<T> {
        KernelCell(RefCell::new(value))
    }

    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.0.borrow()
    }

    #[track_caller]
    pub fn borrow_mut(&self) -> RefMut<'_, T> {
        self.0.borrow_mut()
    }
}

impl<T: Copy> KernelCell<T> {
    pub fn get(&self) -> T {
        *self.0.borrow()
    }

    pub fn set(&self, value: T) {
        *self.0.borrow_mut() = value;
    }
}

impl<T: Default> Default for KernelCell<T> {
    fn default() -> KernelCell<T> {
        KernelCell::new(T::default())
    }
}

/// A table of counted references that is read far more often than changed. It hands out only clones, so that
/// no borrow has to be watched.
pub struct KernelSlots<T>(UnsafeCell<Vec<Option<Arc<T>>>>);

// SAFETY: as for `KernelCell`.
unsafe impl<T> Sync for KernelSlots<T> {}
// SAFETY: as for `KernelCell`.
unsafe impl<T> Send for KernelSlots<T> {}

impl<T> KernelSlots<T> {
    pub const fn new() -> KernelSlots<T> {
        KernelSlots(UnsafeCell::new(Vec::new()))
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Arc<T>> {
        // SAFETY: 1. Under the big kernel lock nobody else is in the table. 2. Cloning a counted reference calls
        // nothing that could come back here, and no reference into the table leaves this function.
        let slots = unsafe { &*self.0.get() };
        slots.get(index)?.clone()
    }

    /// Makes sure that there is a slot `index`.
    pub fn make_room(&self, index: usize) -> Result<(), NoMemory> {
        // SAFETY: as in `get`: growing neither drops a value nor comes back here.
        let slots = unsafe { &mut *self.0.get() };
        if index < slots.len() { Ok(()) } else { slots.try_resize(index + 1, None) }
    }

    /// Changes a slot, which must be there, and returns what was in it, for the caller to drop.
    pub fn set(&self, index: usize, value: Option<Arc<T>>) -> Option<Arc<T>> {
        // SAFETY: as in `get`: replacing neither drops a value nor comes back here.
        let slots = unsafe { &mut *self.0.get() };
        core::mem::replace(&mut slots[index], value)
    }
}

impl<T> Default for KernelSlots<T> {
    fn default() -> KernelSlots<T> {
        KernelSlots::new()
    }
}
