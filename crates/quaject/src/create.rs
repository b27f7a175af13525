//! The quaject creator (S-17, SOSP'89 2.3): allocation, factorization, optimization.

use alloc::boxed::Box;
use core::marker::PhantomData;

use codestore::Code;
use machine::KernelCell;
use machine::stages::{self, Stage};
use synth::Draft;

use crate::class::{Class, Gauges};
use crate::contract::Makers;
use crate::inactive::Inactive;

/// Callentries of which some may be missing.
pub trait Whole {
    fn is_whole(&self) -> bool;
}

/// What [`quaject!`](crate::quaject) makes of a declaration.
pub trait Quaject: Sized + 'static {
    /// A routine for each callentry that could be made.
    type Callentries: Clone + Default + Whole;
    /// What the quaject calls: `None` where it is not connected.
    type Callouts<'a>: Default;
    /// One draft for each callentry; `None` if a callout that it needs is not connected.
    type Drafts: AsMut<[Option<Draft>]>;

    fn class() -> &'static Class;
    /// Closed quajects with their code.
    fn inactive() -> &'static Inactive<Self>;
    /// The stage `factor`.
    fn factored(&self, makers: Makers, callouts: &Self::Callouts<'_>) -> Self::Drafts;
    /// The end of the stages: drafts become code.
    fn published(makers: Makers, drafts: Self::Drafts) -> Self::Callentries;
}

/// A quaject that does not move, and its callentries, which know where it is.
pub struct Made<Q: Quaject> {
    quaject: Q,
    code: KernelCell<Option<Q::Callentries>>,
}

impl<Q: Quaject> core::ops::Deref for Made<Q> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.quaject
    }
}

impl<Q: Quaject> Made<Q> {
    /// The routines, as far as there are some.
    pub fn callentries(&self) -> Option<Q::Callentries> {
        self.code.borrow().clone()
    }

    /// The routines as `makers` want them: made anew for who watches them.
    pub fn callentries_for(&self, makers: Makers, callouts: &Q::Callouts<'_>) -> Option<Q::Callentries> {
        match makers.watch() {
            None => self.callentries(),
            Some(_) => Some(whole(&self.quaject, makers, callouts)),
        }
    }

    pub fn has_code(&self) -> bool {
        self.code.borrow().is_some()
    }

    /// The data has moved or changed its shape: the routines that know it are dropped here, and freed when the last who
    /// holds them has let go.
    pub fn forget_code(&self) {
        *self.code.borrow_mut() = None;
    }

    /// Whether each callentry has its routine.
    pub fn is_whole(&self) -> bool {
        self.code.borrow().as_ref().is_some_and(Whole::is_whole)
    }

    /// Stages two to four, unless the quaject brought its code from the inactive list. What finds no room in the store is
    /// left out, and done in Rust.
    pub fn synthesize(&self, makers: Makers, callouts: &Q::Callouts<'_>) {
        if !self.has_code() {
            *self.code.borrow_mut() = Some(whole(&self.quaject, makers, callouts));
        }
    }
}

/// Stage one: room for the quaject. One from the inactive list comes with its code; `make` makes the data of a new one.
pub fn allocate<Q: Quaject, E>(make: impl FnOnce() -> Result<Q, E>) -> Result<Box<Made<Q>>, E> {
    allocate_in(Q::class(), Q::inactive().take(), || {
        Ok(Box::new(Made { quaject: make()?, code: KernelCell::new(None) }))
    })
}

/// As [`allocate`], never from the inactive list: the routines of this one will know more than the quaject itself.
pub fn allocate_new<Q: Quaject, E>(make: impl FnOnce() -> Result<Q, E>) -> Result<Box<Made<Q>>, E> {
    allocate_in(Q::class(), None, || Ok(Box::new(Made { quaject: make()?, code: KernelCell::new(None) })))
}

/// Stage one where quajects do not lie in boxes: the inactive one, or room for a new one.
pub fn allocate_in<B, E>(class: &Class, inactive: Option<B>, make: impl FnOnce() -> Result<B, E>) -> Result<B, E> {
    let _stage = stages::enter(Stage::Allocate);
    if let Some(revived) = inactive {
        Gauges::add(&class.gauges.revived, 1);
        return Ok(revived);
    }
    let made = make()?;
    Gauges::add(&class.gauges.made, 1);
    Ok(made)
}

/// Stage two, Factoring Invariants: the quaject's constants are filled into its templates.
pub fn factor<Q: Quaject>(quaject: &Q, makers: Makers, callouts: &Q::Callouts<'_>) -> Q::Drafts {
    let _stage = stages::enter(Stage::Factor);
    quaject.factored(makers, callouts)
}

/// Stage three: peepholes over the pasted fragments. The plan of what to take out is kept with the class.
pub fn optimize<Q: Quaject>(mut drafts: Q::Drafts) -> Q::Drafts {
    let _stage = stages::enter(Stage::Optimize);
    let class = Q::class();
    for (callentry, draft) in drafts.as_mut().iter_mut().enumerate() {
        if class.callentries[callentry].peepholes {
            *draft = draft.take().map(|draft| class.optimize(callentry, draft));
        }
    }
    drafts
}

/// Drafts become code (R2). A callentry without room is left out.
pub fn publish<Q: Quaject>(makers: Makers, drafts: Q::Drafts) -> Q::Callentries {
    Q::published(makers, drafts)
}

/// Factor, optimize, publish: the callentries of a quaject that stays where it is.
#[cold]
pub fn create<Q: Quaject>(quaject: &Q, makers: Makers, callouts: &Q::Callouts<'_>) -> Q::Callentries {
    Gauges::add(&Q::class().gauges.made, 1);
    whole(quaject, makers, callouts)
}

#[cold]
fn whole<Q: Quaject>(quaject: &Q, makers: Makers, callouts: &Q::Callouts<'_>) -> Q::Callentries {
    publish::<Q>(makers, optimize::<Q>(factor(quaject, makers, callouts)))
}

/// One callentry behind the stage factor, for code that is made when it is first wanted, or once for each circumstance.
pub struct Factored<C> {
    of: Of,
    /// `None`: a callout that it needs is not connected.
    draft: Option<Draft>,
    contract: PhantomData<fn(C)>,
}

/// Whose routine it is.
#[derive(Clone, Copy)]
struct Of {
    class: &'static Class,
    callentry: usize,
    variant: usize,
}

impl Of {
    fn publish(self, makers: &Makers, contract: &'static str, draft: Draft) -> Option<Code<()>> {
        let name = self.class.callentries[self.callentry].routines[self.variant];
        let code = makers.store.publish_as(contract, name, makers.maker(self.class.made_by), draft).ok();
        self.class.gauges.note_routine(code.is_some());
        code
    }
}

impl<C> Factored<C> {
    #[doc(hidden)]
    pub fn new(class: &'static Class, callentry: usize, draft: Option<Draft>) -> Factored<C> {
        Factored { of: Of { class, callentry, variant: 0 }, draft, contract: PhantomData }
    }

    /// It is the variant of this number.
    pub fn variant(mut self, variant: usize) -> Factored<C> {
        self.of.variant = variant;
        self
    }

    pub fn draft(self) -> Option<Draft> {
        self.draft
    }

    /// The same callentry of another quaject, whose draft was filled in otherwise ([`synth::Pattern`]).
    pub fn with(&self, draft: Draft) -> Factored<C> {
        Factored { of: self.of, draft: Some(draft), contract: PhantomData }
    }

    pub fn take_draft(&mut self) -> Option<Draft> {
        self.draft.take()
    }

    /// Stage three.
    pub fn optimize(mut self) -> Factored<C> {
        let Of { class, callentry, .. } = self.of;
        if class.callentries[callentry].peepholes {
            let _stage = stages::enter(Stage::Optimize);
            self.draft = self.draft.take().map(|draft| class.optimize(callentry, draft));
        }
        self
    }

    /// The draft becomes code (R2); the class counts what is refused.
    pub fn publish(self, makers: Makers) -> Option<Code<C>> {
        self.of.publish(&makers, core::any::type_name::<C>(), self.draft?).map(Code::under)
    }

    /// Optimize, publish.
    pub fn create(self, makers: Makers) -> Option<Code<C>> {
        self.optimize().publish(makers)
    }
}
