//! Shared kernel data under the big kernel lock.
#![allow(unsafe_code, reason = "the lock that makes a cell shareable is not visible to the compiler")]

use core::cell::{Ref, RefCell, RefMut};

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
