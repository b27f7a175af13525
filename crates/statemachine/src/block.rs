//! The memory of a machine. It does not move: code knows where it is.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use crate::graph::Graph;

/// The words and arrays that a machine's steps name.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub words: &'a [Cell<u32>],
    pub arrays: &'a [Box<[Cell<u8>]>],
}

impl Memory<'_> {
    /// What a machine behind another one has, whose words come first.
    pub fn behind(self, words: usize) -> Self {
        Memory { words: &self.words[words..], ..self }
    }
}

/// Memory for a machine as code: also its state, a code address, and the input while it is outside.
pub struct Block {
    head: Box<[Cell<u64>; 2]>,
    words: Box<[Cell<u32>]>,
    elsewhere: Vec<u64>,
    arrays: Vec<Box<[Cell<u8>]>>,
    /// The sets, constant.
    sets: Box<[u32]>,
}

/// Where the parts of a block lie.
#[derive(Clone)]
pub struct Places {
    pub state: u64,
    pub input: u64,
    /// Each word's own address: a machine may share them with others.
    pub words: Vec<u64>,
    pub arrays: Vec<u64>,
    pub sets: u64,
}

impl Block {
    /// Words and arrays are 0.
    pub fn new(graph: &Graph) -> Block {
        Block::beside(graph, &[])
    }

    /// The first arrays lie elsewhere, at these addresses.
    pub fn beside(graph: &Graph, elsewhere: &[u64]) -> Block {
        let zeroes = |bytes: &u32| vec![Cell::new(0); *bytes as usize].into();
        Block {
            head: Box::default(),
            words: (0..graph.words).map(|_| Cell::new(0)).collect(),
            elsewhere: elsewhere.to_vec(),
            arrays: graph.arrays.iter().skip(elsewhere.len()).map(zeroes).collect(),
            sets: graph.sets.iter().flatten().copied().collect(),
        }
    }

    pub fn memory(&self) -> Memory<'_> {
        Memory { words: &self.words, arrays: &self.arrays }
    }

    /// A code address once the machine has code.
    pub fn state(&self) -> &Cell<u64> {
        &self.head[0]
    }

    /// All that code for the block names: addresses and numbers of bytes, in the same order for every block of a machine.
    pub fn areas(&self) -> Vec<(u64, u64)> {
        let places = self.places();
        let arrays = places.arrays.iter().zip(&self.arrays).map(|(start, array)| (*start, array.len() as u64));
        let words = (self.words.as_ptr() as u64, 4 * self.words.len() as u64);
        [(places.state, 16), words, (places.sets, 4 * self.sets.len() as u64)].into_iter().chain(arrays).collect()
    }

    pub fn places(&self) -> Places {
        Places {
            state: self.head[0].as_ptr() as u64,
            input: self.head[1].as_ptr() as u64,
            words: self.words.iter().map(|word| word.as_ptr() as u64).collect(),
            arrays: self
                .elsewhere
                .iter()
                .copied()
                .chain(self.arrays.iter().map(|array| array.as_ptr() as u64))
                .collect(),
            sets: self.sets.as_ptr() as u64,
        }
    }
}
