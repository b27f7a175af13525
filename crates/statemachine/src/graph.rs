//! Machines as graphs of single steps.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::language::{Machine, Step, Test, Value};

/// Number of a node.
pub type Id = u32;

/// One step and where it leads.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Takes a byte: a state. Where it leads from each byte on up to the next in the list, which begins with byte 0.
    Take(Box<[(u8, Id)]>),
    Emit(Value, Id),
    /// A step on words and arrays.
    Do(Step, Id),
    Outside(u16, Id),
    Test(Test, Id, Id),
}

impl Node {
    /// A state, of ranges by their first bytes, in order.
    pub(crate) fn take(all: impl Iterator<Item = (u8, Id)>) -> Node {
        let mut ranges: Vec<(u8, Id)> = Vec::with_capacity(USUAL_RANGES);
        for (first, id) in all {
            if ranges.last().is_none_or(|last| last.1 != id) {
                ranges.push((first, id));
            }
        }
        Node::Take(ranges.into())
    }

    /// What the step is, wherever it leads: equal only if the steps are.
    pub(crate) fn key(&self) -> [u32; 3] {
        match self {
            Node::Take(_) => [0; 3],
            Node::Emit(value, _) => [1, value.key(), 0],
            Node::Outside(number, _) => [2, (*number).into(), 0],
            Node::Test(test, ..) => test.key(),
            Node::Do(step, _) => step.key(),
        }
    }

    /// The same step, leading elsewhere.
    pub(crate) fn redirected(&self, to: impl Fn(Id) -> Id) -> Node {
        match self {
            Node::Take(ranges) => Node::take(ranges.iter().map(|&(first, id)| (first, to(id)))),
            Node::Emit(value, next) => Node::Emit(*value, to(*next)),
            Node::Do(step, next) => Node::Do(*step, to(*next)),
            Node::Outside(number, next) => Node::Outside(*number, to(*next)),
            Node::Test(test, yes, no) => Node::Test(*test, to(*yes), to(*no)),
        }
    }
}

/// Where a state leads on this byte.
pub(crate) fn leads(ranges: &[(u8, Id)], byte: u8) -> Id {
    ranges[ranges.partition_point(|range| range.0 <= byte) - 1].1
}

/// Ranges of a usual state.
const USUAL_RANGES: usize = 32;

/// A set of byte values.
pub(crate) type Set = [u32; 8];

/// A machine, ready to be run, joined with another, or made into code. Node 0 is the state it starts in.
#[derive(Clone)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) words: usize,
    pub(crate) arrays: Vec<u32>,
    pub(crate) sets: Vec<Set>,
}

impl Graph {
    /// The graph of a machine.
    ///
    /// # Panics
    /// When a table of the machine is wrong: a state, word, array or set that it does not have.
    pub fn of(machine: &Machine) -> Graph {
        let states = machine.states.len();
        let stay = |state: usize| Node::take([(0, state as Id)].into_iter());
        let mut graph = Graph {
            nodes: (0..states).map(stay).collect(),
            words: machine.words.len(),
            arrays: machine.arrays.to_vec(),
            sets: machine.sets.iter().map(|ranges| set(ranges)).collect(),
        };
        for (number, state) in machine.states.iter().enumerate() {
            let mut table = [number as Id; 256];
            for row in state.rows.iter().rev() {
                let first = graph.lower(row.steps, number as Id, states);
                table[usize::from(row.first)..=usize::from(row.last)].fill(first);
            }
            graph.nodes[number] = Node::take((0..=255).zip(table));
        }
        graph.reduced().0
    }

    /// Nodes, states among them.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// States.
    pub fn states(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, Node::Take(_))).count()
    }

    /// The same machine for other bytes: what it does with a byte is what it did with the byte that `like` says. A byte that
    /// is emitted or stored is still the one that came.
    pub fn with_bytes(mut self, like: impl Fn(u8) -> u8) -> Graph {
        let like: [u8; 256] = core::array::from_fn(|byte| like(byte as u8));
        for node in &mut self.nodes {
            if let Node::Take(ranges) = node {
                *node = Node::take((0..=255).zip(like).map(|(byte, like)| (byte, leads(ranges, like))));
            }
        }
        self
    }

    fn push(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() as Id - 1
    }

    /// The first node of `steps`, after which comes `next`.
    fn lower(&mut self, steps: &[Step], next: Id, states: usize) -> Id {
        steps.iter().rev().fold(next, |next, step| match *step {
            Step::Emit(value) => self.push(Node::Emit(value, next)),
            Step::Outside(number) => self.push(Node::Outside(number, next)),
            Step::Go(state) => {
                assert!(usize::from(state) < states, "no state {state}");
                Id::from(state)
            }
            Step::When(Test::Same(a, b), yes, _) if a == b => self.lower(yes, next, states),
            Step::When(test, yes, no) => {
                let (yes, no) = (self.lower(yes, next, states), self.lower(no, next, states));
                self.push(Node::Test(test, yes, no))
            }
            Step::While(test, body) => {
                let head = self.push(Node::Test(test, next, next));
                let body = self.lower(body, head, states);
                self.nodes[head as usize] = Node::Test(test, body, next);
                head
            }
            step => self.push(Node::Do(step, next)),
        })
    }
}

fn set(ranges: &[(u8, u8)]) -> Set {
    let mut set = [0; 8];
    for byte in ranges.iter().flat_map(|&(first, last)| first..=last) {
        set[usize::from(byte / 32)] |= 1 << (byte % 32);
    }
    set
}
