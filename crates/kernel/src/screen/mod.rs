//! The text window (S-107): what programs write to a terminal of 24 lines of 80 columns goes through the output filter and a
//! VT-100 into cells.
//!
//! ```text
//!   program's bytes ─▶ CookTTYout × VT-100, one machine ─▶ cells        OPOST, ONLCR: `Gate::Cooked`
//!   program's bytes ─▶ VT-100 ─▶ cells                                  no OPOST: `Gate::Raw`
//!   echo, other settings ─▶ the tty's filter in Rust, its ring ─▶ VT-100 ─▶ cells
//! ```
//! Both machines work on the same words and cells, so either can go on where the other stopped; their states are told apart by
//! `whose`. As code a state is a code address (S-116), and the routine of `write` contains the machine: no layer and no
//! queue lies between the program's buffer and the cells. Interpreted, the same graphs are the generic twin. What a machine cannot
//! do is done here and in `outside`.

mod outside;
mod template;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use machine::stages::{self, Stage};
use machine::{KernelCell, KernelOwn, KernelValue};
pub use statemachine::terminal::{COLUMNS, ROWS};
use statemachine::terminal::{cook_words, vt_words};
use statemachine::{Block, Graph, Id, Memory, Outside, Product};

use crate::automaton;
use crate::call::FileCall;
use crate::stream::UserRange;
use crate::tty::{Gate, Tty};
use codestore::{Code, WordCall};
use outside::{Style, Surroundings};
pub use template::Writer;
use template::{Kept, Routines};

/// The machines of all windows: there from the first that is opened on.
pub struct Machines {
    /// The output filter and the VT-100 as one.
    cooked: Graph,
    /// The VT-100 alone, once it was needed.
    plain: KernelCell<Option<Arc<Graph>>>,
    /// States that are the same: of `plain`, and of `cooked`.
    pairs: Vec<(Id, Id)>,
    /// The code of the first window.
    cooked_pattern: KernelCell<Option<Kept<FileCall>>>,
    plain_pattern: KernelCell<Option<Kept<WordCall>>>,
}

impl Machines {
    /// The filter and the VT-100, which were joined when the kernel was built (S-11).
    pub fn new() -> Arc<Machines> {
        let _stage = stages::enter(Stage::Factor);
        Arc::new(Machines {
            cooked: Graph::unpacked(automaton::COOK_VT100),
            plain: KernelCell::new(None),
            pairs: Product::unpacked_pairs(automaton::COOK_VT100_PAIRS),
            cooked_pattern: KernelCell::new(None),
            plain_pattern: KernelCell::new(None),
        })
    }

    fn plain(&self) -> Arc<Graph> {
        let unpacked = || Arc::new(Graph::unpacked(automaton::VT100));
        self.plain.borrow_mut().get_or_insert_with(unpacked).clone()
    }

    /// The state of the machine for `gate` that is the other's state `id`.
    fn twin(&self, gate: Gate, id: Id) -> Id {
        let twin = self.pairs.iter().find_map(|&(plain, cooked)| match gate {
            Gate::Cooked => (plain == id).then_some(cooked),
            _ => (cooked == id).then_some(plain),
        });
        twin.unwrap_or(0)
    }
}

/// What synthesized code leaves for Rust.
#[repr(C)]
#[derive(Default)]
struct Words {
    /// What has to be done outside before the routine's write goes on.
    pending: KernelValue<u64>,
    /// Address of the first byte that no machine has taken.
    next: KernelValue<u64>,
    /// The machine that ran last: a `Gate`, or that and `INTERPRETED`, with which no routine runs it.
    whose: KernelValue<u64>,
    /// Where the VT-100's code begins, once there is some.
    plain_entry: KernelValue<u64>,
    /// The VT-100's state, and its input while it is outside.
    plain: [KernelValue<u64>; 2],
}

const INTERPRETED: u64 = 1 << 8;

/// A text window.
///
/// Invariants: the machine that ran last rests in one of its states unless something is pending; the cursor's words agree
/// with each other.
pub struct TextWindow {
    machines: Arc<Machines>,
    /// Of the product: the filter's words first, then those of the VT-100.
    block: KernelOwn<Block>,
    words: Box<Words>,
    /// The state of the interpreted machine.
    at: KernelValue<Id>,
    style: Style,
    code: KernelCell<Option<Routines>>,
}

/// Where programs may look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    pub row: u32,
    pub column: u32,
}

impl TextWindow {
    /// A blank window, without code.
    pub fn new(machines: &Arc<Machines>) -> TextWindow {
        let _stage = stages::enter(Stage::Allocate);
        let block = KernelOwn::new(Block::new(&machines.cooked));
        let window = TextWindow {
            machines: machines.clone(),
            block,
            words: Box::default(),
            at: KernelValue::new(0),
            style: Style::default(),
            code: KernelCell::new(None),
        };
        window.surroundings().reset();
        window
    }

    /// Shows bytes, through the filter if the gate is `Cooked`. Returns what the terminal answers to questions among them: that is
    /// input.
    pub fn put(&self, gate: Gate, bytes: &[u8], tty: &Tty) -> Vec<u8> {
        let mut outside = self.surroundings();
        self.finish(&mut outside);
        self.select(gate);
        self.run(bytes, tty, &mut outside);
        outside.answer
    }

    /// What the synthesized `write` has done of this write before it came here: it did what it could and left the rest. Returns the
    /// number of bytes, and the answer.
    pub fn resume(&self, from: UserRange) -> (usize, Vec<u8>) {
        if self.words.pending.get() == 0 {
            return (0, Vec::new());
        }
        let done = self.words.next.get().wrapping_sub(from.address.0) as usize;
        let mut outside = self.surroundings();
        self.finish(&mut outside);
        (if done <= from.bytes { done } else { 0 }, outside.answer)
    }

    /// Does what is pending, up to the machine's next state.
    fn finish(&self, outside: &mut Surroundings<'_>) {
        let number = self.words.pending.replace(0);
        if number != 0
            && let Some(code) = &*self.code.borrow()
        {
            outside.call(number as u16, self.vt());
            code.run(self.whose(), &[], &self.words, |number| outside.call(number, self.vt()));
        }
    }

    fn run(&self, bytes: &[u8], tty: &Tty, outside: &mut Surroundings<'_>) {
        if let Some(code) = &*self.code.borrow() {
            return code.run(self.whose(), bytes, &self.words, |number| outside.call(number, self.vt()));
        }
        let is_cooked = self.whose() == Gate::Cooked;
        let memory = if is_cooked { self.block.memory() } else { self.vt() };
        let plain = if is_cooked { None } else { Some(self.machines.plain()) };
        let graph = plain.as_deref().unwrap_or(&self.machines.cooked);
        let shared = tty.columns().into_iter().zip(self.block.memory().words);
        shared.clone().for_each(|(theirs, ours)| ours.set(theirs.get()));
        let take = |at, byte: &u8| graph.take(at, memory, *byte, &mut |_| (), outside);
        self.at.set(bytes.iter().fold(self.at.get(), take));
        shared.for_each(|(theirs, ours)| theirs.set(ours.get()));
    }

    fn whose(&self) -> Gate {
        if self.words.whose.get() & !INTERPRETED == Gate::Cooked as u64 { Gate::Cooked } else { Gate::Raw }
    }

    /// The other machine goes on in the same state. Without room for its code all is interpreted from now on.
    fn select(&self, gate: Gate) {
        if self.whose() == gate {
            return;
        }
        let mut code = self.code.borrow_mut();
        let state = match &*code {
            Some(code) => code.state_at(self.whose(), self.state(self.whose()).get()),
            None => self.at.get(),
        };
        let twin = self.machines.twin(gate, state);
        let address = code.as_mut().and_then(|code| {
            self.make_plain(code)?;
            code.address_of(gate, twin)
        });
        match address {
            Some(address) => {
                self.state(gate).set(address);
                self.words.whose.set(gate as u64);
            }
            None => {
                *code = None;
                self.at.set(twin);
                self.words.whose.set(gate as u64 | INTERPRETED);
            }
        }
    }

    fn state(&self, gate: Gate) -> &Cell<u64> {
        if gate == Gate::Cooked { self.block.state() } else { &self.words.plain[0] }
    }

    /// What the VT-100 has.
    fn vt(&self) -> Memory<'_> {
        self.block.memory().behind(cook_words::COUNT)
    }

    fn word(&self, word: u16) -> u32 {
        self.vt().words[usize::from(word)].get()
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings::new(self.vt(), &self.style)
    }

    /// The cursor; its column is at most the last.
    pub fn cursor(&self) -> Cursor {
        Cursor { row: self.word(vt_words::ROW), column: self.word(vt_words::COLUMN).min(COLUMNS - 1) }
    }

    /// Characters and, above them, attributes, row by row.
    pub fn cells(&self) -> Vec<u16> {
        self.surroundings().cells()
    }

    /// The synthesized `write`, once there is one.
    pub fn code(&self) -> Option<Code<FileCall>> {
        self.code.borrow().as_ref().map(|code| code.write.clone())
    }

    /// Where the VT-100 stands: its state, as the number in its graph, and its words. For those who compare.
    #[expect(clippy::disallowed_methods, reason = "some twenty words")]
    pub fn standing(&self) -> (Id, Vec<u32>) {
        let gate = self.whose();
        let at = match &*self.code.borrow() {
            Some(code) => code.state_at(gate, self.state(gate).get()),
            None => self.at.get(),
        };
        let plain = if gate == Gate::Cooked { self.machines.twin(Gate::Raw, at) } else { at };
        (plain, self.vt().words.iter().map(Cell::get).collect())
    }
}
