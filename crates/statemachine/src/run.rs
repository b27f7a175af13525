//! Interpretation in plain Rust: what the generated code must do.

use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node};
use crate::language::{Step, Test};

/// What a machine cannot do itself.
pub trait Outside {
    /// Does the thing with this number.
    fn call(&mut self, number: u16, words: &mut [u32], arrays: &mut [Vec<u8>]);
}

/// A machine in some state.
pub struct Runner<'a> {
    graph: &'a Graph,
    at: Id,
    pub words: Vec<u32>,
    pub arrays: Vec<Vec<u8>>,
}

impl<'a> Runner<'a> {
    /// A machine at its start.
    pub fn new(graph: &'a Graph) -> Runner<'a> {
        let arrays = graph.arrays.iter().map(|&bytes| vec![0; bytes as usize]).collect();
        Runner { graph, at: 0, words: vec![0; graph.words], arrays }
    }

    /// Takes one byte and goes on to the next state. What is emitted goes to `emit`.
    pub fn take(&mut self, byte: u8, emit: &mut impl FnMut(u8), outside: &mut impl Outside) {
        if let Node::Take(table) = &self.graph.nodes[self.at as usize] {
            self.at = table[usize::from(byte)];
        }
        loop {
            self.at = match &self.graph.nodes[self.at as usize] {
                Node::Take(_) => return,
                Node::Emit(value, next) => {
                    emit(value.of(byte));
                    *next
                }
                Node::Do(step, next) => {
                    self.step(*step, byte);
                    *next
                }
                Node::Outside(number, next) => {
                    outside.call(*number, &mut self.words, &mut self.arrays);
                    *next
                }
                Node::Test(test, yes, no) => *if self.holds(*test) { yes } else { no },
            };
        }
    }

    fn word(&mut self, word: u16) -> &mut u32 {
        &mut self.words[usize::from(word)]
    }

    fn holds(&self, test: Test) -> bool {
        let word = |word: u16| self.words[usize::from(word)];
        match test {
            Test::Is(a, number) => word(a) == number,
            Test::Below(a, number) => word(a) < number,
            Test::Same(a, b) => word(a) == word(b),
            Test::Differ(a, b) => word(a) != word(b),
            Test::BelowWord(a, b) => word(a) < word(b),
            Test::In(a, set) => {
                let byte = word(a) as u8;
                self.graph.sets[usize::from(set)][usize::from(byte / 32)] & 1 << (byte % 32) != 0
            }
        }
    }

    fn step(&mut self, step: Step, input: u8) {
        match step {
            Step::Set(a, number) => *self.word(a) = number,
            Step::Add(a, number) => *self.word(a) = self.word(a).wrapping_add(number),
            Step::Or(a, number) => *self.word(a) |= number,
            Step::Multiply(a, by) => *self.word(a) = self.word(a).wrapping_mul(by),
            Step::Move(a, b) => *self.word(a) = *self.word(b),
            Step::AddWord(a, b) => *self.word(a) = self.words[usize::from(a)].wrapping_add(*self.word(b)),
            Step::SubtractWord(a, b) => *self.word(a) = self.words[usize::from(a)].wrapping_sub(*self.word(b)),
            Step::Digit(a, value, most) => {
                let digit = u32::from(value.of(input)).wrapping_sub(48);
                *self.word(a) = self.word(a).wrapping_mul(10).wrapping_add(digit).min(most);
            }
            Step::Store(array, index, value) => {
                let at = *self.word(index);
                let array = &mut self.arrays[usize::from(array)];
                let at = at as usize & (array.len() - 1);
                array[at] = value.of(input);
            }
            Step::Load(a, array, index) => {
                let at = *self.word(index);
                let array = &self.arrays[usize::from(array)];
                *self.word(a) = array[at as usize & (array.len() - 1)].into();
            }
            // These have become nodes or edges.
            Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => {}
        }
    }
}
