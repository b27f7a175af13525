//! Kernel data that several threads share. Each cell says of its content only what the lock cannot give: that it may change threads.
//!
//! In debug builds each looks whether the lock is held by the processor that touches it (`lock.rs`).
#![allow(unsafe_code, reason = "the lock that makes a cell shareable is not visible to the compiler")]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, Ref, RefCell, RefMut, UnsafeCell};
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::grow::{NoMemory, TryGrow};
use crate::lock::assert_held;

/// Data that only slow paths touch. A slow path holds the kernel's lock ([`crate::Held`]), so a borrow can never meet another
/// processor's; what it can meet is a borrow of the same thread higher up its own stack, or one held across a sleep. Both are
/// kernel bugs and panic here, at the second borrow, instead of corrupting the data. What is only borrowed by [`KernelCell::with`]
/// cannot be held across a sleep: that does not compile.
///
/// The lock lets one thread in after the other, so what is inside must bear to be used by one after the other (`Send`), and
/// nothing more; what is bound to one thread is refused:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelCell::new(std::rc::Rc::new(1)));
/// ```
/// ```
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelCell::new(std::sync::Arc::new(1)));
/// ```
pub struct KernelCell<T>(RefCell<T>);

// SAFETY: 1. Slow paths run one at a time, each under the kernel's lock (`Entered` has the conditions), and only slow
// paths reach cells. 2. Nothing in a cell is bound to the processor that made it. 3. Host tests give
// each test its own cells.
unsafe impl<T: Send> Sync for KernelCell<T> {}

impl<T> KernelCell<T> {
    pub const fn new(value: T) -> KernelCell<T> {
        KernelCell(RefCell::new(value))
    }

    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        assert_held();
        self.0.borrow()
    }

    #[track_caller]
    pub fn borrow_mut(&self) -> RefMut<'_, T> {
        assert_held();
        self.0.borrow_mut()
    }

    /// Borrows for as long as `act` takes, which cannot leave for another thread: what it would need for that
    /// ([`crate::Held`]) is bound to its thread, and `act` is not.
    ///
    /// ```
    /// fn count(cell: &machine::KernelCell<u32>) {
    ///     cell.with(|count| *count += 1);
    /// }
    /// ```
    /// ```compile_fail,E0277
    /// fn sleep(held: machine::Held<'_>) {}
    ///
    /// fn count(cell: &machine::KernelCell<u32>, held: machine::Held<'_>) {
    ///     cell.with(|count| {
    ///         sleep(held);
    ///         *count += 1;
    ///     });
    /// }
    /// ```
    #[track_caller]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R + Send) -> R {
        act(&mut self.borrow_mut())
    }
}

impl<T> KernelCell<T> {
    /// Where what is inside lies, for routines that have its address: they run where nobody borrows.
    pub fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Copy> KernelCell<T> {
    #[track_caller]
    pub fn get(&self) -> T {
        *self.borrow()
    }

    #[track_caller]
    pub fn set(&self, value: T) {
        *self.borrow_mut() = value;
    }
}

impl<T: Default> Default for KernelCell<T> {
    fn default() -> KernelCell<T> {
        KernelCell::new(T::default())
    }
}

/// A value that is copied or exchanged whole and never borrowed, under the same rule as [`KernelCell`]: a plain `Cell`, and as cheap.
///
/// ```compile_fail,E0277
/// // What belongs to one thread does not come to another with it.
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelValue::new(None::<std::rc::Rc<u32>>));
/// ```
/// ```
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelValue::new(None::<std::sync::Arc<u32>>));
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct KernelValue<T>(Cell<T>);

// SAFETY: as for `KernelCell`.
unsafe impl<T: Send> Sync for KernelValue<T> {}

impl<T> KernelValue<T> {
    pub const fn new(value: T) -> KernelValue<T> {
        KernelValue(Cell::new(value))
    }
}

impl<T> Deref for KernelValue<T> {
    type Target = Cell<T>;

    #[inline(always)]
    #[track_caller]
    fn deref(&self) -> &Cell<T> {
        assert_held();
        &self.0
    }
}

impl<T> DerefMut for KernelValue<T> {
    fn deref_mut(&mut self) -> &mut Cell<T> {
        &mut self.0
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for KernelValue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get().fmt(out)
    }
}

impl<T: Copy> Clone for KernelValue<T> {
    fn clone(&self) -> KernelValue<T> {
        KernelValue(self.0.clone())
    }
}

/// Something that changes through shared references by cells of its own, which know no lock: only who runs under the lock comes to
/// it here.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelOwn::new(std::rc::Rc::new(1)));
/// ```
/// ```
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelOwn::new(core::cell::Cell::new(1)));
/// ```
pub struct KernelOwn<T>(T);

// SAFETY: as for `KernelCell`.
unsafe impl<T: Send> Sync for KernelOwn<T> {}

impl<T> KernelOwn<T> {
    pub const fn new(value: T) -> KernelOwn<T> {
        KernelOwn(value)
    }
}

impl<T> Deref for KernelOwn<T> {
    type Target = T;

    #[inline(always)]
    #[track_caller]
    fn deref(&self) -> &T {
        assert_held();
        &self.0
    }
}

/// A value that is made once and then only read, by several threads at a time.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(machine::KernelOnce::<core::cell::Cell<u32>>::new());
/// ```
pub struct KernelOnce<T>(OnceCell<T>);

// SAFETY: as for `KernelCell`; what was made is shown by reference, so it must bear that.
unsafe impl<T: Send + Sync> Sync for KernelOnce<T> {}

impl<T> KernelOnce<T> {
    pub const fn new() -> KernelOnce<T> {
        KernelOnce(OnceCell::new())
    }
}

impl<T> Default for KernelOnce<T> {
    fn default() -> KernelOnce<T> {
        KernelOnce::new()
    }
}

impl<T> From<T> for KernelOnce<T> {
    fn from(value: T) -> KernelOnce<T> {
        KernelOnce(OnceCell::from(value))
    }
}

impl<T> Deref for KernelOnce<T> {
    type Target = OnceCell<T>;

    #[inline(always)]
    #[track_caller]
    fn deref(&self) -> &OnceCell<T> {
        assert_held();
        &self.0
    }
}

impl<T> DerefMut for KernelOnce<T> {
    fn deref_mut(&mut self) -> &mut OnceCell<T> {
        &mut self.0
    }
}

/// A table of counted references that is read far more often than changed. It hands out only clones, so that
/// no borrow has to be watched.
pub struct KernelSlots<T>(UnsafeCell<Vec<Option<Arc<T>>>>);

// SAFETY: as for `KernelCell`.
unsafe impl<T: Send + Sync> Sync for KernelSlots<T> {}

impl<T> KernelSlots<T> {
    pub const fn new() -> KernelSlots<T> {
        KernelSlots(UnsafeCell::new(Vec::new()))
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Arc<T>> {
        assert_held();
        // SAFETY: 1. Under the kernel's lock nobody else is in the table. 2. Cloning a counted reference calls
        // nothing that could come back here, and no reference into the table leaves this function.
        let slots = unsafe { &*self.0.get() };
        slots.get(index)?.clone()
    }

    /// Makes sure that there is a slot `index`.
    pub fn make_room(&self, index: usize) -> Result<(), NoMemory> {
        assert_held();
        // SAFETY: as in `get`: growing neither drops a value nor comes back here.
        let slots = unsafe { &mut *self.0.get() };
        if index < slots.len() { Ok(()) } else { slots.try_resize(index + 1, None) }
    }

    /// Changes a slot, which must be there, and returns what was in it, for the caller to drop.
    pub fn set(&self, index: usize, value: Option<Arc<T>>) -> Option<Arc<T>> {
        assert_held();
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

/// Data of one processor, or of the machine itself: reached by whom it belongs to alone, between interrupts, without the lock.
/// As with [`KernelCell`], what it can meet is a borrow higher up the same stack.
pub struct LocalCell<T>(RefCell<T>);

// SAFETY: what belongs to one processor is only reached by code that runs on it, and no interrupt's Rust comes in between.
unsafe impl<T: Send> Sync for LocalCell<T> {}

impl<T> LocalCell<T> {
    pub const fn new(value: T) -> LocalCell<T> {
        LocalCell(RefCell::new(value))
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

impl<T> LocalCell<T> {
    /// As [`KernelCell::with`]: nobody leaves for another thread meanwhile.
    #[track_caller]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R + Send) -> R {
        act(&mut self.borrow_mut())
    }
}

impl<T: Copy> LocalCell<T> {
    pub fn get(&self) -> T {
        *self.0.borrow()
    }

    pub fn set(&self, value: T) {
        *self.0.borrow_mut() = value;
    }
}

impl<T: Default> Default for LocalCell<T> {
    fn default() -> LocalCell<T> {
        LocalCell::new(T::default())
    }
}

/// A value of one processor that is copied or exchanged whole, under the same rule as [`LocalCell`]: a plain `Cell`.
#[derive(Default)]
#[repr(transparent)]
pub struct LocalValue<T>(Cell<T>);

// SAFETY: as for `LocalCell`.
unsafe impl<T: Send> Sync for LocalValue<T> {}

impl<T> LocalValue<T> {
    pub const fn new(value: T) -> LocalValue<T> {
        LocalValue(Cell::new(value))
    }
}

impl<T> Deref for LocalValue<T> {
    type Target = Cell<T>;

    #[inline(always)]
    fn deref(&self) -> &Cell<T> {
        &self.0
    }
}
