//! Register contracts as types, and the routines that keep them.

use codestore::{CodeStore, Maker, WordCall};
use machine::{Machine, TteId};
use synth::{Draft, Label, Paste, Target};

/// Who can make code: the machine for its fragments, the store to publish in.
#[derive(Clone, Copy)]
pub struct Makers {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
    #[cfg(feature = "watch")]
    watch: Option<Watch>,
    thread: Option<TteId>,
    call: Option<u16>,
}

/// Where a routine goes instead of out, when people watch it. The addresses are of code with the routine's contract.
#[derive(Clone, Copy)]
pub struct Watch {
    /// Instead of the machine's fragment `leave`, with the same registers and stack.
    pub leave: u64,
    /// Instead of the way to the Rust twin.
    pub slow: u64,
    /// A callback that is bound: its name, and where it leads by the label of the way out that it has unconnected.
    pub callback: Option<(&'static str, [u64; 4])>,
}

impl Makers {
    pub const fn new(machine: &'static dyn Machine, store: &'static CodeStore) -> Makers {
        Makers {
            machine,
            store,
            #[cfg(feature = "watch")]
            watch: None,
            thread: None,
            call: None,
        }
    }

    /// The same, for routines of one thread alone.
    pub const fn of_thread(self, thread: TteId) -> Makers {
        Makers { thread: Some(thread), ..self }
    }

    /// The same, for a routine of which there is one for each system call.
    pub const fn of_call(self, number: usize) -> Makers {
        Makers { call: Some(number as u16), ..self }
    }

    /// What asks for a routine of a class that is made by `made_by`.
    #[inline(always)]
    pub(crate) fn maker(&self, made_by: &'static str) -> Maker {
        // What is there for one call is made when that call is made often.
        let what = if self.call.is_some() { "call" } else { made_by };
        Maker { what, thread: self.thread.map(|thread| thread.0), call: self.call }
    }

    /// The same, for routines that are watched.
    #[cfg(feature = "watch")]
    pub fn watching(self, watch: Watch) -> Makers {
        Makers { watch: Some(watch), ..self }
    }

    /// A kernel without the monitor has no code for it.
    #[cfg(not(feature = "watch"))]
    pub fn watching(self, _: Watch) -> Makers {
        self
    }

    #[cfg(not(feature = "watch"))]
    #[inline(always)]
    pub fn watch(&self) -> Option<Watch> {
        None
    }

    #[cfg(feature = "watch")]
    pub fn watch(&self) -> Option<Watch> {
        self.watch
    }
}

/// What holds when a routine is entered and when it leaves: which registers mean what, and on which stack. An empty type;
/// `Code<C>`, `Entry<C>` and `Slot<C>` carry it.
pub trait Contract: 'static {
    /// For people, and to compare contracts where types cannot.
    const NAME: &'static str;
    /// Whether the optimizer may change routines of this contract: not where a word named by its address may be a device's, nor
    /// where distances between instructions are filled in already.
    const PEEPHOLES: bool = true;
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
    /// Appends a list that several callentries have ([`fragments!`](crate::fragments)).
    fn include(&mut self, list: impl List<Self>)
    where
        Self: Sized,
    {
        list.append_to(self);
    }
    /// Appends the ways out.
    fn finish(self) -> Draft;
}

/// Fragments in order, with what is in their holes. Made by [`fragments!`](crate::fragments).
pub trait List<R> {
    fn append_to(self, routine: &mut R);
}

/// A routine that has no ways out but those among its fragments.
pub struct Straight {
    draft: Draft,
}

impl Routine for Straight {
    fn begin(_: Makers, _: u64) -> Straight {
        Straight { draft: Draft::short() }
    }

    fn finish(self) -> Draft {
        self.draft
    }
}

impl Straight {
    const INNER: Label = Label(0);

    pub fn paste(&mut self, fragment: impl Paste) {
        fragment.paste(&mut self.draft);
    }

    /// The part that the others call.
    pub fn inner(&self) -> Target {
        Target::Label(Straight::INNER)
    }

    pub fn begin_inner(&mut self) {
        self.draft.place(Straight::INNER);
    }
}

/// Procedures of words keep C's calling convention. Those of the kernel are state machines.
impl Contract for WordCall {
    const NAME: &'static str = "word call";
    const PEEPHOLES: bool = false;
    type Routine = Straight;
}
