//! The text window's machine code: `write` through filter and VT-100 into the cells, one routine.
//!
//! ```text
//!   write     checks ─▶ call inner ─▶ the program's registers ─▶ leave      gate open: filter and VT-100, in this routine
//!             checks ─▶ call [plain] ─▶ …                                   gate raw: the VT-100 alone, made when it is needed
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
use synth::{Abs32, Fact, Imm32, Pattern, Target, template};

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
    /// As `IntoMachine`, where the machine lies elsewhere: its address is in a word. Cost: 8 instructions.
    pub struct IntoMachineElsewhere { plain: Abs32 }
    "push rdx",
    "push r9",
    "push r10",
    "push r11",
    "push r14",
    "push r15",
    "add rdx, rsi",
    "call qword ptr [{plain}]",
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
    facts(FACTS)
    data { output: u64, words: u64 }
    factors(writer) {
        let output = |offset: usize| Abs32(writer.output + offset as u64);
        let word = |offset: usize| Abs32(writer.words + offset as u64);
        let gate = output(offset_of!(OutputWords, gate));
        let continuation = output(offset_of!(OutputWords, continuation));
        let whose = word(offset_of!(Words, whose));
        let pending = word(offset_of!(Words, pending));
        let next = word(offset_of!(Words, next));
        let plain = word(offset_of!(Words, plain_entry));
        let most = Imm32(BYTES_MAX - 1);
    }
    callouts WriterCallouts<'a> {
        /// The filter and the VT-100 as one machine.
        product: MachineCode<'a>,
        /// The VT-100 alone.
        vt: MachineCode<'a>,
        /// Where `write` has the product.
        product_at: Target,
    }
    callbacks {}
    callentries WriterCode {
        write: FileCall(nr::WRITE) named "window.write" needs(product) uses(user_limit, slow, slow_many, many, inner) {
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
            paste IntoMachineElsewhere { plain };
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

/// A machine as code.
struct Machine {
    code: Code<WordCall>,
    /// Its states and their addresses.
    states: Vec<(Id, u64)>,
}

/// What was made for a window.
pub(super) struct Routines {
    pub write: Code<FileCall>,
    cooked: Machine,
    /// Made when it is needed: for an echo, or without `OPOST`.
    plain: Option<Machine>,
    makers: Makers,
}

impl Routines {
    /// Runs a machine on bytes that Rust holds, and what is outside in between.
    pub fn run(&self, gate: Gate, bytes: &[u8], words: &Words, mut outside: impl FnMut(u16)) {
        let Some(machine) = self.machine(gate) else { return };
        let range = bytes.as_ptr_range();
        words.next.set(range.start as u64);
        loop {
            match machine.code.call([words.next.get(), range.end as u64, 0, 0, 0, 0]) {
                0 => return,
                number => outside(number as u16),
            }
        }
    }

    fn machine(&self, gate: Gate) -> Option<&Machine> {
        if gate == Gate::Cooked { Some(&self.cooked) } else { self.plain.as_ref() }
    }

    fn states(&self, gate: Gate) -> &[(Id, u64)] {
        self.machine(gate).map_or(&[], |machine| &machine.states)
    }

    pub fn state_at(&self, gate: Gate, address: u64) -> Id {
        self.states(gate).iter().find(|state| state.1 == address).map_or(0, |state| state.0)
    }

    /// Where the state's code is. `None`: the machine has no code.
    pub fn address_of(&self, gate: Gate, state: Id) -> Option<u64> {
        self.states(gate).iter().find(|known| known.0 == state).map(|state| state.1)
    }
}

impl TextWindow {
    /// Connects a program's `write`, the filter of `tty` and the cells: the interfacer's stages, but for the optimizer's, for
    /// distances in a machine are filled in already. The routines know addresses inside the tty and the window. Without
    /// room for them all is interpreted.
    pub fn synthesize(&self, tty: &Tty, makers: Makers) {
        let Some(routines) = self.make(tty, makers) else { return };
        self.select(Gate::Cooked);
        self.state(Gate::Cooked).set(routines.address_of(Gate::Cooked, self.at.get()).unwrap_or(0));
        self.words.whose.set(Gate::Cooked as u64);
        *self.code.borrow_mut() = Some(routines);
    }

    fn make(&self, tty: &Tty, makers: Makers) -> Option<Routines> {
        let areas = self.areas(tty);
        let mut kept = self.machines.cooked_pattern.borrow_mut();
        if kept.is_none() {
            *kept = Some(self.cooked_pattern(tty, makers, &areas)?);
        }
        let kept = kept.as_ref()?;
        let write = kept.filled(&areas).publish(makers)?;
        let at = write.entry().address();
        let (states, product_at) = (kept.states_at(at), Target::Address(at + kept.inner));
        let callouts = WriterCallouts { product_at: Some(product_at), ..Default::default() };
        let code = WriterCode::cooked(&self.writer(Some(tty)), makers, &callouts).create(makers)?;
        Some(Routines { write, cooked: Machine { code, states }, plain: None, makers })
    }

    /// Makes the code of the VT-100 alone, if there is none. `None`: without room.
    pub(super) fn make_plain(&self, routines: &mut Routines) -> Option<()> {
        if routines.plain.is_none() {
            let areas = self.own_areas();
            let mut kept = self.machines.plain_pattern.borrow_mut();
            if kept.is_none() {
                *kept = Some(self.plain_pattern(routines.makers, &areas)?);
            }
            let kept = kept.as_ref()?;
            let code = kept.filled(&areas).publish(routines.makers)?;
            self.words.plain_entry.set(code.entry().address() + kept.inner);
            routines.plain = Some(Machine { states: kept.states_at(code.entry().address()), code });
        }
        Some(())
    }

    fn writer(&self, tty: Option<&Tty>) -> Writer {
        Writer {
            output: tty.map_or(0, |tty| core::ptr::from_ref(tty.output_words()) as u64),
            words: core::ptr::from_ref(&*self.words) as u64,
        }
    }

    /// All that the code of a window names and others do not.
    #[expect(clippy::disallowed_methods, reason = "a few more")]
    fn areas(&self, tty: &Tty) -> Vec<(u64, u64)> {
        let output = core::ptr::from_ref(tty.output_words()) as u64;
        let mut areas = self.own_areas();
        areas.push((output, size_of::<OutputWords>() as u64));
        areas
    }

    #[expect(clippy::disallowed_methods, reason = "a few")]
    fn own_areas(&self) -> Vec<(u64, u64)> {
        let words = core::ptr::from_ref(&*self.words) as u64;
        let mut areas = self.block.areas();
        areas.push((words, size_of::<Words>() as u64));
        areas
    }

    /// The VT-100 alone, generated for this window.
    #[expect(clippy::disallowed_methods, reason = "some twenty words")]
    fn plain_pattern(&self, makers: Makers, areas: &[(u64, u64)]) -> Option<Kept<WordCall>> {
        let places = self.block.places();
        let words = places.words[cook_words::COUNT..].to_vec();
        let [state, input] = self.words.plain.each_ref().map(|word| word.as_ptr() as u64);
        let graph = self.machines.plain();
        let vt = Some(MachineCode::new(&graph, Places { state, input, words, ..places }));
        let callouts = WriterCallouts { vt, ..Default::default() };
        let plain = WriterCode::plain(&self.writer(None), makers, &callouts);
        Kept::of(plain, callouts.vt?, areas)
    }

    /// `write`, with filter and VT-100, generated for this window.
    fn cooked_pattern(&self, tty: &Tty, makers: Makers, areas: &[(u64, u64)]) -> Option<Kept<FileCall>> {
        let mut places = self.block.places();
        // The filter's words are those of the tty's own.
        for (place, column) in places.words.iter_mut().zip(tty.columns()) {
            *place = column.as_ptr() as u64;
        }
        let product = Some(MachineCode::new(&self.machines.cooked, places));
        let callouts = WriterCallouts { product, ..Default::default() };
        let write = WriterCode::write(&self.writer(Some(tty)), makers, &callouts);
        Kept::of(write, callouts.product?, areas)
    }
}

/// The first window's code of a machine. Another's is the same, with the addresses of that one's words and cells.
pub(super) struct Kept<C> {
    callentry: Factored<C>,
    pattern: Pattern,
    /// The states, and their offsets.
    states: Vec<(Id, u32)>,
    /// Offset of the machine's beginning.
    inner: u64,
}

impl<C> Kept<C> {
    fn of(mut callentry: Factored<C>, machine: MachineCode<'_>, areas: &[(u64, u64)]) -> Option<Kept<C>> {
        let pattern = Pattern::of(callentry.take_draft()?, areas);
        let (inner, states) = machine.placed();
        Some(Kept { callentry, pattern, states, inner })
    }

    /// The callentry of the window that has these areas.
    fn filled(&self, areas: &[(u64, u64)]) -> Factored<C> {
        self.callentry.with(self.pattern.filled(areas))
    }

    #[expect(clippy::disallowed_methods, reason = "the states of one machine")]
    fn states_at(&self, entry: u64) -> Vec<(Id, u64)> {
        self.states.iter().map(|(id, offset)| (*id, entry + u64::from(*offset))).collect()
    }
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
    Fact::word("plain", "where the VT-100 alone is, once it was needed", "never"),
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
