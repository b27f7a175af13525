//! Machine code for a graph. A state is a place in the code, and the machine's state while it rests is that place's
//! address (S-116): going on is one indirect jump, going to another state is nothing or one jump.

use alloc::vec;
use alloc::vec::Vec;

use synth::{Abs32, Draft, HoleValue, Imm32, Template};

use crate::block::Places;
use crate::graph::{Graph, Id, Node, leads};
use crate::language::{Step, Test, Value, Word};
use crate::template::*;

const SET_BYTES: u64 = 32;

/// A machine's code.
pub struct Generated {
    /// The states, and their offsets in the draft: what the state word of the block holds is the code's address and that.
    /// State 0 is the one in which the machine starts.
    pub states: Vec<(Id, u32)>,
}

/// Appends the code of a machine to `draft`, for a block in the lowest or the highest 2 GB. The draft must not be optimized
/// afterwards: distances are filled in.
///
/// Contract of the code, which is entered by `call`: in: rsi = input, rdx = its end, rdi = where emitted bytes go,
/// r8 = an address before which a byte's whole output still fits. Out: rsi, rdi moved on; eax = 0: no input or no room;
/// else the number of what is to be done outside before the code is entered again. Clobbers rcx, r9, r10, r11, r14, r15,
/// flags. The words in the block are current while the machine rests.
pub fn generate(graph: &Graph, block: &Places, draft: &mut Draft) -> Generated {
    let emits = graph.nodes.iter().any(|node| matches!(node, Node::Emit(..)));
    draft.reserve(USUAL_BYTES * graph.nodes.len(), USUAL_FRAGMENTS * graph.nodes.len());
    let hot = hot_words(graph);
    let mut registers = vec![None; graph.words];
    for (word, register) in hot.iter().zip(&HOT) {
        if let Some(word) = word {
            registers[usize::from(*word)] = Some(register);
        }
    }
    let mut maker = Maker {
        graph,
        block,
        emits,
        draft,
        links: Vec::with_capacity(USUAL_FRAGMENTS * graph.nodes.len()),
        places: vec![None; graph.nodes.len()],
        spots: Vec::with_capacity(graph.nodes.len()),
        waiting: vec![Work::Node(0)],
        pauses: Vec::new(),
        hot,
        registers,
    };
    maker.fill_all();
    maker.put(MachineEnter::template(), &[Abs32(block.state).into()]);
    while let Some(work) = maker.waiting.pop() {
        match work {
            Work::Node(id) => maker.run_from(id),
            Work::Decide(spot, ranges) => maker.decide(spot, ranges),
        }
    }
    let states = maker.put_pauses();
    maker.link();
    Generated { states }
}

/// Code and fragments that a node usually becomes, with room to spare.
const USUAL_BYTES: usize = 40;
const USUAL_FRAGMENTS: usize = 4;

/// What a hole is filled with.
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

/// A distance that is not known yet.
struct Link {
    /// Offset of the field, and of the end of its template, from which the distance counts.
    at: u32,
    end: u32,
    to: Filling,
}

struct Maker<'a> {
    graph: &'a Graph,
    block: &'a Places,
    emits: bool,
    draft: &'a mut Draft,
    links: Vec<Link>,
    /// Offset of each node's code in the draft, once it has some.
    places: Vec<Option<u32>>,
    /// Offset of other places.
    spots: Vec<Option<u32>>,
    waiting: Vec<Work>,
    /// States, and the spot where each pauses.
    pauses: Vec<(Id, usize)>,
    /// Words that live in registers while the machine runs, and for each word its register, if it has one.
    hot: [Option<Word>; HOT.len()],
    registers: Vec<Option<&'static Hot>>,
}

impl Maker<'_> {
    fn word(&self, word: u16) -> Filling {
        Abs32(self.block.words[usize::from(word)]).into()
    }

    /// Where an array begins, and what its indices are cut to, where an element has `bytes` bytes.
    fn array(&self, array: u16, bytes: u32) -> (Filling, Filling) {
        let array = usize::from(array);
        (Abs32(self.block.arrays[array]).into(), (self.graph.arrays[array] / bytes - 1).into())
    }

    fn put(&mut self, template: Template, fillings: &[Filling]) {
        let (links, end) = (&mut self.links, (self.draft.len() + template.bytes.len()) as u32);
        self.draft.append_with(&template, |hole, at| match fillings[hole] {
            Filling::Value(value) => value,
            to => {
                links.push(Link { at, end, to });
                Imm32(0).into()
            }
        });
    }

    /// Where the next template will be.
    fn here(&self) -> u32 {
        self.draft.len() as u32
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
            self.places[id as usize] = Some(self.here());
            let graph = self.graph;
            id = match &graph.nodes[id as usize] {
                Node::Take(ranges) => match self.take(id, ranges) {
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
    fn take(&mut self, id: Id, states: &[(u8, Id)]) -> Option<Id> {
        let spot = self.spot();
        self.pauses.push((id, spot));
        let pause = Filling::Spot(spot);
        self.put(TakeInput::template(), &[pause]);
        if self.emits {
            self.put(TakeRoom::template(), &[pause]);
        }
        self.put(TakeByte::template(), &[]);
        let ends = states.iter().skip(1).map(|range| u32::from(range.0) - 1).chain([255]);
        let mut ranges: Vec<Range> =
            states.iter().zip(ends).map(|(&(first, id), last)| (first.into(), last, id)).collect();
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
        self.spots[spot] = Some(self.here());
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
    fn put_pauses(&mut self) -> Vec<(Id, u32)> {
        let pauses = core::mem::take(&mut self.pauses);
        for &(id, spot) in &pauses {
            self.spots[spot] = Some(self.here());
            self.spill_all();
            self.put(PauseAt::template(), &[Filling::Node(id)]);
            self.put(Pause::template(), &[Abs32(self.block.state).into()]);
        }
        pauses.into_iter().map(|(id, _)| (id, self.places[id as usize].unwrap_or(0))).collect()
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
        let input = Filling::from(Abs32(self.block.input));
        self.spill_all();
        self.put(PauseAt::template(), &[Filling::Spot(back)]);
        self.put(LeaveOutside::template(), &[Abs32(self.block.state).into(), input, u32::from(number).into()]);
        self.spots[back] = Some(self.here());
        self.put(BackInside::template(), &[input]);
    }

    fn test(&mut self, test: Test, no: Id) {
        self.waiting.push(Work::Node(no));
        let no = Filling::Node(no);
        let words = asked(test);
        match (test, self.hot(words[0])) {
            (Test::Is(_, number), Some(hot)) => return self.put((hot.if_is)(), &[number.into(), no]),
            (Test::Below(_, number), Some(hot)) => return self.put((hot.if_below)(), &[number.into(), no]),
            _ => words.iter().for_each(|&word| self.spill(word)),
        }
        match test {
            Test::Is(a, number) => self.put(IfIs::template(), &[self.word(a), number.into(), no]),
            Test::Below(a, number) => self.put(IfBelow::template(), &[self.word(a), number.into(), no]),
            Test::Same(a, b) => self.put(IfSame::template(), &[self.word(a), self.word(b), no]),
            Test::Differ(a, b) => self.put(IfDiffer::template(), &[self.word(a), self.word(b), no]),
            Test::BelowWord(a, b) => self.put(IfBelowWord::template(), &[self.word(a), self.word(b), no]),
            Test::In(a, set) => {
                let set = Abs32(self.block.sets + SET_BYTES * u64::from(set));
                self.put(IfIn::template(), &[self.word(a), set.into(), no]);
            }
        }
    }

    fn step(&mut self, step: Step) {
        let (words, is_changed) = touched(step);
        match (step, self.hot(words[1])) {
            (Step::Add(_, 1), Some(hot)) => return self.put((hot.add_one)(), &[]),
            (Step::Store(array, _, Value::Input), Some(hot)) => {
                let (base, mask) = self.array(array, 1);
                return self.put((hot.store_input)(), &[base, mask]);
            }
            (Step::StoreCell(array, _, Value::Input, above), Some(hot)) if self.hot(above).is_none() => {
                let (base, mask) = self.array(array, CELL_BYTES);
                return self.put((hot.store_cell)(), &[base, mask, self.word(above)]);
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
        self.registers.get(usize::from(word)).copied().flatten()
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
        self.hot.into_iter().flatten().for_each(|word| self.fill(word));
    }

    fn spill_all(&mut self) {
        self.hot.into_iter().flatten().for_each(|word| self.spill(word));
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
                let (base, mask) = self.array(array, 1);
                let holes = [base, self.word(index), mask];
                if value == Value::Input {
                    return self.put(StoreInput::template(), &holes);
                }
                self.load(value);
                self.put(StoreValue::template(), &holes);
            }
            Step::Load(a, array, index) => {
                let (base, mask) = self.array(array, 1);
                self.put(LoadArray::template(), &[self.word(a), base, self.word(index), mask]);
            }
            Step::StoreCell(array, index, value, above) => {
                let (base, mask) = self.array(array, CELL_BYTES);
                self.load(value);
                self.put(AddAbove::template(), &[self.word(above)]);
                self.put(StoreCell::template(), &[base, self.word(index), mask]);
            }
            Step::Blank(array, index, cells) => {
                let (base, mask) = self.array(array, CELL_BYTES);
                self.put(LoadBlank::template(), &[self.word(cells)]);
                self.put(BlankCells::template(), &[base, self.word(index), mask]);
            }
            Step::Mark(array, index) => {
                let (base, bytes) = (self.array(array, 1).0, self.graph.arrays[usize::from(array)]);
                self.put(MarkBit::template(), &[base, self.word(index), (8 * bytes - 1).into()]);
            }
            // These have become nodes or edges.
            Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => {}
        }
    }

    /// Fills the distances, now that every place is known.
    fn link(&mut self) {
        for link in &self.links {
            let place = match link.to {
                Filling::Node(id) => self.places[id as usize],
                Filling::Spot(spot) => self.spots[spot],
                Filling::Value(_) => None,
            };
            self.draft.amend(link.at, place.unwrap_or(0).wrapping_sub(link.end));
        }
    }
}

/// Bytes of a cell.
const CELL_BYTES: u32 = 2;

/// Instead of a second word, where a step or test has one: the same again.
fn asked(test: Test) -> [Word; 2] {
    match test {
        Test::Is(a, _) | Test::Below(a, _) | Test::In(a, _) => [a, a],
        Test::Same(a, b) | Test::Differ(a, b) | Test::BelowWord(a, b) => [a, b],
    }
}

/// The words of a step, the one that is an index last, and whether it changes the first of them.
fn touched(step: Step) -> ([Word; 2], bool) {
    match step {
        Step::Set(a, _) | Step::Add(a, _) | Step::Or(a, _) | Step::Multiply(a, _) | Step::Digit(a, ..) => {
            ([a, a], true)
        }
        Step::Move(a, b) | Step::AddWord(a, b) | Step::SubtractWord(a, b) | Step::Load(a, _, b) => ([a, b], true),
        Step::Store(_, index, _) | Step::Mark(_, index) => ([index, index], false),
        Step::StoreCell(_, index, _, above) => ([above, index], false),
        Step::Blank(_, index, cells) => ([cells, index], false),
        Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => {
            ([Word::MAX, Word::MAX], false)
        }
    }
}

/// Steps of a text path that are looked at.
const PATH_STEPS: usize = 64;

/// The words that text needs most: those on the path of a letter through each state, where a word is seldom a
/// particular number. Words that only change by other steps than counting gain nothing from a register.
fn hot_words(graph: &Graph) -> [Option<Word>; HOT.len()] {
    let mut counts = vec![0u32; graph.words];
    for node in &graph.nodes {
        let Node::Take(ranges) = node else { continue };
        let mut id = leads(ranges, b'e');
        for _ in 0..PATH_STEPS {
            let (word, next) = match &graph.nodes[id as usize] {
                Node::Take(_) => break,
                Node::Emit(_, next) | Node::Outside(_, next) => (None, *next),
                Node::Do(
                    Step::Add(word, 1) | Step::Store(_, word, Value::Input) | Step::StoreCell(_, word, Value::Input, _),
                    next,
                ) => (Some(*word), *next),
                Node::Do(_, next) => (None, *next),
                Node::Test(Test::Is(word, _), _, no) => (Some(*word), *no),
                Node::Test(Test::Below(word, _), yes, _) => (Some(*word), *yes),
                Node::Test(_, yes, _) => (None, *yes),
            };
            if let Some(word) = word {
                counts[usize::from(word)] += 1;
            }
            id = next;
        }
    }
    // The largest counts, by taking them out one after the other.
    let mut words = [None; HOT.len()];
    for hot in &mut words {
        let most = counts.iter().copied().max().unwrap_or(0);
        if let Some(word) = counts.iter().position(|count| most > 0 && *count == most) {
            counts[word] = 0;
            *hot = Some(word as Word);
        }
    }
    words
}
