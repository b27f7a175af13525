//! Where the time of an open goes: to lookup, to the creator's stages (S-17), to publication, or to the rest. Only in images that
//! are built to measure it (feature `stages`, `bin/*/build.sh --stages`); elsewhere nothing of this is left.
//!
//! A stage lasts from `enter` until what that returned is dropped, without the stages inside it: each tick is counted once.
//! What the counting itself takes is counted apart.
#![allow(unsafe_code, reason = "the processor's counter is read by an intrinsic")]

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What is being done for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Rest,
    /// From a path to a node.
    Lookup,
    /// Room for a quaject and its data.
    Allocate,
    Factor,
    Optimize,
    /// A draft becomes code.
    Publish,
}

/// Names of the stages, in their order.
pub const NAMES: [&str; 6] = ["rest", "lookup", "allocate", "factor", "optimize", "publish"];

/// Whether this image counts.
pub const ARE_COUNTED: bool = cfg!(feature = "stages");

/// What one call took.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Number of the call.
    pub call: u64,
    /// Ticks of the processor's counter in each stage.
    pub ticks: [u64; NAMES.len()],
    /// Ticks that the counting took.
    pub counting: u64,
    /// What was published.
    pub routines: u64,
    pub code_bytes: u64,
}

struct State {
    stage: AtomicUsize,
    /// When it began, or went on.
    since: AtomicU64,
    call: AtomicU64,
    ticks: [AtomicU64; NAMES.len()],
    counting: AtomicU64,
    routines: AtomicU64,
    code_bytes: AtomicU64,
}

impl State {
    const fn new() -> State {
        State {
            stage: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            call: AtomicU64::new(0),
            ticks: [const { AtomicU64::new(0) }; NAMES.len()],
            counting: AtomicU64::new(0),
            routines: AtomicU64::new(0),
            code_bytes: AtomicU64::new(0),
        }
    }

    fn store(&self, counts: Counts) {
        self.call.store(counts.call, Relaxed);
        self.ticks.iter().zip(counts.ticks).for_each(|(all, ticks)| all.store(ticks, Relaxed));
        self.counting.store(counts.counting, Relaxed);
        self.routines.store(counts.routines, Relaxed);
        self.code_bytes.store(counts.code_bytes, Relaxed);
    }

    fn load(&self) -> Counts {
        Counts {
            call: self.call.load(Relaxed),
            ticks: self.ticks.each_ref().map(|ticks| ticks.load(Relaxed)),
            counting: self.counting.load(Relaxed),
            routines: self.routines.load(Relaxed),
            code_bytes: self.code_bytes.load(Relaxed),
        }
    }
}

static NOW: State = State::new();
/// The last call that came to its end, and the one before.
static LAST: State = State::new();
static BEFORE: State = State::new();

fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed).wrapping_add(amount), Relaxed);
}

fn counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Ends a stage and begins another. Returns the one that ended.
#[inline(never)]
fn change(to: usize) -> usize {
    let now = counter();
    let from = NOW.stage.swap(to, Relaxed);
    add(&NOW.ticks[from], now.wrapping_sub(NOW.since.load(Relaxed)));
    let later = counter();
    add(&NOW.counting, later.wrapping_sub(now));
    NOW.since.store(later, Relaxed);
    from
}

/// A stage, until it is dropped.
#[must_use]
pub struct Entered(usize);

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if ARE_COUNTED {
            change(self.0);
        }
    }
}

/// Begins a stage.
#[inline(always)]
pub fn enter(stage: Stage) -> Entered {
    Entered(if ARE_COUNTED { change(stage as usize) } else { 0 })
}

/// Begins a call.
#[inline(always)]
pub fn begin(call: u64) {
    if ARE_COUNTED {
        let now = counter();
        NOW.store(Counts { call, ..Counts::default() });
        NOW.stage.store(Stage::Rest as usize, Relaxed);
        let later = counter();
        NOW.counting.store(later.wrapping_sub(now), Relaxed);
        NOW.since.store(later, Relaxed);
    }
}

/// Ends it.
#[inline(always)]
pub fn end() {
    if ARE_COUNTED {
        change(Stage::Rest as usize);
        BEFORE.store(LAST.load());
        LAST.store(NOW.load());
        add(&LAST.counting, counter().wrapping_sub(NOW.since.load(Relaxed)));
    }
}

/// Notes a routine of so many bytes.
#[inline(always)]
pub fn published(code_bytes: usize) {
    if ARE_COUNTED {
        add(&NOW.routines, 1);
        add(&NOW.code_bytes, code_bytes as u64);
    }
}

/// What the call took that came to its end before the last one did: who asks has opened a file to do it.
pub fn before_last() -> Counts {
    BEFORE.load()
}
