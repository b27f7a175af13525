//! What all quajects of one declaration have in common.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::KernelCell;
use synth::{Draft, Fact, Plan, Shape, Template};

/// A part of the data, where templates find it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub offset: u32,
    pub bytes: u32,
}

/// A procedure that others call.
#[derive(Clone, Copy, Debug)]
pub struct Callentry {
    pub name: &'static str,
    /// As its births are called, for example `pipe.read`. Those behind the first are variants: of the same contract, made of
    /// other fragments as the circumstances are.
    pub routines: &'static [&'static str],
    pub contract: &'static str,
    /// [`Contract::PEEPHOLES`](crate::Contract::PEEPHOLES)
    pub peepholes: bool,
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
    /// Quajects made new. One that is there from the start counts with its first routine.
    pub made: AtomicU64,
    /// Routines made.
    pub routines: AtomicU64,
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
            routines: AtomicU64::new(0),
            revived: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            bytes_saved: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(gauge: &AtomicU64, amount: u64) {
        gauge.store(gauge.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }

    /// A routine was made, or refused.
    pub(crate) fn note_routine(&self, is_made: bool) {
        if !is_made {
            return Gauges::add(&self.refused, 1);
        }
        Gauges::add(&self.routines, 1);
        if self.made.load(Ordering::Relaxed) == 0 {
            self.made.store(1, Ordering::Relaxed);
        }
    }
}

/// Callentries that a class can have.
const CALLENTRIES_MAX: usize = 8;

/// Shows templates, one after the other.
type Templates = fn(&mut dyn FnMut(Template));

/// One declaration. Made by [`quaject!`](crate::quaject) only.
pub struct Class {
    pub name: &'static str,
    /// The call or deed that makes one.
    pub made_by: &'static str,
    pub data: &'static [Field],
    pub callentries: &'static [Callentry],
    pub callouts: &'static [&'static str],
    pub callbacks: &'static [Callback],
    /// What the holes of its templates stand for.
    facts: &'static [&'static [Fact]],
    /// Shows the declared templates, some more than once. A kernel has no use for them.
    templates: Option<Templates>,
    /// Closed quajects that wait, at most.
    pub inactive_max: usize,
    pub gauges: Gauges,
    /// How each callentry's code was last optimized.
    plans: KernelCell<[Option<Box<Plan>>; CALLENTRIES_MAX]>,
}

/// What a declaration states. Made by [`quaject!`](crate::quaject) only.
pub struct Declared {
    pub name: &'static str,
    pub made_by: &'static str,
    pub data: &'static [Field],
    pub callentries: &'static [Callentry],
    pub callouts: &'static [&'static str],
    pub callbacks: &'static [Callback],
    pub facts: &'static [&'static [Fact]],
    pub templates: Templates,
    pub inactive_max: usize,
}

impl Class {
    pub const fn new(declared: Declared) -> Class {
        assert!(declared.callentries.len() <= CALLENTRIES_MAX, "too many callentries");
        let plans = KernelCell::new([const { None }; CALLENTRIES_MAX]);
        let Declared { name, made_by, data, callentries, callouts, callbacks, facts, templates, inactive_max } =
            declared;
        let templates = if cfg!(feature = "templates") { Some(templates) } else { None };
        let gauges = Gauges::new();
        Class { name, made_by, data, callentries, callouts, callbacks, facts, templates, inactive_max, gauges, plans }
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
    pub fn each_template(&self, mut see: impl FnMut(Template)) {
        let mut seen: Vec<&'static Shape> = Vec::new();
        let Some(templates) = self.templates else { return };
        templates(&mut |template| {
            if !seen.iter().any(|shape| core::ptr::eq(*shape, template.shape)) {
                seen.push(template.shape);
                see(template);
            }
        });
    }

    /// Whether routines of this name are made for quajects of this class.
    /// What hole `hole` of its templates stands for, if it says so.
    pub fn fact(&self, hole: &str) -> Option<&'static Fact> {
        self.facts.iter().copied().flatten().find(|fact| fact.hole == hole)
    }

    pub fn makes(&self, routine: &str) -> bool {
        self.callentries.iter().any(|callentry| callentry.routines.contains(&routine))
    }
}
