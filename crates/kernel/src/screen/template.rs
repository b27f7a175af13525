//! The text window's machine code: `write` through filter and VT-100 into the cells, one routine.
//!
//! ```text
//!   write     checks ─▶ call inner ─▶ the program's registers ─▶ leave      gate open: filter and VT-100, in this routine
//!             checks ─▶ call plain ─▶ …                                     gate raw: the VT-100 alone
//!   inner:    the product's code (S-11)
//!   plain,    C's calling convention around either machine, for bytes that Rust holds
//! ```
//! Both ends of the buffer are touched before anything is stored, so a fault is the slow way's; a buffer of at most
//! a page lies in two. What the machine cannot do ends it: the routine leaves word how far it came, and Rust goes on there.

use alloc::vec::Vec;
use core::mem::offset_of;

use abi::nr;
use codestore::{Code, WordCall};
use machine::PAGE_BYTES;
use quaject::{Factored, Makers, quaject};
use statemachine::terminal::cook_words;
use statemachine::{Id, Places};
use synth::{Abs32, Fact, Imm32, Target, template};

use super::{TextWindow, Words};
use crate::automaton::MachineCode;
use crate::call::FileCall;
use crate::call::fragments::{AllDone, GiveBack, Keep, OneToMost, UserAddress};
use crate::tty::{Gate, MayFilter, OutputWords, RawCheck, Tty};

template! {
    /// Bytes are characters (no IUTF8). Cost: 2 instructions.
    pub struct BytesOnly { continuation: Abs32, slow: Target }
    "cmp dword ptr [{continuation}], -1",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// This machine ran last: its state is the window's. Cost: 2 instructions.
    pub struct RanLast { whose: Abs32, machine: Imm32, slow: Target }
    "cmp qword ptr [{whose}], {machine}",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// The program's buffer is there. Out: rax lost. Cost: 2 instructions.
    pub struct TouchEnds {}
    "movzx eax, byte ptr [rsi]",
    "movzx eax, byte ptr [rsi + rdx - 1]",
}

template! {
    /// The machine takes the buffer. Out: eax = what is to be done outside, rsi = first byte not taken; six of the program's
    /// registers on the stack. Cost: 8 instructions.
    pub struct IntoMachine { inner: Target }
    "push rdx",
    "push r9",
    "push r10",
    "push r11",
    "push r14",
    "push r15",
    "add rdx, rsi",
    ".byte 0xe8",                           // call inner
    ".long {inner}",
}

template! {
    /// The program's registers again, or the rest is for Rust. Cost: 8 instructions, 11 if it is.
    pub struct FromMachine { pending: Abs32, next: Abs32, slow_many: Target }
    "pop r15",
    "pop r14",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop rdx",
    "test eax, eax",
    "je 71f",
    "mov qword ptr [{pending}], rax",
    "mov qword ptr [{next}], rsi",
    ".byte 0xe9",                           // jmp slow
    ".long {slow_many}",
    "71:",
}

template! {
    /// A machine as a procedure of Rust. In: rdi, rsi = the bytes. Out: eax = what is to be done outside. Cost: 9 instructions.
    pub struct RunMachine { inner: Target, next: Abs32 }
    "push r14",
    "push r15",
    "mov rdx, rsi",
    "mov rsi, rdi",
    ".byte 0xe8",                           // call inner
    ".long {inner}",
    "mov qword ptr [{next}], rsi",
    "pop r15",
    "pop r14",
    "ret",
}

/// Most bytes that the routine takes at once: interrupts wait meanwhile.
const BYTES_MAX: u32 = PAGE_BYTES as u32;

quaject! {
    /// A text window as its open files see it: between a program and cells.
    pub quaject Writer ("text window", made by "open", at most 0 inactive)
    data { output: u64, words: u64 }
    factors(writer) {
        let output = |offset: usize| Abs32(writer.output + offset as u64);
        let word = |offset: usize| Abs32(writer.words + offset as u64);
        let gate = output(offset_of!(OutputWords, gate));
        let continuation = output(offset_of!(OutputWords, continuation));
        let whose = word(offset_of!(Words, whose));
        let pending = word(offset_of!(Words, pending));
        let next = word(offset_of!(Words, next));
        let most = Imm32(BYTES_MAX - 1);
    }
    callouts WriterCallouts<'a> {
        /// The filter and the VT-100 as one machine.
        product: MachineCode<'a>,
        /// The VT-100 alone.
        vt: MachineCode<'a>,
        /// Where `plain` has that machine.
        vt_at: Target,
        /// Where `write` has the product.
        product_at: Target,
    }
    callbacks {}
    callentries WriterCode {
        write: FileCall(nr::WRITE) named "window.write" needs(product, vt_at) uses(user_limit, slow, slow_many, many, inner) {
            paste MayFilter { gate, raw: many };
            paste BytesOnly { continuation, slow };
            paste RanLast { whose, machine: Imm32(Gate::Cooked as u32), slow };
            paste OneToMost { most, slow };
            paste UserAddress { user_limit, slow };
            paste Keep {};
            paste_user_many TouchEnds {};
            paste IntoMachine { inner };
            paste FromMachine { pending, next, slow_many };
            paste GiveBack {};
            paste AllDone {};
            leave;
            begin_many;
            paste RawCheck { gate, slow };
            paste RanLast { whose, machine: Imm32(Gate::Raw as u32), slow };
            paste OneToMost { most, slow };
            paste UserAddress { user_limit, slow };
            paste Keep {};
            paste_user_many TouchEnds {};
            paste IntoMachine { inner: *vt_at };
            paste FromMachine { pending, next, slow_many };
            paste GiveBack {};
            paste AllDone {};
            leave;
            begin_inner;
            paste (product);
        }
        /// The VT-100 alone, for bytes that Rust holds.
        plain: WordCall(0) named "window.plain" needs(vt) uses(inner) {
            paste RunMachine { inner, next };
            begin_inner;
            paste (vt);
        }
        /// As `write`, for bytes that Rust holds.
        cooked: WordCall(0) named "window.cooked" needs(product_at) uses() {
            paste RunMachine { inner: *product_at, next };
        }
    }
}

/// What was made for a window.
pub(super) struct Routines {
    pub write: Code<FileCall>,
    cooked: Code<WordCall>,
    plain: Code<WordCall>,
    /// The states of either machine and their addresses.
    cooked_states: Vec<(Id, u64)>,
    plain_states: Vec<(Id, u64)>,
}

impl Routines {
    /// Runs a machine on bytes that Rust holds, and what is outside in between.
    pub fn run(&self, gate: Gate, bytes: &[u8], words: &Words, mut outside: impl FnMut(u16)) {
        let code = if gate == Gate::Cooked { &self.cooked } else { &self.plain };
        let range = bytes.as_ptr_range();
        words.next.set(range.start as u64);
        loop {
            match code.call([words.next.get(), range.end as u64, 0, 0, 0, 0]) {
                0 => return,
                number => outside(number as u16),
            }
        }
    }

    fn states(&self, gate: Gate) -> &[(Id, u64)] {
        if gate == Gate::Cooked { &self.cooked_states } else { &self.plain_states }
    }

    pub fn state_at(&self, gate: Gate, address: u64) -> Id {
        self.states(gate).iter().find(|state| state.1 == address).map_or(0, |state| state.0)
    }

    /// Where the state's code is.
    pub fn address_of(&self, gate: Gate, state: Id) -> u64 {
        let mut states = self.states(gate).iter();
        states.find(|known| known.0 == state).map_or(0, |state| state.1)
    }
}

impl TextWindow {
    /// Connects a program's `write`, the filter of `tty` and the cells: the interfacer's stages, but for the optimizer's, for
    /// distances in a machine are filled in already. The routines know addresses inside the tty and the window. Without
    /// room for them all is interpreted.
    pub fn synthesize(&self, tty: &Tty, makers: Makers) {
        let Some(routines) = self.make(tty, makers) else { return };
        let gate = self.whose();
        self.state(gate).set(routines.address_of(gate, self.at.get()));
        *self.code.borrow_mut() = Some(routines);
    }

    fn make(&self, tty: &Tty, makers: Makers) -> Option<Routines> {
        let areas = self.areas(tty);
        let mut pattern = self.machines.pattern.borrow_mut();
        if pattern.is_none() {
            *pattern = Some(self.first(tty, makers)?);
        }
        let pattern = pattern.as_ref()?;
        let of_pattern = |address: u64| {
            let mut pairs = pattern.areas.iter().zip(&areas);
            let found = pairs.find_map(|((start, bytes), (other, _))| {
                let offset = address.wrapping_sub(*start);
                (offset < *bytes).then(|| other + offset)
            });
            found.unwrap_or(address)
        };
        let plain = pattern.plain.for_others(of_pattern).publish(makers)?;
        let plain_states = addresses(&pattern.plain_states, plain.entry());
        let vt_at = plain.entry() + pattern.vt_at;
        let write = pattern.write.for_others(|address| if address == VT { vt_at } else { of_pattern(address) });
        let write = write.publish(makers)?;
        let cooked_states = addresses(&pattern.cooked_states, write.entry());
        let product_at = Some(Target::Address(write.entry() + pattern.product_at));
        let callouts = WriterCallouts { product_at, ..Default::default() };
        let cooked = WriterCode::cooked(&self.writer(tty), makers, &callouts).create(makers)?;
        Some(Routines { write, cooked, plain, cooked_states, plain_states })
    }

    fn writer(&self, tty: &Tty) -> Writer {
        Writer {
            output: core::ptr::from_ref(tty.output_words()) as u64,
            words: core::ptr::from_ref(&*self.words) as u64,
        }
    }

    /// All that the code of a window names and others do not.
    fn areas(&self, tty: &Tty) -> Vec<(u64, u64)> {
        let output = core::ptr::from_ref(tty.output_words()) as u64;
        let words = core::ptr::from_ref(&*self.words) as u64;
        let mut areas = self.block.areas();
        areas.extend([(output, size_of::<OutputWords>() as u64), (words, size_of::<Words>() as u64)]);
        areas
    }

    /// Generates the code, of which that of the other windows is a copy.
    fn first(&self, tty: &Tty, makers: Makers) -> Option<Pattern> {
        let mut places = self.block.places();
        // The filter's words are those of the tty's own.
        for (place, column) in places.words.iter_mut().zip(tty.columns()) {
            *place = column.as_ptr() as u64;
        }
        let words = places.words[cook_words::COUNT..].to_vec();
        let [state, input] = [0, 1].map(|word| self.words.plain[word].as_ptr() as u64);
        let vt = Places { state, input, words, ..places.clone() };
        let callouts = WriterCallouts {
            product: Some(MachineCode::new(&self.machines.cooked, places)),
            vt: Some(MachineCode::new(&self.machines.plain, vt)),
            vt_at: Some(Target::Address(VT)),
            product_at: None,
        };
        let writer = self.writer(tty);
        let plain = WriterCode::plain(&writer, makers, &callouts);
        let write = WriterCode::write(&writer, makers, &callouts);
        let (vt_at, plain_states) = callouts.vt?.placed();
        let (product_at, cooked_states) = callouts.product?.placed();
        Some(Pattern { plain, plain_states, vt_at, write, cooked_states, product_at, areas: self.areas(tty) })
    }
}

/// The first window's code, and what it names. Another's is the same, with the addresses of that one's words and cells.
pub(super) struct Pattern {
    plain: Factored<WordCall>,
    plain_states: Vec<(Id, u32)>,
    /// Where in `plain` the VT-100 begins.
    vt_at: u64,
    write: Factored<FileCall>,
    cooked_states: Vec<(Id, u32)>,
    /// Where in `write` the product begins.
    product_at: u64,
    areas: Vec<(u64, u64)>,
}

/// Where the VT-100 alone will be, in the pattern: no address of anything.
const VT: u64 = 1;

fn addresses(states: &[(Id, u32)], entry: u64) -> Vec<(Id, u64)> {
    states.iter().map(|(id, offset)| (*id, entry + u64::from(*offset))).collect()
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 6] {
    [
        BytesOnly::template(),
        RanLast::template(),
        TouchEnds::template(),
        IntoMachine::template(),
        FromMachine::template(),
        RunMachine::template(),
    ]
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "gate",
        "which way is open now: through the filter, raw, or Rust's",
        "tcsetattr, ^S: looked at in each call",
    ),
    Fact::value("raw", "the part for a tty that does not process output", "never"),
    Fact::half("continuation", "which bytes go on a character (IUTF8): none", "tcsetattr: looked at in each call"),
    Fact::word("whose", "the machine whose state is the window's", "an echo, tcsetattr: looked at in each call"),
    Fact::value("machine", "this machine", "never"),
    Fact::value("inner", "the machine: filter and VT-100 as one, or the VT-100", "the window goes"),
    Fact::word("pending", "what Rust has to do outside the machine", "never"),
    Fact::word("next", "first byte that no machine has taken", "never"),
    Fact::value("pause", "where the machine rests in this state", "never"),
    Fact::value("to", "where it goes on", "never"),
    Fact::value("no", "where it goes on if not", "never"),
    Fact::value("less", "minus the first byte of the range that text is in", "never"),
    Fact::value("span", "how many bytes the range has, less one", "never"),
    Fact::value("bound", "first byte of a range", "never"),
    Fact::word("state", "the machine's state, a code address (S-116)", "never"),
    Fact::word("input", "the byte taken last, while Rust does what is outside", "never"),
    Fact::half("word", "a word of the machine: the cursor, its column, a number of a sequence", "the window goes"),
    Fact::half("other", "another word of the machine", "the window goes"),
    Fact::half("index", "the word that says which element", "the window goes"),
    Fact::half("cells", "what is cleared", "the window goes"),
    Fact::value("above", "the attribute of the next character", "the window goes"),
    Fact::value("array", "the window's cells, or the bytes of a sequence", "the window goes"),
    Fact::value("mask", "elements of the array, less one", "never"),
];
