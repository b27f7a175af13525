//! One at a time without a lock: the first caller works in line, others leave their work with it.
//!
//! The fifth way of the thesis' order of preference: "set busy and run in line; a second caller queues its work; the
//! finisher drains the queue". Nobody ever waits, so it may be called from an interrupt that interrupted the worker.

use crate::ends::Full;
use crate::ring::{Among, Ring};
use crate::sync::{AtomicBool, UnsafeCell, mutant, order};

/// State that one caller at a time works on. `W` is a piece of work.
///
/// Invariant: while work is published in the queue, somebody is busy or about to try to be: every caller tries after
/// it has queued, and who ends being busy looks once more.
pub struct Serial<S, W> {
    busy: AtomicBool,
    work: Ring<W>,
    state: UnsafeCell<S>,
}

// SAFETY: 1. `state` is used by one thread at a time, who set `busy`. 2. It and the work go from thread to thread.
unsafe impl<S: Send, W: Send> Sync for Serial<S, W> {}

/// What became of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// It is done.
    Here,
    /// Somebody else was busy and does it.
    Left,
}

impl<S, W> Serial<S, W> {
    /// With room for `capacity` pieces of work while somebody is busy.
    pub fn new(state: S, capacity: usize) -> Serial<S, W> {
        Serial { busy: AtomicBool::new(false), work: Ring::new(capacity), state: UnsafeCell::new(state) }
    }

    /// Has `run(state, work)` done: here at once, or by who is busy now. Gives the work back when too much waits.
    ///
    /// Every caller must pass a `run` that means the same, for it serves others' work too. If `run` panics nobody works
    /// again.
    pub fn submit(&self, work: W, mut run: impl FnMut(&mut S, W)) -> Result<Done, Full<W>> {
        if self.begin() {
            self.serve(work, &mut run);
            self.finish(&mut run);
            return Ok(Done::Here);
        }
        self.work.put::<Among>(work)?;
        if !mutant!("serial.no_second_try") && self.begin() {
            self.finish(&mut run);
            return Ok(Done::Here);
        }
        Ok(Done::Left)
    }

    fn begin(&self) -> bool {
        // Acquire: the Release of the last finisher. Release: our published work, for who is busy.
        !self.busy.swap(true, order!("serial.begin", AcqRel))
    }

    /// Drains the queue until nobody is busy or another one is.
    fn finish(&self, run: &mut impl FnMut(&mut S, W)) {
        loop {
            while let Some(work) = self.work.get::<Among>() {
                self.serve(work, run);
            }
            // Release: what was done to the state. Acquire: work published before a failed `begin`.
            self.busy.swap(false, order!("serial.finish", AcqRel));
            // A producer that has claimed the next place and not filled it tries `begin` after it has, so "not ready"
            // may be believed.
            if !self.work.is_ready() || !self.begin() {
                return;
            }
        }
    }

    fn serve(&self, work: W, run: &mut impl FnMut(&mut S, W)) {
        self.state.with_mut(|state| {
            // SAFETY: 1. `busy` is set by this thread alone (`begin`), so nobody else has the state. 2. `run` cannot
            // reach it a second time: a `submit` inside `run` finds `busy` set.
            run(unsafe { &mut *state }, work);
        });
    }
}
