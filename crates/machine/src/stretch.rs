//! How long the kernel keeps interrupts out (R9): a *stretch* lasts from an entry into the kernel's Rust to the way back to the
//! program, to a switch, or to a safe point in the midst of it. Only in images that are built to measure it (feature `bounds`,
//! `bin/*/build.sh --bounds`); elsewhere nothing of this is left.
//!
//! ```text
//!   entry ──── stretch ────┤ safe point, switch ├──── stretch ────► program
//! ```
//! The longest is kept for each call, and for each of the other ways in. While the machine counts instructions as time, a tick
//! of the processor's counter is an instruction.
#![allow(unsafe_code, reason = "the processor's counter is read by an intrinsic")]

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::CALLS_MAX;

/// Whether this image measures.
pub const ARE_MEASURED: bool = cfg!(feature = "bounds");

/// What the kernel was entered for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    Call(u64),
    Exception,
    PageFault,
    Timer,
    Device,
    Chained,
    /// Signals, stops and ends on the way to the program.
    BeforeUser,
}

/// The ways in that are no calls, in the order of their places behind the calls.
const OTHERS: [(Cause, &str); 6] = [
    (Cause::Exception, "(exception)"),
    (Cause::PageFault, "(page fault)"),
    (Cause::Timer, "(timer)"),
    (Cause::Device, "(device)"),
    (Cause::Chained, "(chained)"),
    (Cause::BeforeUser, "(before the program)"),
];

const PLACES: usize = if ARE_MEASURED { CALLS_MAX + OTHERS.len() } else { 1 };

crate::relies_on_one_processor!("each processor has a stretch of its own");

/// When the stretch began that lasts now; 0: none does.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// What for: a place in the table.
static PLACE: AtomicU64 = AtomicU64::new(0);
static LONGEST: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static COUNTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

impl Cause {
    fn place(self) -> usize {
        match self {
            Cause::Call(number) => (number as usize).min(CALLS_MAX - 1),
            other => CALLS_MAX + OTHERS.iter().position(|(cause, _)| *cause == other).unwrap_or(0),
        }
    }
}

fn counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Ends the stretch; what it was for, if there was one.
#[inline(never)]
fn finish() -> Option<u64> {
    let (now, since) = (counter(), SINCE.swap(0, Relaxed));
    if since == 0 {
        return None;
    }
    let place = PLACE.load(Relaxed);
    LONGEST[place as usize].fetch_max(now.wrapping_sub(since), Relaxed);
    COUNTS[place as usize].fetch_add(1, Relaxed);
    Some(place)
}

fn start(place: u64) {
    PLACE.store(place, Relaxed);
    SINCE.store(counter(), Relaxed);
}

/// A way through the kernel, until it is dropped. One in the midst of another is a part of that.
#[must_use]
pub struct Entered(bool);

/// The kernel's Rust begins.
#[inline(always)]
pub fn enter(cause: Cause) -> Entered {
    let is_first = ARE_MEASURED && SINCE.load(Relaxed) == 0;
    if is_first {
        start(cause.place() as u64);
    }
    Entered(is_first)
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if ARE_MEASURED && self.0 {
            finish();
        }
    }
}

/// Does what ends a stretch in the midst of the kernel's work: lets interrupts in, or leaves for another thread.
#[inline(always)]
pub fn interrupted_by<R>(act: impl FnOnce() -> R) -> R {
    if !ARE_MEASURED {
        return act();
    }
    let place = finish();
    let result = act();
    // Whoever ran meanwhile has ended its own.
    place.into_iter().for_each(start);
    result
}

/// One that was measured.
pub struct Measured {
    /// Number of a call, or what else the kernel was entered for.
    pub cause: Result<u64, &'static str>,
    /// How many stretches.
    pub count: u64,
    /// Ticks of the longest.
    pub longest: u64,
}

/// The longest stretch for each cause that there was.
pub fn measured() -> impl Iterator<Item = Measured> {
    let count_of = |place: usize| COUNTS[place].load(Relaxed);
    (0..PLACES).filter(move |place| count_of(*place) > 0).map(move |place| Measured {
        cause: place.checked_sub(CALLS_MAX).map_or(Ok(place as u64), |other| Err(OTHERS[other].1)),
        count: count_of(place),
        longest: LONGEST[place].load(Relaxed),
    })
}
