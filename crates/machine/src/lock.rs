//! The kernel's lock, as a value.
//!
//! One processor at a time runs the kernel's Rust: who does so holds the lock, and [`Held`] is the proof that is passed on.
//!
//! ```text
//!   program ── entry: Entered ──► Rust ── leave for another thread ──► … ──► Rust ── Entered is dropped ──► program
//!              takes the lock     held     gives it up   takes it again            gives it back
//! ```
//! Synthesized routines, and handlers of interrupts that are code, run without it: what they touch is in words of their own.
//!
//! In debug builds the lock is a word with its owner, and each cell looks at it. In release builds an entry costs nothing: while
//! [`PROCESSORS_MAX`] is 1, nobody else could hold it.
#![allow(unsafe_code, reason = "only a machine knows where it enters the kernel")]

use core::marker::PhantomData;

/// Processors that the kernel is built for.
pub const PROCESSORS_MAX: usize = 1;

/// What is right only while there is one processor says so here, and why: the compiler leads whoever raises [`PROCESSORS_MAX`] to
/// each place.
#[macro_export]
macro_rules! relies_on_one_processor {
    ($why:literal) => {
        const _: () = assert!($crate::PROCESSORS_MAX == 1, $why);
    };
}

relies_on_one_processor!("entries and switches take the lock in debug builds alone, and wait for nobody");

/// The lock is held by the processor that runs this, and stays so until the entry that it comes from ends, except while a function
/// that takes this value leaves for another thread or lets interrupts in. So a function that can do either says so in its type.
///
/// It is nothing at run time, and bound to its entry and its thread:
///
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// fn send(held: machine::Held<'_>) {
///     sent(held);
/// }
/// ```
/// ```compile_fail,E0521
/// fn keep(held: machine::Held<'_>) {
///     let kept: machine::Held<'static> = held;
///     let _ = kept;
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Held<'k>(PhantomData<&'k Entered>);

/// An entry into the kernel's Rust. Dropped where the program, or what was interrupted, goes on.
#[must_use]
pub struct Entered {
    /// It is the outermost entry of this processor, which gives the lock back.
    #[cfg(debug_assertions)]
    is_outermost: bool,
    /// Neither sent nor shared.
    own: PhantomData<*const ()>,
}

impl Entered {
    /// The kernel is entered from a program, from a routine, or by an interrupt that came while the lock was given up.
    ///
    /// # Safety
    /// A machine calls this where it enters the kernel's Rust, on the stack of the thread that runs then, and drops it where that
    /// is left; no Rust of the kernel below it on this processor holds the lock.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn new() -> Entered {
        #[cfg(debug_assertions)]
        owner::take();
        Entered {
            #[cfg(debug_assertions)]
            is_outermost: true,
            own: PhantomData,
        }
    }

    /// The same for a fault, which may be a routine's or that of Rust that holds the lock already.
    ///
    /// # Safety
    /// As [`Entered::new`], but that Rust of the kernel below it may hold the lock.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn by_fault() -> Entered {
        Entered {
            #[cfg(debug_assertions)]
            is_outermost: owner::take_unless_held(),
            own: PhantomData,
        }
    }

    #[inline(always)]
    pub fn held(&self) -> Held<'_> {
        Held(PhantomData)
    }
}

#[cfg(debug_assertions)]
impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_outermost {
            owner::give_back();
        }
    }
}

impl Held<'_> {
    /// Gives the lock up, does `act`, and takes it again: others may have had it meanwhile.
    ///
    /// # Safety
    /// `act` leaves the processor to another thread or to interrupts, and touches nothing else of the kernel's.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn given_up<R>(self, act: impl FnOnce() -> R) -> R {
        #[cfg(debug_assertions)]
        owner::give_up();
        let result = act();
        #[cfg(debug_assertions)]
        owner::take();
        result
    }
}

/// Nothing runs beside the caller any more, and no lock matters: a panic's last words.
pub fn abandon() {
    #[cfg(debug_assertions)]
    owner::disarm();
}

/// From now on the lock is real: `this_processor` tells which processor asks, `None` in a thread of the host that
/// is none's. Before that there are no entries, so nothing is looked at: boot is alone, and each unit test has cells of its own. In
/// release builds this does nothing.
pub fn arm(this_processor: fn() -> Option<u32>) {
    #[cfg(debug_assertions)]
    owner::arm(this_processor);
    let _ = this_processor;
}

/// Who touches a cell holds the lock.
#[inline(always)]
#[track_caller]
pub(crate) fn assert_held() {
    #[cfg(debug_assertions)]
    owner::assert_held();
}

/// The lock's word.
#[cfg(debug_assertions)]
mod owner {
    use core::mem::transmute;
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    /// The number of the processor that holds the lock, and 1; 0: nobody does.
    static OWNER: AtomicU32 = AtomicU32::new(NOBODY);
    const NOBODY: u32 = 0;

    /// A `fn() -> Option<u32>`; 0: there is none.
    static THIS_PROCESSOR: AtomicUsize = AtomicUsize::new(0);

    pub fn arm(this_processor: fn() -> Option<u32>) {
        THIS_PROCESSOR.store(this_processor as usize, Ordering::Release);
    }

    pub fn disarm() {
        THIS_PROCESSOR.store(0, Ordering::Release);
        OWNER.store(NOBODY, Ordering::Release);
    }

    /// The processor that asks, and 1. `None`: there is no lock, or it is not the caller's business.
    fn this() -> Option<u32> {
        let address = THIS_PROCESSOR.load(Ordering::Acquire);
        if address == 0 {
            return None;
        }
        // SAFETY: only `arm` stores another value than 0, and that is such a function.
        let this_processor = unsafe { transmute::<usize, fn() -> Option<u32>>(address) };
        this_processor().map(|number| number + 1)
    }

    /// Acquires what the last owner released in `give_up`.
    #[track_caller]
    pub fn take() {
        let Some(this) = this() else { return };
        // With a second processor this is where it waits.
        let taken = OWNER.compare_exchange(NOBODY, this, Ordering::Acquire, Ordering::Relaxed);
        assert!(taken.is_ok(), "the kernel is entered, and its lock is held already");
    }

    /// Whether it was not held.
    #[track_caller]
    pub fn take_unless_held() -> bool {
        let Some(this) = this() else { return false };
        let is_free = OWNER.load(Ordering::Relaxed) != this;
        if is_free {
            take();
        }
        is_free
    }

    #[track_caller]
    pub fn give_up() {
        assert_held();
        give_back();
    }

    /// At the end of an entry. One that a panic ends may have given it up before.
    pub fn give_back() {
        if let Some(this) = this() {
            let _ = OWNER.compare_exchange(this, NOBODY, Ordering::Release, Ordering::Relaxed);
        }
    }

    #[track_caller]
    #[inline(never)]
    pub fn assert_held() {
        let Some(this) = this() else { return };
        let owner = OWNER.load(Ordering::Relaxed);
        assert!(owner == this, "the kernel's data is touched without its lock");
    }
}
