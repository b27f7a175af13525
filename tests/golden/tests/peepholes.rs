//! The optimizer against the processor: random routines of the decoder's language are executed as they were written and as
//! they were optimized, from the same state. Registers, the kernel's words and the program's memory must be the same after.
//!
//! ```text
//!   words   what routines name by address; they overlap, and r15 leads there, too
//!   r12     a page of the program
//!   r13     a page that is not there: the access lands
//!   r14     a page that is missing at first: who brings it changes the kernel's words, as other threads do
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use codestore::Maker;
use golden::{Random, bench, execute, low_memory};
use kernel::call::CallCode;
use synth::{Draft, HoleKind, HoleValue, Label, Shape, Template, decode, optimize, pattern};

const ROUTINES: u64 = 20_000;
const PAGE: usize = 4096;
const EXIT: Label = Label(6);
const LANDING: Label = Label(7);
/// Turns that backward jumps and landings have, all in all.
const FUEL: u64 = 12;
/// Where words can be, in bytes: some overlap.
const PLACES: [usize; 7] = [0, 8, 16, 24, 12, 20, 3];
const HOLES: [&str; 4] = ["one", "two", "three", "four"];

struct Place {
    words: usize,
    program: usize,
    nothing: usize,
    missing: usize,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let here = libc::PROT_READ | libc::PROT_WRITE;
        Place {
            words: low_memory(PAGE, here),
            program: low_memory(PAGE, here),
            nothing: low_memory(PAGE, libc::PROT_NONE),
            missing: low_memory(PAGE, here),
        }
    })
}

static IS_MISSING: AtomicBool = AtomicBool::new(false);
static SUPPLIED: AtomicU64 = AtomicU64::new(0);

fn protect_missing(protection: i32) {
    // SAFETY: a page of this test.
    let result = unsafe { libc::mprotect(place().missing as *mut _, PAGE, protection) };
    assert_eq!(result, 0);
}

/// Brings the missing page. Somebody else has run in the meantime.
fn supply(address: usize) -> bool {
    let place = place();
    if !(place.missing..place.missing + PAGE).contains(&address) || !IS_MISSING.swap(false, Ordering::Relaxed) {
        return false;
    }
    protect_missing(libc::PROT_READ | libc::PROT_WRITE);
    SUPPLIED.fetch_add(1, Ordering::Relaxed);
    for at in 0..5 {
        // SAFETY: a page of this test.
        unsafe { ((place.words + at * 8) as *mut u64).write_volatile(0x5150 + at as u64) };
    }
    true
}

/// A fragment: bytes with patterns for holes, as the assembler leaves them.
#[derive(Clone, Copy)]
struct Fragment {
    template: Template,
    /// Of each hole: a word's number, or a label.
    holes: &'static [Hole],
    label: Option<Label>,
    lands: bool,
}

#[derive(Clone, Copy)]
enum Hole {
    Word(usize),
    To(Label),
}

struct Writer {
    random: Random,
    bytes: Vec<u8>,
    names: Vec<&'static str>,
    holes: Vec<Hole>,
}

/// Registers that change; the rest are pointers.
const REGISTERS: [u8; 7] = [0, 1, 2, 3, 6, 8, 9];
const POINTERS: [u8; 4] = [12, 13, 14, 15];

impl Writer {
    fn register(&mut self) -> u8 {
        // Few, so that they meet.
        let few = if self.random.once_in(4) { &REGISTERS[..] } else { &REGISTERS[..3] };
        self.random.pick(few)
    }

    fn hole(&mut self) {
        let number = self.random.below(HOLES.len() as u64) as usize;
        if !self.names.contains(&HOLES[number]) {
            self.names.push(HOLES[number]);
            self.holes.push(Hole::Word(number));
        }
        self.bytes.extend(pattern(HOLES[number]).to_le_bytes());
    }

    /// Prefix, opcode and operands: a register and a named word.
    fn with_word(&mut self, wide: u8, opcode: &[u8], register: u8) {
        self.prefixed(wide, opcode, register, 0, 0);
        self.bytes.extend([(register & 7) << 3 | 4, 0x25]);
        self.hole();
    }

    fn with_register(&mut self, wide: u8, opcode: &[u8], register: u8, other: u8) {
        self.prefixed(wide, opcode, register, 0, other);
        self.bytes.push(0xC0 | (register & 7) << 3 | other & 7);
    }

    fn with_pointer(&mut self, wide: u8, opcode: &[u8], register: u8) {
        let pointer = self.random.pick(&POINTERS);
        let offset = if pointer == 15 { self.random.pick(&PLACES) as u8 } else { self.random.below(64) as u8 };
        self.prefixed(wide, opcode, register, 0, pointer);
        self.bytes.push(0x40 | (register & 7) << 3 | pointer & 7);
        if pointer == 12 {
            self.bytes.push(0x24);
        }
        self.bytes.push(offset);
    }

    /// `wide`: 8 bytes, 2, or as the opcode says. A REX prefix is there if it must be, and sometimes otherwise.
    fn prefixed(&mut self, wide: u8, opcode: &[u8], register: u8, index: u8, base: u8) {
        if wide == 2 {
            self.bytes.push(0x66);
        }
        let rex = 0x40 | u8::from(wide == 8) << 3 | register >> 3 << 2 | index >> 3 << 1 | base >> 3;
        if rex != 0x40 || self.random.once_in(8) {
            self.bytes.push(rex);
        }
        self.bytes.extend_from_slice(opcode);
    }

    fn width(&mut self) -> u8 {
        self.random.pick(&[8, 8, 8, 4, 2])
    }

    fn operands(&mut self, wide: u8, opcode: &[u8], register: u8) {
        match self.random.below(5) {
            0 | 1 => self.with_word(wide, opcode, register),
            2 => self.with_pointer(wide, opcode, register),
            _ => {
                let other = self.register();
                self.with_register(wide, opcode, register, other);
            }
        }
    }

    fn small(&mut self) -> u8 {
        self.random.pick(&[0, 1, 7, 0xFF, 0x80])
    }

    fn instruction(&mut self) {
        let (wide, register) = (self.width(), self.register());
        match self.random.below(30) {
            0..=3 => self.with_word(8, &[0x8B], register),
            4 => self.operands(wide, &[0x8B], register),
            5..=6 => self.with_word(8, &[0x89], register),
            7 => self.operands(wide, &[0x89], register),
            8 => {
                let opcode = self.random.pick(&[0x88, 0x8A]);
                self.operands(4, &[opcode], register);
            }
            9 => {
                let opcode = self.random.pick(&[0xB6, 0xB7, 0xB7, 0xBE, 0xBF]);
                self.operands(wide, &[0x0F, opcode], register);
            }
            10 => {
                let other = self.random.pick(&[0, 1, 2, 12, 13, 15]);
                self.with_register(8, &[0x89], other.min(register), register);
            }
            11 | 12 => self.constant(register),
            13..=16 => self.compare(),
            17..=19 => self.arithmetic(),
            20 => {
                let opcode = self.random.pick(&[0x40, 0x42, 0x44, 0x45, 0x47, 0x4C, 0x4F]);
                self.operands(if wide == 2 { 4 } else { wide }, &[0x0F, opcode], register);
            }
            21 => {
                let opcode = self.random.pick(&[0x92, 0x94, 0x95, 0x97, 0x9C, 0x9F]);
                self.operands(4, &[0x0F, opcode], 0);
            }
            22 => {
                let (opcode, extension) = self.random.pick(&[(0xFF, 0), (0xFF, 1), (0xFE, 0), (0xF7, 2), (0xF7, 3)]);
                self.operands(wide, &[opcode], extension);
            }
            23 => {
                let extension = self.random.pick(&[0, 1, 4, 5, 7]);
                self.operands(wide, &[0xC1], extension);
                let count = self.random.below(20) as u8;
                self.bytes.push(count);
            }
            24 => {
                let opcode = self.random.pick(&[0xA3, 0xAB, 0xB3, 0xBB]);
                let number = self.register();
                self.with_register(8, &[0x0F, opcode], number, register);
            }
            25 => {
                let extension = self.random.pick(&[4, 5, 6, 7]);
                self.operands(wide, &[0x0F, 0xBA], extension);
                let bit = self.random.below(16) as u8;
                self.bytes.push(bit);
            }
            26 => {
                let opcode = self.random.pick(&[0xAF, 0xBC, 0xBD]);
                self.operands(wide, &[0x0F, opcode], register);
            }
            27 => self.bytes.extend([0x50 | register & 3, 0x58 | self.random.pick(&[0, 1, 2, 3, 6])]),
            28 => self.several(),
            _ => {
                let word = self.random.once_in(2);
                if word { self.with_word(8, &[0x03], register) } else { self.with_register(8, &[0x63], register, 2) }
            }
        }
    }

    fn constant(&mut self, register: u8) {
        let value = self.small();
        match self.random.below(4) {
            0 => {
                self.prefixed(8, &[0xC7], 0, 0, register);
                self.bytes.push(0xC0 | register & 7);
                self.hole();
            }
            1 => {
                self.prefixed(8, &[0xC7], 0, 0, register);
                self.bytes.extend([0xC0 | register & 7, value, 0, 0, 0]);
            }
            2 => {
                self.prefixed(4, &[0xB8 | register & 7], 0, 0, register);
                self.bytes.extend([value, 0, 0, 0]);
            }
            _ => {
                self.prefixed(4, &[0xB0 | register & 3], 0, 0, 0);
                self.bytes.push(value);
            }
        }
    }

    fn compare(&mut self) {
        let (wide, register, value) = (self.width(), self.register(), self.small());
        match self.random.below(7) {
            0 => self.operands(wide, &[0x3B], register),
            1 => self.operands(wide, &[0x39], register),
            2 => {
                self.operands(wide, &[0x83], 7);
                self.bytes.push(value);
            }
            3 => {
                self.prefixed(8, &[0x83], 7, 0, register);
                self.bytes.extend([0xF8 | register & 7, value & 7]);
            }
            4 => {
                self.prefixed(8, &[0x81], 7, 0, register);
                self.bytes.push(0xF8 | register & 7);
                self.hole();
            }
            5 => self.with_register(wide, &[0x85], register, register),
            _ => {
                let opcode = self.random.pick(&[0x38, 0x3A, 0x84]);
                self.operands(4, &[opcode], register);
            }
        }
    }

    fn arithmetic(&mut self) {
        let (wide, register, value) = (self.width(), self.register(), self.small());
        let operation = self.random.pick(&[0u8, 1, 2, 3, 4, 5, 6]);
        match self.random.below(4) {
            0 => self.operands(wide, &[operation << 3 | 3], register),
            1 => self.operands(wide, &[operation << 3 | 1], register),
            2 => self.operands(4, &[operation << 3 | 2], register),
            _ => {
                self.operands(wide, &[0x83], operation);
                self.bytes.push(value);
            }
        }
    }

    /// `lea rdi, [r12 + 64]`, `lea rsi, [r15]`, `mov ecx, 3`, `rep movs`, or a fence.
    fn several(&mut self) {
        if self.random.once_in(4) {
            return self.bytes.extend([0x0F, 0xAE, 0xF0]);
        }
        let into = self.random.pick(&[[0x49, 0x8D, 0x7C, 0x24, 0x40], [0x49, 0x8D, 0x7F, 0x03, 0x90]]);
        self.bytes.extend(into);
        self.bytes.extend([0x49, 0x8D, 0x77, 0x00, 0xB9, 3, 0, 0, 0, 0xF3]);
        let opcode = self.random.pick(&[0xA4, 0xAA]);
        self.bytes.push(opcode);
    }

    /// A short jump of the fragment's own, over some instructions.
    fn skip(&mut self) {
        let condition = self.random.pick(&[2, 3, 4, 4, 5, 5, 6, 7, 12, 15]);
        self.compare();
        self.bytes.extend([0x70 | condition, 0]);
        let from = self.bytes.len();
        for _ in 0..self.random.below(4) {
            self.instruction();
        }
        self.bytes[from - 1] = (self.bytes.len() - from) as u8;
    }

    fn jump(&mut self, to: Label, number: usize, placed: &[usize]) {
        let is_back = placed[usize::from(to.0)] <= number;
        if is_back {
            self.guard();
        }
        if self.random.once_in(3) {
            self.bytes.push(0xE9);
        } else {
            if is_back || self.random.once_in(2) {
                self.compare();
            }
            let condition = self.random.pick(&[2, 3, 4, 4, 5, 5, 6, 7, 8, 12, 13, 14, 15]);
            self.bytes.extend([0x0F, 0x80 | condition]);
        }
        self.to(to);
    }

    fn to(&mut self, to: Label) {
        const NAMES: [&str; 8] = ["to0", "to1", "to2", "to3", "to4", "to5", "to6", "to7"];
        let name = NAMES[usize::from(to.0)];
        if !self.names.contains(&name) {
            self.names.push(name);
            self.holes.push(Hole::To(to));
        }
        self.bytes.extend(pattern(name).to_le_bytes());
    }

    /// `dec [fuel]`, `js exit`.
    fn guard(&mut self) {
        let fuel = (place().words + 64) as u32;
        self.bytes.extend([0x48, 0xFF, 0x0C, 0x25]);
        self.bytes.extend(fuel.to_le_bytes());
        self.bytes.extend([0x0F, 0x88]);
        self.to(EXIT);
    }

    fn finish(&mut self, label: Option<Label>, lands: bool) -> Fragment {
        let names: &'static [&'static str] = std::mem::take(&mut self.names).leak();
        let holes: &'static [Hole] = std::mem::take(&mut self.holes).leak();
        let kind = |hole: &Hole| match hole {
            Hole::Word(_) => HoleKind::Abs32,
            Hole::To(_) => HoleKind::Target,
        };
        let kinds = holes.iter().map(kind).collect::<Vec<_>>().leak();
        let patterns = names.iter().map(|name| pattern(name)).collect::<Vec<_>>().leak();
        let shape = Box::leak(Box::new(Shape::new("Random", names, kinds, patterns)));
        let bytes = std::mem::take(&mut self.bytes).leak();
        Fragment { template: Template { bytes, shape }, holes, label, lands }
    }

    /// A routine. Labels 0 to 5 are anywhere, forward and backward; faults land in front of it, or behind.
    fn routine(&mut self) -> Vec<Fragment> {
        let count = 3 + self.random.below(7) as usize;
        let mut placed = [0; 8].map(|_: usize| 1 + self.random.below(count as u64) as usize);
        let lands_first = self.random.once_in(3);
        placed[6] = usize::MAX;
        let mut fragments = Vec::new();
        if lands_first {
            self.bytes.push(0xE9);
            self.to(Label(0));
            fragments.push(self.finish(None, false));
            fragments.push(self.landing());
        }
        for number in 1..=count {
            let labels: Vec<u8> = (0..6).filter(|label| placed[usize::from(*label)] == number).collect();
            for label in labels {
                fragments.push(self.finish(Some(Label(label)), false));
            }
            for _ in 0..self.random.below(5) {
                if self.random.once_in(6) { self.skip() } else { self.instruction() }
            }
            if self.random.once_in(2) {
                let to = Label(self.random.below(7) as u8);
                self.jump(to, number, &placed);
            }
            fragments.push(self.finish(None, true));
        }
        self.bytes.push(0xC3);
        fragments.push(self.finish(Some(EXIT), false));
        if !lands_first {
            fragments.push(self.landing());
        }
        fragments
    }

    /// Flags are nobody's where faults land, so `add rax, 0` makes new ones.
    fn landing(&mut self) -> Fragment {
        self.bytes.extend([0x48, 0x83, 0xC0, 0x00]);
        self.guard();
        for _ in 0..self.random.below(4) {
            self.bytes.extend([0x48, 0xFF, 0xC0]);
            self.with_word(8, &[0x8B], 2);
        }
        self.bytes.push(0xE9);
        let to = if self.random.once_in(2) { EXIT } else { Label(self.random.below(6) as u8) };
        self.to(to);
        self.finish(Some(LANDING), false)
    }
}

fn draft(fragments: &[Fragment], words: [usize; 4], assumed: Option<(u8, u64)>) -> Draft {
    let mut draft = Draft::new();
    if let Some((register, value)) = assumed {
        draft.assume(register, value);
    }
    for fragment in fragments {
        if let Some(label) = fragment.label {
            draft.place(label);
        }
        let value = |hole: &Hole| match *hole {
            Hole::Word(number) => HoleValue { kind: HoleKind::Abs32, value: (place().words + words[number]) as u64 },
            Hole::To(label) => HoleValue { kind: HoleKind::Label, value: label.0.into() },
        };
        let values: Vec<_> = fragment.holes.iter().map(value).collect();
        let from = draft.len();
        draft.append(&fragment.template, &values);
        if fragment.lands {
            draft.land(from, LANDING);
        }
    }
    draft
}

/// What is there after.
#[derive(PartialEq, Eq, Debug)]
struct After {
    registers: [u64; 16],
    words: Vec<u8>,
    program: Vec<u8>,
    missing: Vec<u8>,
    supplied: u64,
}

fn bytes_of(address: usize, bytes: usize) -> &'static mut [u8] {
    // SAFETY: a page of this test, and nothing else looks at it meanwhile.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) }
}

fn run(draft: Draft, seed: u64) -> After {
    let code = bench().store.publish::<CallCode>("peephole", Maker::new("test"), draft).expect("room for it");
    let place = place();
    let mut random = Random::new(seed);
    protect_missing(libc::PROT_READ | libc::PROT_WRITE);
    for page in [place.words, place.program, place.missing] {
        bytes_of(page, 128).iter_mut().for_each(|byte| *byte = random.pick(&[0, 0, 0, 1, 7, 0xFF]));
    }
    bytes_of(place.words + 64, 8).copy_from_slice(&FUEL.to_le_bytes());
    SUPPLIED.store(0, Ordering::Relaxed);
    IS_MISSING.store(true, Ordering::Relaxed);
    protect_missing(libc::PROT_NONE);
    let values = [0, 1, 7, 0xFF, u64::MAX, place.words as u64, place.words as u64 + 8];
    let mut registers = [0; 16].map(|_: u64| random.pick(&values));
    registers[0] = 7;
    registers[12..].copy_from_slice(&[place.program, place.nothing, place.missing, place.words].map(|at| at as u64));
    execute(code.entry().address(), &mut registers, supply);
    protect_missing(libc::PROT_READ | libc::PROT_WRITE);
    let copy = |page: usize| bytes_of(page, 256).to_vec();
    After {
        registers,
        words: copy(place.words),
        program: copy(place.program),
        missing: copy(place.missing),
        supplied: SUPPLIED.load(Ordering::Relaxed),
    }
}

fn show(draft: Draft) -> String {
    let bytes = draft.bind(bench().store.landing(0).unwrap_or(0x20_0000)).expect("it fits").bytes;
    let mut text = String::new();
    let mut at = 0;
    while let Some(instruction) = decode(&bytes, at) {
        let end = at + usize::from(instruction.bytes);
        let code = &bytes[at..end];
        text += &format!("{at:4x}: {code:02x?} {:?}\n", instruction.kind);
        at = end;
    }
    text
}

#[test]
fn optimized_routines_do_what_they_did() {
    let seed = Random::seed();
    let (mut saved, mut planned) = (0, 0);
    for number in 0..ROUTINES {
        let seed = seed.wrapping_add(number);
        let mut writer = Writer { random: Random::new(seed), bytes: vec![], names: vec![], holes: vec![] };
        let fragments = writer.routine();
        let assumed = writer.random.once_in(2).then_some((0, 7));
        let mut words = [0; 4].map(|_: usize| writer.random.pick(&PLACES));
        let make = |words| draft(&fragments, words, assumed);
        let plan =
            optimize(&make(words)).unwrap_or_else(|| panic!("SYNTH_SEED={seed}: not known\n{}", show(make(words))));
        for _ in 0..3 {
            if let Some(optimized) = plan.apply(&make(words)) {
                saved += u64::from(optimized.len() < make(words).len());
                planned += 1;
                let text = || format!("{}\n{}", show(make(words)), show(plan.apply(&make(words)).expect("once more")));
                let (before, after) = (run(make(words), seed), run(optimized, seed));
                assert!(before == after, "SYNTH_SEED={seed}\n{}{before:x?}\n{after:x?}", text());
            }
            words = [0; 4].map(|_: usize| writer.random.pick(&PLACES));
        }
    }
    assert!(planned > ROUTINES && saved > ROUTINES, "{planned} planned, {saved} became shorter");
}
