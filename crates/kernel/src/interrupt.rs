//! Handlers of interrupts (S-24, S-78, S-79): routines that an interrupt enters through a slot and that leave through the
//! machine's end. They keep every register, and name registers of devices by their addresses.

use machine::SampleClock;
use quaject::Makers;
use synth::{Abs32, Draft, Imm32, Label, Paste, Target, Template, template};

/// Where fragments of a device lead that find nothing to do.
pub const NOTHING: Label = Label(0);
const NO_ROOM: Label = Label(1);

template! {
    /// Time for a device between two accesses (S-23). Cost: 1 instruction.
    pub struct Space {}
    "nop",
}

/// A handler in the making.
pub struct HandlerRoutine {
    makers: Makers,
    draft: Draft,
}

impl quaject::Routine for HandlerRoutine {
    fn begin(makers: Makers, _: u64) -> HandlerRoutine {
        HandlerRoutine { makers, draft: Draft::new() }
    }

    fn finish(self) -> Draft {
        self.draft
    }
}

/// What a declaration's callentries use, and the words in front of their fragments.
impl HandlerRoutine {
    pub fn paste(&mut self, fragment: impl Paste) {
        fragment.paste(&mut self.draft);
    }

    /// Where it goes on if there is no room for what was received.
    pub fn no_room(&self) -> Target {
        Target::Label(NO_ROOM)
    }

    pub fn begin_no_room(&mut self) {
        self.draft.place(NO_ROOM);
    }

    /// Where it goes on if there is nothing to do.
    pub fn nothing(&self) -> Target {
        Target::Label(NOTHING)
    }

    /// The part for an interrupt that has brought nothing begins here.
    pub fn begin_nothing(&mut self) {
        self.draft.place(NOTHING);
    }

    /// As much time as the machine wants between two accesses of a device.
    pub fn space(&mut self) {
        for _ in 0..self.makers.machine.access_space() {
            self.paste(Space {});
        }
    }
}

/// How a handler chains (S-80): the word of the machine to which it stores an order to the processor itself.
#[derive(Clone, Copy)]
pub struct Chain {
    pub at: Abs32,
    pub order: Imm32,
}

impl From<&SampleClock> for Chain {
    fn from(clock: &SampleClock) -> Chain {
        let (at, order) = clock.chain;
        Chain { at: Abs32(at), order: Imm32(order) }
    }
}

/// For the golden listings.
pub fn templates() -> [Template; 1] {
    [Space::template()]
}
