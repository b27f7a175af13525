//! Register contracts as types, and the routines that keep them.

use codestore::CodeStore;
use machine::Machine;
use synth::{Draft, Target};

/// Who can make code: the machine for its fragments, the store to publish in.
#[derive(Clone, Copy)]
pub struct Makers {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
    watch: Option<Watch>,
}

/// Where a routine goes instead of out, when people watch it. The addresses are of code with the routine's contract.
#[derive(Clone, Copy)]
pub struct Watch {
    /// Instead of the machine's fragment `leave`, with the same registers and stack.
    pub leave: u64,
    /// Instead of the way to the Rust twin.
    pub slow: u64,
    /// A callback that is bound: its name, and where it leads by the label of the way out that it has unconnected.
    pub callback: Option<(&'static str, [u64; 3])>,
}

impl Makers {
    pub const fn new(machine: &'static dyn Machine, store: &'static CodeStore) -> Makers {
        Makers { machine, store, watch: None }
    }

    /// The same, for routines that are watched.
    pub fn watching(self, watch: Watch) -> Makers {
        Makers { watch: Some(watch), ..self }
    }

    /// A kernel without the monitor has no code for it.
    #[inline(always)]
    pub fn watch(&self) -> Option<Watch> {
        if cfg!(feature = "watch") { self.watch } else { None }
    }
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
    /// Where a callback leads: where it is bound while the kernel runs, otherwise the declared way out.
    fn callback(&self, _name: &'static str, unconnected: Target) -> Target {
        unconnected
    }
    /// Appends the ways out.
    fn finish(self) -> Draft;
}
