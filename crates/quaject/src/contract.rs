//! Register contracts as types, and the routines that keep them.

use codestore::CodeStore;
use machine::Machine;
use synth::Draft;

/// Who can make code: the machine for its fragments, the store to publish in.
#[derive(Clone, Copy)]
pub struct Makers {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
}

/// What holds when a routine is entered and when it leaves: which registers mean what, and on which stack. An empty type;
/// `Code<C>`, `Entry<C>` and `Slot<C>` carry it.
pub trait Contract: 'static {
    /// For people, and to compare contracts where types cannot.
    const NAME: &'static str;
    /// How routines of this contract begin, touch program memory, and end.
    type Routine: Routine;
}

/// A routine in the making: the creator pastes the declared fragments between `begin` and `finish`.
pub trait Routine {
    /// A routine that does call `number`.
    fn begin(makers: Makers, number: u64) -> Self;
    /// Appends the ways out.
    fn finish(self) -> Draft;
}
