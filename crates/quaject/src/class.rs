//! What all quajects of one declaration have in common.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::KernelCell;
use synth::{Draft, Plan, Template};

/// A part of the data, where templates find it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub bytes: usize,
}

/// A procedure that others call.
#[derive(Clone, Copy, Debug)]
pub struct Callentry {
    pub name: &'static str,
    /// As its births are called, for example `pipe.read`.
    pub routine: &'static str,
    pub contract: &'static str,
}

/// What a quaject tells whoever is connected to it; unconnected, `default` is where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    pub name: &'static str,
    pub default: &'static str,
}

/// Counts since boot.
#[derive(Default, Debug)]
pub struct Gauges {
    /// Quajects made new.
    pub made: AtomicU64,
    /// Quajects taken from the inactive list, with their code.
    pub revived: AtomicU64,
    /// Routines for which there was no room; their calls are done in Rust.
    pub refused: AtomicU64,
    /// Routines whose optimization was known from one before.
    pub planned: AtomicU64,
    /// Bytes and instructions that the optimizer took out of routines.
    pub bytes_saved: AtomicU64,
}

impl Gauges {
    const fn new() -> Gauges {
        Gauges {
            made: AtomicU64::new(0),
            revived: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            bytes_saved: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(gauge: &AtomicU64, amount: u64) {
        gauge.store(gauge.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }
}

/// Callentries that a class can have.
const CALLENTRIES_MAX: usize = 5;

/// One declaration. Made by [`quaject!`](crate::quaject) only.
pub struct Class {
    pub name: &'static str,
    /// The call or deed that makes one.
    pub made_by: &'static str,
    pub data: &'static [Field],
    pub callentries: &'static [Callentry],
    pub callouts: &'static [&'static str],
    pub callbacks: &'static [Callback],
    pub templates: &'static [fn() -> Template],
    pub gauges: Gauges,
    /// How each callentry's code was last optimized.
    plans: KernelCell<[Option<Box<Plan>>; CALLENTRIES_MAX]>,
}

impl Class {
    pub const fn new(
        name: &'static str,
        made_by: &'static str,
        data: &'static [Field],
        callentries: &'static [Callentry],
        callouts: &'static [&'static str],
        callbacks: &'static [Callback],
        templates: &'static [fn() -> Template],
    ) -> Class {
        assert!(callentries.len() <= CALLENTRIES_MAX, "too many callentries");
        let plans = KernelCell::new([const { None }; CALLENTRIES_MAX]);
        Class { name, made_by, data, callentries, callouts, callbacks, templates, gauges: Gauges::new(), plans }
    }

    /// Optimizes the code of one callentry: as the one before, if that is made of the same fragments filled alike.
    pub(crate) fn optimize(&self, callentry: usize, draft: Draft) -> Draft {
        let before = draft.len();
        let mut plans = self.plans.borrow_mut();
        let done = match plans[callentry].as_ref().and_then(|plan| plan.apply(&draft)) {
            Some(done) => {
                Gauges::add(&self.gauges.planned, 1);
                done
            }
            None => {
                let Some(plan) = synth::optimize(&draft) else { return draft };
                let Some(done) = plan.apply(&draft) else { return draft };
                plans[callentry] = Some(Box::new(plan));
                done
            }
        };
        Gauges::add(&self.gauges.bytes_saved, (before - done.len().min(before)) as u64);
        done
    }

    /// The declared templates, each once.
    pub fn each_template(&self) -> impl Iterator<Item = Template> {
        let all = self.templates.iter().map(|template| template());
        all.enumerate().filter_map(|(at, template)| {
            let mut before = self.templates[..at].iter().map(|template| template());
            let is_new = !before.any(|other| core::ptr::eq(other.shape, template.shape));
            is_new.then_some(template)
        })
    }
}
