//! Machine code for a graph. A state is a place in the code, and the machine's state while it rests is that place's
//! address (S-116): going on is one indirect jump, going to another state is nothing or one jump.

use alloc::vec;
use alloc::vec::Vec;

use synth::{Abs32, Draft, HoleValue, Imm32, Template};

use crate::graph::{Graph, Id, Node};
use crate::language::{Step, Test, Value, Word};
use crate::template::*;

/// Where the parts of a machine lie in its block of memory, in bytes from the block's start. The first word is the
/// state, the second the input while the machine is outside.
#[derive(Clone, Debug)]
pub struct Layout {
    pub words: usize,
    pub word_count: usize,
    pub arrays: Vec<usize>,
    pub array_bytes: Vec<usize>,
    sets: usize,
    pub bytes: usize,
}

const STATE: usize = 0;
const INPUT: usize = 8;
const FIRST_WORD: usize = 16;
const SET_BYTES: usize = 32;

impl Layout {
    /// The layout for a graph.
    pub fn of(graph: &Graph) -> Layout {
        let sets = (FIRST_WORD + 4 * graph.words).next_multiple_of(64);
        let mut end = (sets + SET_BYTES * graph.sets.len()).next_multiple_of(64);
        let arrays = graph.arrays.iter().map(|&bytes| {
            end += bytes as usize;
            end - bytes as usize
        });
        let arrays = arrays.collect();
        let array_bytes = graph.arrays.iter().map(|&bytes| bytes as usize).collect();
        Layout { words: FIRST_WORD, word_count: graph.words, arrays, array_bytes, sets, bytes: end }
    }

    /// A fresh block: words and arrays 0, the constant sets filled in. The caller stores the state: the code's address
    /// plus [`Generated::start`].
    pub fn block(&self, graph: &Graph) -> Vec<u8> {
        let mut block = vec![0; self.bytes];
        let words = graph.sets.iter().flatten().flat_map(|word| word.to_le_bytes());
        block[self.sets..].iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
        block
    }
}

/// Code for a machine whose block lies at a known address.
pub struct Generated {
    pub draft: Draft,
    /// Offset of the state in which the machine starts.
    pub start: u32,
}

/// Generates the code of a machine for the block at `block`, below 2 GB or in the top 2 GB.
///
/// Contract of the code, which is entered by `call`: in: rsi = input, rdx = its end, rdi = where emitted bytes go,
/// r8 = an address before which a byte's whole output still fits. Out: rsi, rdi moved on; eax = 0: no input or no room;
/// else the number of what is to be done outside before the code is entered again. Clobbers rcx, r9, r10, r11, r14, r15,
/// flags. The words in the block are current while the machine rests.
pub fn generate(graph: &Graph, block: u64) -> Generated {
    let places = vec![None; graph.nodes.len()];
    let layout = Layout::of(graph);
    let emits = graph.nodes.iter().any(|node| matches!(node, Node::Emit(..)));
    let mut maker = Maker {
        graph,
        layout,
        block,
        emits,
        items: Vec::new(),
        bytes: 0,
        places,
        spots: Vec::new(),
        waiting: vec![Work::Node(0)],
        pauses: Vec::new(),
        hot: hot_words(graph),
    };
    maker.fill_all();
    maker.put(MachineEnter::template(), &[maker.at(STATE).into()]);
    let start = maker.bytes;
    while let Some(work) = maker.waiting.pop() {
        match work {
            Work::Node(id) => maker.run_from(id),
            Work::Decide(spot, ranges) => maker.decide(spot, ranges),
        }
    }
    maker.put_pauses();
    Generated { draft: maker.link(), start }
}

/// A hole of an item.
#[derive(Clone, Copy)]
enum Filling {
    Value(HoleValue),
    /// The distance to a node's code.
    Node(Id),
    /// The distance to a place that is no node's.
    Spot(usize),
}

/// Bytes `.0..=.1` lead to node `.2`.
type Range = (u32, u32, Id);

/// What still needs code.
enum Work {
    Node(Id),
    /// At this spot, among these ranges.
    Decide(usize, Vec<Range>),
}

impl From<Abs32> for Filling {
    fn from(value: Abs32) -> Filling {
        Filling::Value(value.into())
    }
}

impl From<u32> for Filling {
    fn from(value: u32) -> Filling {
        Filling::Value(Imm32(value).into())
    }
}

struct Item {
    template: Template,
    fillings: Vec<Filling>,
}

struct Maker<'a> {
    graph: &'a Graph,
    layout: Layout,
    block: u64,
    emits: bool,
    items: Vec<Item>,
    bytes: u32,
    /// Offset of each node's code, once it has some.
    places: Vec<Option<u32>>,
    /// Offset of other places.
    spots: Vec<Option<u32>>,
    waiting: Vec<Work>,
    /// States, and the spot where each pauses.
    pauses: Vec<(Id, usize)>,
    /// Words that live in registers while the machine runs, at most as many as there are in `HOT`.
    hot: Vec<Word>,
}

impl Maker<'_> {
    fn at(&self, offset: usize) -> Abs32 {
        Abs32(self.block + offset as u64)
    }

    fn word(&self, word: u16) -> Filling {
        self.at(self.layout.words + 4 * usize::from(word)).into()
    }

    fn array(&self, array: u16) -> (Filling, Filling) {
        let array = usize::from(array);
        (self.at(self.layout.arrays[array]).into(), (self.graph.arrays[array] - 1).into())
    }

    fn put(&mut self, template: Template, fillings: &[Filling]) {
        self.bytes += template.bytes.len() as u32;
        self.items.push(Item { template, fillings: fillings.to_vec() });
    }

    /// Makes the code of `id` and of what follows, up to what has code already.
    fn run_from(&mut self, mut id: Id) {
        if self.places[id as usize].is_some() {
            return;
        }
        loop {
            if self.places[id as usize].is_some() {
                return self.put(GoTo::template(), &[Filling::Node(id)]);
            }
            self.places[id as usize] = Some(self.bytes);
            let graph = self.graph;
            id = match &graph.nodes[id as usize] {
                Node::Take(table) => match self.take(id, table) {
                    Some(next) => next,
                    None => return,
                },
                Node::Emit(value, next) => {
                    self.emit(*value);
                    *next
                }
                Node::Do(step, next) => {
                    self.step(*step);
                    *next
                }
                Node::Outside(number, next) => {
                    self.outside(*number);
                    *next
                }
                Node::Test(test, yes, no) => {
                    self.test(*test, *no);
                    *yes
                }
            };
        }
    }

    /// A state. Returns the node of its commonest bytes, whose code follows.
    fn take(&mut self, id: Id, table: &[Id; 256]) -> Option<Id> {
        let spot = self.spot();
        self.pauses.push((id, spot));
        let pause = Filling::Spot(spot);
        self.put(TakeInput::template(), &[pause]);
        if self.emits {
            self.put(TakeRoom::template(), &[pause]);
        }
        self.put(TakeByte::template(), &[]);
        let mut ranges: Vec<Range> = Vec::new();
        for (byte, &next) in (0..).zip(table) {
            match ranges.last_mut() {
                Some((_, last, same)) if *same == next => *last = byte,
                _ => ranges.push((byte, byte, next)),
            }
        }
        // The range with most of the printable characters first: text is mostly text.
        let printable = |&(first, last, _): &Range| (last.min(126) + 1).saturating_sub(first.max(32));
        let hot = *ranges.iter().max_by_key(|range| printable(range))?;
        if ranges.len() > 1 {
            let others = self.spot();
            let less = Filling::from(hot.0.wrapping_neg());
            self.put(InRange::template(), &[less, (hot.1 - hot.0).into(), Filling::Spot(others)]);
            ranges.retain(|range| range.0 != hot.0);
            self.waiting.push(Work::Decide(others, ranges));
        }
        Some(hot.2)
    }

    fn spot(&mut self) -> usize {
        self.spots.push(None);
        self.spots.len() - 1
    }

    /// Halves the ranges until one is left.
    fn decide(&mut self, spot: usize, mut ranges: Vec<Range>) {
        self.spots[spot] = Some(self.bytes);
        while ranges.len() > 1 {
            let upper = ranges.split_off(ranges.len() / 2);
            let lower = self.spot();
            self.put(FromByte::template(), &[upper[0].0.into(), Filling::Spot(lower)]);
            self.waiting.push(Work::Decide(lower, ranges));
            ranges = upper;
        }
        self.go_on(ranges[0].2);
    }

    /// Code of a node here, or a jump to it.
    fn go_on(&mut self, id: Id) {
        match self.places[id as usize] {
            Some(_) => self.put(GoTo::template(), &[Filling::Node(id)]),
            None => self.run_from(id),
        }
    }

    /// The states' pauses: the rare paths, behind everything else.
    fn put_pauses(&mut self) {
        for (id, spot) in core::mem::take(&mut self.pauses) {
            self.spots[spot] = Some(self.bytes);
            self.spill_all();
            self.put(PauseAt::template(), &[Filling::Node(id)]);
            self.put(Pause::template(), &[self.at(STATE).into()]);
        }
    }

    fn emit(&mut self, value: Value) {
        if value == Value::Input {
            return self.put(EmitInput::template(), &[]);
        }
        self.load(value);
        self.put(EmitValue::template(), &[]);
    }

    /// The value into r9.
    fn load(&mut self, value: Value) {
        match value {
            Value::Input => self.put(LoadInput::template(), &[]),
            Value::Flipped(mask) => self.put(LoadFlipped::template(), &[u32::from(mask).into()]),
            Value::Const(byte) => self.put(LoadConst::template(), &[u32::from(byte).into()]),
        }
    }

    /// Leaves, and goes on behind when the machine is entered again.
    fn outside(&mut self, number: u16) {
        let back = self.spot();
        let input = Filling::from(self.at(INPUT));
        self.spill_all();
        self.put(PauseAt::template(), &[Filling::Spot(back)]);
        self.put(LeaveOutside::template(), &[self.at(STATE).into(), input, u32::from(number).into()]);
        self.spots[back] = Some(self.bytes);
        self.put(BackInside::template(), &[input]);
    }

    fn test(&mut self, test: Test, no: Id) {
        self.waiting.push(Work::Node(no));
        let no = Filling::Node(no);
        match (test, self.hot(asked(test)[0])) {
            (Test::Is(_, number), Some(hot)) => return self.put((hot.if_is)(), &[number.into(), no]),
            (Test::Below(_, number), Some(hot)) => return self.put((hot.if_below)(), &[number.into(), no]),
            _ => asked(test).iter().for_each(|&word| self.spill(word)),
        }
        match test {
            Test::Is(a, number) => self.put(IfIs::template(), &[self.word(a), number.into(), no]),
            Test::Below(a, number) => self.put(IfBelow::template(), &[self.word(a), number.into(), no]),
            Test::Same(a, b) => self.put(IfSame::template(), &[self.word(a), self.word(b), no]),
            Test::Differ(a, b) => self.put(IfDiffer::template(), &[self.word(a), self.word(b), no]),
            Test::BelowWord(a, b) => self.put(IfBelowWord::template(), &[self.word(a), self.word(b), no]),
            Test::In(a, set) => {
                let set = self.at(self.layout.sets + SET_BYTES * usize::from(set));
                self.put(IfIn::template(), &[self.word(a), set.into(), no]);
            }
        }
    }

    fn step(&mut self, step: Step) {
        let (words, is_changed) = touched(step);
        match (step, self.hot(*words.last().unwrap_or(&Word::MAX))) {
            (Step::Add(_, 1), Some(hot)) => return self.put((hot.add_one)(), &[]),
            (Step::Store(array, _, Value::Input), Some(hot)) => {
                let (base, mask) = self.array(array);
                return self.put((hot.store_input)(), &[base, mask]);
            }
            _ => words.iter().for_each(|&word| self.spill(word)),
        }
        self.step_in_memory(step);
        if is_changed {
            self.fill(words[0]);
        }
    }

    /// The registers' templates for a word, if it is hot.
    fn hot(&self, word: Word) -> Option<&'static Hot> {
        self.hot.iter().position(|hot| *hot == word).map(|at| &HOT[at])
    }

    fn spill(&mut self, word: Word) {
        if let Some(hot) = self.hot(word) {
            self.put((hot.spill)(), &[self.word(word)]);
        }
    }

    fn fill(&mut self, word: Word) {
        if let Some(hot) = self.hot(word) {
            self.put((hot.fill)(), &[self.word(word)]);
        }
    }

    fn fill_all(&mut self) {
        self.hot.clone().into_iter().for_each(|word| self.fill(word));
    }

    fn spill_all(&mut self) {
        self.hot.clone().into_iter().for_each(|word| self.spill(word));
    }

    fn step_in_memory(&mut self, step: Step) {
        match step {
            Step::Set(a, number) => self.put(SetWord::template(), &[self.word(a), number.into()]),
            Step::Add(a, 1) => self.put(AddOne::template(), &[self.word(a)]),
            Step::Add(a, number) => self.put(AddNumber::template(), &[self.word(a), number.into()]),
            Step::Or(a, number) => self.put(OrNumber::template(), &[self.word(a), number.into()]),
            Step::Multiply(a, by) => self.put(MultiplyWord::template(), &[self.word(a), by.into()]),
            Step::Move(a, b) => self.put(MoveWord::template(), &[self.word(a), self.word(b)]),
            Step::AddWord(a, b) => self.put(AddWords::template(), &[self.word(a), self.word(b)]),
            Step::SubtractWord(a, b) => self.put(SubtractWords::template(), &[self.word(a), self.word(b)]),
            Step::Digit(a, value, most) => {
                self.load(value);
                self.put(AppendDigit::template(), &[self.word(a), most.into()]);
            }
            Step::Store(array, index, value) => {
                let (base, mask) = self.array(array);
                let holes = [base, self.word(index), mask];
                if value == Value::Input {
                    return self.put(StoreInput::template(), &holes);
                }
                self.load(value);
                self.put(StoreValue::template(), &holes);
            }
            Step::Load(a, array, index) => {
                let (base, mask) = self.array(array);
                self.put(LoadArray::template(), &[self.word(a), base, self.word(index), mask]);
            }
            // These have become nodes or edges.
            Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => {}
        }
    }

    /// Fills the distances, now that every place is known.
    fn link(&self) -> Draft {
        let mut draft = Draft::new();
        for Item { template, fillings } in &self.items {
            let end = draft.len() as u32 + template.bytes.len() as u32;
            let distance = |place: Option<u32>| Imm32(place.unwrap_or(0).wrapping_sub(end)).into();
            let values = fillings.iter().map(|filling| match *filling {
                Filling::Value(value) => value,
                Filling::Node(id) => distance(self.places[id as usize]),
                Filling::Spot(spot) => distance(self.spots[spot]),
            });
            draft.append(template, &values.collect::<Vec<_>>());
        }
        draft
    }
}

/// The words that a test looks at.
fn asked(test: Test) -> Vec<Word> {
    match test {
        Test::Is(a, _) | Test::Below(a, _) | Test::In(a, _) => vec![a],
        Test::Same(a, b) | Test::Differ(a, b) | Test::BelowWord(a, b) => vec![a, b],
    }
}

/// The words of a step, and whether it changes the first of them.
fn touched(step: Step) -> (Vec<Word>, bool) {
    match step {
        Step::Set(a, _) | Step::Add(a, _) | Step::Or(a, _) | Step::Multiply(a, _) | Step::Digit(a, ..) => {
            (vec![a], true)
        }
        Step::Move(a, b) | Step::AddWord(a, b) | Step::SubtractWord(a, b) | Step::Load(a, _, b) => (vec![a, b], true),
        Step::Store(_, index, _) => (vec![index], false),
        Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => (vec![], false),
    }
}

/// Steps of a text path that are looked at.
const PATH_STEPS: usize = 64;

/// The words that text needs most: those on the path of a letter through each state, where a word is seldom a
/// particular number. Words that only change by other steps than counting gain nothing from a register.
fn hot_words(graph: &Graph) -> Vec<Word> {
    let mut counts = vec![0u32; graph.words];
    for node in &graph.nodes {
        let Node::Take(table) = node else { continue };
        let mut id = table[usize::from(b'e')];
        for _ in 0..PATH_STEPS {
            let (words, next) = match &graph.nodes[id as usize] {
                Node::Take(_) => break,
                Node::Emit(_, next) | Node::Outside(_, next) => (vec![], *next),
                Node::Do(step @ (Step::Add(_, 1) | Step::Store(_, _, Value::Input)), next) => (touched(*step).0, *next),
                Node::Do(_, next) => (vec![], *next),
                Node::Test(test @ Test::Is(..), _, no) => (asked(*test), *no),
                Node::Test(test @ Test::Below(..), yes, _) => (asked(*test), *yes),
                Node::Test(_, yes, _) => (vec![], *yes),
            };
            words.into_iter().for_each(|word| counts[usize::from(word)] += 1);
            id = next;
        }
    }
    let mut words: Vec<Word> = (0..graph.words as Word).filter(|&word| counts[usize::from(word)] > 0).collect();
    words.sort_by_key(|&word| core::cmp::Reverse(counts[usize::from(word)]));
    words.truncate(HOT.len());
    words
}
