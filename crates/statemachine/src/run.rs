//! Interpretation in plain Rust: what the generated code must do.

use crate::block::{Block, Memory};
use crate::graph::{Graph, Id, Node, leads};
use crate::language::{Step, Test};

/// What a machine cannot do itself.
pub trait Outside {
    /// Does the thing with this number.
    fn call(&mut self, number: u16, memory: Memory<'_>);
}

/// A machine in some state, with memory of its own.
pub struct Runner<'a> {
    graph: &'a Graph,
    at: Id,
    block: Block,
}

impl<'a> Runner<'a> {
    /// A machine at its start.
    pub fn new(graph: &'a Graph) -> Runner<'a> {
        Runner { graph, at: 0, block: Block::new(graph) }
    }

    pub fn memory(&self) -> Memory<'_> {
        self.block.memory()
    }

    /// Takes one byte and goes on to the next state. What is emitted goes to `emit`.
    pub fn take(&mut self, byte: u8, emit: &mut impl FnMut(u8), outside: &mut impl Outside) {
        self.at = self.graph.take(self.at, self.block.memory(), byte, emit, outside);
    }
}

impl Graph {
    /// In state `at`, takes one byte. Returns the next state.
    pub fn take(
        &self,
        at: Id,
        memory: Memory<'_>,
        byte: u8,
        emit: &mut impl FnMut(u8),
        outside: &mut impl Outside,
    ) -> Id {
        let mut at = match &self.nodes[at as usize] {
            Node::Take(ranges) => leads(ranges, byte),
            _ => at,
        };
        loop {
            at = match &self.nodes[at as usize] {
                Node::Take(_) => return at,
                Node::Emit(value, next) => {
                    emit(value.of(byte));
                    *next
                }
                Node::Do(step, next) => {
                    memory.step(*step, byte);
                    *next
                }
                Node::Outside(number, next) => {
                    outside.call(*number, memory);
                    *next
                }
                Node::Test(test, yes, no) => *if self.holds(*test, memory) { yes } else { no },
            };
        }
    }

    fn holds(&self, test: Test, memory: Memory<'_>) -> bool {
        let word = |word: u16| memory.words[usize::from(word)].get();
        match test {
            Test::Is(a, number) => word(a) == number,
            Test::Below(a, number) => word(a) < number,
            Test::Same(a, b) => word(a) == word(b),
            Test::Differ(a, b) => word(a) != word(b),
            Test::BelowWord(a, b) => word(a) < word(b),
            Test::In(a, set) => {
                let byte = word(a) as u8;
                self.sets[usize::from(set)][usize::from(byte / 32)] & 1 << (byte % 32) != 0
            }
        }
    }
}

impl Memory<'_> {
    fn step(self, step: Step, input: u8) {
        let word = |word: u16| self.words[usize::from(word)].get();
        let set = |word: u16, number: u32| self.words[usize::from(word)].set(number);
        match step {
            Step::Set(a, number) => set(a, number),
            Step::Add(a, number) => set(a, word(a).wrapping_add(number)),
            Step::Or(a, number) => set(a, word(a) | number),
            Step::Multiply(a, by) => set(a, word(a).wrapping_mul(by)),
            Step::Move(a, b) => set(a, word(b)),
            Step::AddWord(a, b) => set(a, word(a).wrapping_add(word(b))),
            Step::SubtractWord(a, b) => set(a, word(a).wrapping_sub(word(b))),
            Step::Digit(a, value, most) => {
                let digit = u32::from(value.of(input)).wrapping_sub(48);
                set(a, word(a).wrapping_mul(10).wrapping_add(digit).min(most));
            }
            Step::Store(array, index, value) => self.store(array, word(index) as usize, value.of(input)),
            Step::Load(a, array, index) => {
                let array = &self.arrays[usize::from(array)];
                set(a, array[word(index) as usize & (array.len() - 1)].get().into());
            }
            Step::StoreCell(array, index, value, above) => {
                self.store_cell(array, word(index) as usize, u16::from(value.of(input)) | word(above) as u16);
            }
            Step::Blank(array, index, cells) => {
                let first = word(index) as usize & !15;
                for at in 0..16 {
                    self.store_cell(array, first + at, (word(cells) >> (16 * (at & 1))) as u16);
                }
            }
            Step::Mark(array, index) => {
                let array = &self.arrays[usize::from(array)];
                let bit = word(index) as usize & (8 * array.len() - 1);
                array[bit / 8].set(array[bit / 8].get() | 1 << (bit % 8));
            }
            // These have become nodes or edges.
            Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => {}
        }
    }

    fn store(self, array: u16, at: usize, byte: u8) {
        let array = &self.arrays[usize::from(array)];
        array[at & (array.len() - 1)].set(byte);
    }

    fn store_cell(self, array: u16, at: usize, cell: u16) {
        let [low, high] = cell.to_le_bytes();
        self.store(array, 2 * at, low);
        self.store(array, 2 * at + 1, high);
    }
}
