//! State machines as routines that Rust calls (S-11, S-116): a machine's code, and the block of memory that it works on.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use machine::{KernelCell, KernelOwn, KernelValue};

use codestore::{Code, WordCall};
use quaject::{Makers, quaject};
use statemachine::{Block, Graph, Id, Places, Word, generate};
use synth::{Abs32, Draft, Fact, Paste, template};

/// The machines of terminals, packed, those in a row joined (S-11): constants of constant tables, found by `build.rs` when the
/// kernel is built.
pub const VT100: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vt100"));
pub const COOK_VT100: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cook_vt100"));
/// Which states of the VT-100 are which of the joined machine.
pub const COOK_VT100_PAIRS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cook_vt100.pairs"));
pub const EDIT_COOK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/edit_cook"));
pub const EDIT_UNSEEN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/edit_unseen"));

template! {
    /// In front of a machine that is called as a procedure, C's calling convention: `eat(to, input, end, _, limit)`. How far it
    /// came is stored then. Cost: 8 instructions around the machine.
    pub struct MachineCalled { read: Abs32, written: Abs32 }
    "push r14",
    "push r15",
    "call 70f",
    "mov qword ptr [{read}], rsi",
    "mov qword ptr [{written}], rdi",
    "pop r15",
    "pop r14",
    "ret",
    "70:",
}

/// A machine as a fragment. Where its code and its states came to lie is known when it is pasted.
pub(crate) struct MachineCode<'a> {
    graph: &'a Graph,
    places: Places,
    offset: KernelValue<u32>,
    states: KernelCell<Vec<(Id, u32)>>,
}

impl<'a> MachineCode<'a> {
    /// The machine on words and arrays at these places.
    pub fn new(graph: &'a Graph, places: Places) -> MachineCode<'a> {
        MachineCode { graph, places, offset: KernelValue::new(0), states: KernelCell::default() }
    }

    /// Where in the routine it begins, and each of its states.
    pub fn placed(self) -> (u64, Vec<(Id, u32)>) {
        (self.offset.get().into(), core::mem::take(&mut *self.states.borrow_mut()))
    }
}

impl Paste for &MachineCode<'_> {
    fn paste(self, draft: &mut Draft) {
        self.offset.set(draft.len() as u32);
        *self.states.borrow_mut() = generate(self.graph, &self.places, draft).states;
    }
}

quaject! {
    /// A line editor, as far as it is code: a machine called as a procedure, and how far it came. The tty's settings are folded
    /// in, so each setting has one.
    #[derive(Default)]
    pub quaject Editor ("tty editor", made by "input", at most 0 inactive)
    facts(FACTS)
    data {
        /// Addresses of the next bytes to be read and written, when it stopped last.
        read: KernelValue<u64>,
        written: KernelValue<u64>,
    }
    factors(editor) {
        let read = Abs32(editor.read.as_ptr() as u64);
        let written = Abs32(editor.written.as_ptr() as u64);
    }
    callouts EditorCallouts<'a> {
        machine: MachineCode<'a>,
    }
    callbacks {}
    callentries EditorCode {
        edit: WordCall(0) named "tty.edit" | "tty.edit_unseen" needs(machine) uses() {
            paste MachineCalled { read, written };
            paste (machine);
        }
    }
}

/// A machine as code. Its block does not move; nobody else knows where it is.
pub struct Automaton {
    code: Code<WordCall>,
    block: KernelOwn<Block>,
    editor: Box<Editor>,
    /// Address of the state in which the machine starts.
    start: u64,
}

/// The routines that an editor can be.
#[derive(Clone, Copy)]
pub(crate) enum Variant {
    Echoes,
    Unseen,
}

/// What a machine shares with others, at addresses that stay for as long as it lives.
pub struct Shared<'a> {
    /// Its first arrays.
    pub arrays: &'a [u64],
    /// Words, and where they are.
    pub words: &'a [(Word, &'a Cell<u32>)],
}

/// How far a machine came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eaten {
    /// Bytes of the input.
    pub taken: usize,
    /// Bytes emitted.
    pub emitted: usize,
    /// What is to be done outside before it goes on; 0: the input or the room is used up.
    pub outside: u64,
}

impl Automaton {
    /// Generates and publishes the code of a machine. `None` without room for code, or where addresses have no short form.
    pub(crate) fn synthesize(
        variant: Variant,
        makers: Makers,
        graph: &Graph,
        shared: &Shared<'_>,
    ) -> Option<Automaton> {
        let block = KernelOwn::new(Block::beside(graph, shared.arrays));
        let editor: Box<Editor> = Box::default();
        let mut places = block.places();
        for (word, cell) in shared.words {
            *places.words.get_mut(usize::from(*word))? = cell.as_ptr() as u64;
        }
        let callouts = EditorCallouts { machine: Some(MachineCode::new(graph, places)) };
        let factored = EditorCode::edit(&editor, makers, &callouts);
        let code = factored.variant(variant as usize).create(makers)?;
        let (_, states) = callouts.machine?.placed();
        let start = code.entry().address() + u64::from(states.iter().find(|state| state.0 == 0)?.1);
        Some(Automaton { code, block, editor, start })
    }

    /// Back to the state in which it starts.
    pub fn restart(&self) {
        self.block.state().set(self.start);
    }

    /// A word that is not shared.
    pub fn word(&self, word: Word) -> &Cell<u32> {
        &self.block.memory().words[usize::from(word)]
    }

    /// Where the code begins.
    pub fn entry(&self) -> u64 {
        self.code.entry().address()
    }

    /// Feeds `input`. Emitted bytes are stored from the address `to` on; no byte is taken when `limit` is reached, so there
    /// must be room behind it for all that one byte may become.
    pub fn eat(&self, input: &[u8], to: u64, limit: u64) -> Eaten {
        let input = input.as_ptr_range();
        let outside = self.code.call([to, input.start as u64, input.end as u64, 0, limit, 0]);
        let (read, written) = (self.editor.read.get(), self.editor.written.get());
        Eaten { taken: (read - input.start as u64) as usize, emitted: (written - to) as usize, outside }
    }
}

/// What the holes of this template and of the language's stand for.
pub(crate) const FACTS: &[Fact] = &[
    Fact::word("read", "the word for the next byte to be read, when the machine stops", "the machine goes"),
    Fact::word("written", "the word for the next byte to be emitted, when the machine stops", "the machine goes"),
    Fact::word("state", "the machine's state, a code address (S-116)", "never"),
    Fact::word("input", "the byte taken last, while something outside is done", "never"),
    Fact::half("word", "a word of the machine", "the machine goes"),
    Fact::half("other", "another word of the machine", "the machine goes"),
    Fact::half("index", "the word that says which element", "the machine goes"),
    Fact::value("array", "an array of the machine: the lines of input, the marks of their ends", "the terminal goes"),
    Fact::value("set", "a set of bytes", "the machine goes"),
    Fact::value("mask", "elements of an array less one, or the bits of a byte that change", "never"),
    Fact::value("number", "a number in the machine's tables, or of what is to be done outside", "never"),
    Fact::value("byte", "a byte that is emitted or stored whatever comes", "never"),
    Fact::value("less", "the first byte of the range, negative: which byte is which key", "tcsetattr: another routine"),
    Fact::value("span", "bytes of the range, less one: which byte is which key", "tcsetattr: another routine"),
    Fact::value("bound", "first byte of the upper ranges: which byte is which key", "tcsetattr: another routine"),
    Fact::value("pause", "distance to where the state rests without input or room", "never"),
    Fact::value("to", "distance to where the machine goes on", "never"),
    Fact::value("no", "distance to where the machine goes on if not", "never"),
];
