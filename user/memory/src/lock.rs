//! The lock of what all threads share.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use ground::Errno;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps for it.
const WANTED: u32 = 2;
/// Looks at a held lock before sleeping.
const LOOKS: u32 = 100;

unsafe extern "C" {
    /// Of the C library: not 0 as long as there is one thread.
    static __libc_single_threaded: AtomicU8;
}

/// A value with a lock that sleeps in the system (U. Drepper, *Futexes are tricky*), and that a program of one thread does not
/// pay for.
pub struct Lock<T> {
    word: AtomicU32,
    /// The thread that seized it in order to fork, 0: none. What it does meanwhile is done under the lock.
    forking: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, as long as this lives.
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
    /// There was one thread, and only this one could have changed that since.
    alone: bool,
}

impl<T> Lock<T> {
    pub const fn new(value: T) -> Lock<T> {
        Lock { word: AtomicU32::new(FREE), forking: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits for the value. A thread that has it must not ask again.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        // SAFETY: the C library's own byte, which it only stores.
        let single = unsafe { &__libc_single_threaded }.load(Ordering::Relaxed) != 0;
        Held { lock: self, alone: single || !self.seize() }
    }

    /// Nobody else has the value until [`Lock::end_fork`].
    pub fn begin_fork(&self) {
        self.seize();
        self.forking.store(this_thread(), Ordering::Relaxed);
    }

    /// In the parent, and in the child for its copy.
    pub fn end_fork(&self) {
        self.forking.store(0, Ordering::Relaxed);
        self.unseize();
    }

    /// `false`: this thread is forking, and has it already.
    #[inline]
    fn seize(&self) -> bool {
        // Acquire: pairs with the Release of `unseize`.
        self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() || self.wait()
    }

    #[cold]
    fn wait(&self) -> bool {
        if self.forking.load(Ordering::Relaxed) == this_thread() {
            return false;
        }
        for _ in 0..LOOKS {
            if self.word.load(Ordering::Relaxed) == FREE
                && self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return true;
            }
            core::hint::spin_loop();
        }
        let before = Errno::last();
        while self.word.swap(WANTED, Ordering::Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, WANTED);
        }
        before.set();
        true
    }

    #[inline]
    fn unseize(&self) {
        if self.word.swap(FREE, Ordering::Release) == WANTED {
            let before = Errno::last();
            self.futex(libc::FUTEX_WAKE, 1);
            before.set();
        }
    }

    #[cold]
    fn futex(&self, operation: libc::c_int, value: u32) {
        let private = operation | libc::FUTEX_PRIVATE_FLAG;
        let no_timeout = core::ptr::null::<libc::timespec>();
        // SAFETY: the word lives as long as the program.
        unsafe { libc::syscall(libc::SYS_futex, self.word.as_ptr(), private, value, no_timeout) };
    }
}

fn this_thread() -> usize {
    // SAFETY: asks for a number only.
    unsafe { libc::pthread_self() as usize }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock, or is alone.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.alone {
            self.lock.unseize();
        }
    }
}
