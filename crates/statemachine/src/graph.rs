//! Machines as graphs of single steps.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::language::{Machine, Step, Test, Value};

/// Number of a node.
pub(crate) type Id = u32;

/// One step and where it leads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Node {
    /// Takes a byte: a state. By byte, where it leads.
    Take(Box<[Id; 256]>),
    Emit(Value, Id),
    /// A step on words and arrays.
    Do(Step, Id),
    Outside(u16, Id),
    Test(Test, Id, Id),
}

impl Node {
    /// The same step, leading elsewhere.
    pub(crate) fn redirected(&self, to: impl Fn(Id) -> Id) -> Node {
        match self {
            Node::Take(table) => {
                let mut table = table.clone();
                table.iter_mut().for_each(|id| *id = to(*id));
                Node::Take(table)
            }
            Node::Emit(value, next) => Node::Emit(*value, to(*next)),
            Node::Do(step, next) => Node::Do(*step, to(*next)),
            Node::Outside(number, next) => Node::Outside(*number, to(*next)),
            Node::Test(test, yes, no) => Node::Test(*test, to(*yes), to(*no)),
        }
    }
}

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
        let stay = |state: usize| Node::Take(Box::new([state as Id; 256]));
        let mut graph = Graph {
            nodes: (0..states).map(stay).collect(),
            words: machine.words.len(),
            arrays: machine.arrays.to_vec(),
            sets: machine.sets.iter().map(|ranges| set(ranges)).collect(),
        };
        for (number, state) in machine.states.iter().enumerate() {
            let mut table = Box::new([number as Id; 256]);
            for row in state.rows.iter().rev() {
                let first = graph.lower(row.steps, number as Id, states);
                table[usize::from(row.first)..=usize::from(row.last)].fill(first);
            }
            graph.nodes[number] = Node::Take(table);
        }
        graph.reduced()
    }

    /// Nodes, states among them.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// States.
    pub fn states(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, Node::Take(_))).count()
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

/// Bytes grouped by what `of` says of them: the groups' first bytes.
pub(crate) fn groups<K: Ord>(of: impl Fn(u8) -> K) -> ([u8; 256], Vec<u8>) {
    let mut known = alloc::collections::BTreeMap::new();
    let mut first = [0; 256];
    let mut all = vec![];
    for byte in 0..=255u8 {
        first[usize::from(byte)] = *known.entry(of(byte)).or_insert_with(|| {
            all.push(byte);
            byte
        });
    }
    (first, all)
}
