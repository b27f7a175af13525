//! Atomics and cells, the real ones or the model checker's; and the orderings, which it may weaken.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
pub(crate) use alloc::sync::Arc;
#[cfg(loom)]
pub(crate) use loom::sync::Arc;

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// As loom's cell, which is told when an access begins and ends.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

/// A word that no other word shares its cache lines with (two lines, because the prefetcher takes pairs).
#[repr(align(128))]
pub(crate) struct Padded<T>(pub T);

/// The ordering of the place called `place`. In the model checker's build the environment variable `QUEUE_MUTANT`
/// names a place that is weakened to `Relaxed`: a model must then fail (`tests/models.rs`).
#[cfg(not(loom))]
macro_rules! order {
    ($place:literal, $ordering:ident) => {
        $crate::sync::Ordering::$ordering
    };
}
#[cfg(loom)]
macro_rules! order {
    ($place:literal, $ordering:ident) => {
        if $crate::sync::is_mutant($place) {
            $crate::sync::Ordering::Relaxed
        } else {
            $crate::sync::Ordering::$ordering
        }
    };
}
pub(crate) use order;

/// Whether the step called `$place` is to be done wrongly: the mutants that are no orderings.
macro_rules! mutant {
    ($place:literal) => {
        cfg!(loom) && $crate::sync::is_mutant($place)
    };
}
pub(crate) use mutant;

#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn is_mutant(_place: &str) -> bool {
    false
}

#[cfg(loom)]
pub(crate) fn is_mutant(place: &str) -> bool {
    static MUTANT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    MUTANT.get_or_init(|| std::env::var("QUEUE_MUTANT").ok()).as_deref() == Some(place)
}

/// A full fence between announcing and looking again, on both sides of a wake-up.
#[inline(always)]
pub(crate) fn full_fence(place: &str) {
    if !(cfg!(loom) && is_mutant(place)) {
        fence(Ordering::SeqCst);
    }
}
