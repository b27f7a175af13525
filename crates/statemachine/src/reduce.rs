//! The smallest graph that does the same: nodes that nobody can tell apart become one.
//!
//! Two nodes are alike if they do the same step and lead to nodes that are alike. Steps lead to others in one direction, but for
//! states and the heads of loops. So a round takes it that all of those that look alike are, finds in one pass from the
//! ends to the beginnings which of the others are, and then looks whether the states and loops still are; where not, it begins
//! again with what it has learnt. Few rounds suffice, because there are few states.

use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node};
use crate::numbers::{Key, Numbers};

/// Where nodes are looked at in a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walked {
    Not,
    /// Something behind it is being looked at.
    Begun,
    Done,
}

/// The nodes that the start can reach, those behind each before it but for loops, and those where the order fails: states
/// and heads of loops.
struct Order {
    nodes: Vec<Id>,
    is_anchor: Vec<bool>,
}

impl Order {
    fn of(graph: &Graph) -> Order {
        let mut order = Order { nodes: Vec::with_capacity(graph.nodes.len()), is_anchor: Vec::new() };
        order.is_anchor = graph.nodes.iter().map(|node| matches!(node, Node::Take(_))).collect();
        let mut walked = vec![Walked::Not; graph.nodes.len()];
        // From each state on its own: a way through another state is no loop.
        let (mut states, mut waiting) = (vec![0 as Id], Vec::new());
        for number in 0.. {
            let Some(&state) = states.get(number) else { break };
            waiting.push(state);
            while let Some(&id) = waiting.last() {
                let at = id as usize;
                if walked[at] != Walked::Not {
                    waiting.pop();
                    if walked[at] == Walked::Begun {
                        walked[at] = Walked::Done;
                        order.nodes.push(id);
                    }
                    continue;
                }
                walked[at] = Walked::Begun;
                each_next(&graph.nodes[at], |next| match (walked[next as usize], &graph.nodes[next as usize]) {
                    (Walked::Not, Node::Take(_)) => states.push(next),
                    (Walked::Not, _) => waiting.push(next),
                    (Walked::Begun, _) => order.is_anchor[next as usize] = true,
                    (Walked::Done, _) => {}
                });
            }
        }
        order
    }

    fn anchors(&self) -> impl Iterator<Item = Id> {
        self.nodes.iter().copied().filter(|id| self.is_anchor[*id as usize])
    }
}

impl Graph {
    /// Also returns the new number of each node that the start can reach.
    pub(crate) fn reduced(&self) -> (Graph, Vec<Id>) {
        let order = Order::of(self);
        let (mut class, mut anchors) = self.first_classes(&order);
        loop {
            let others = self.classify(&order, &mut class, anchors);
            let split = self.split_anchors(&order, &mut class);
            if split == anchors {
                return self.merged(&class, anchors + others);
            }
            anchors = split;
        }
    }

    /// Anchors that do the same step are taken to be alike. Returns how many classes they are.
    fn first_classes(&self, order: &Order) -> (Vec<Id>, usize) {
        let mut class = vec![0; self.nodes.len()];
        let mut known = Numbers::new();
        for id in order.anchors() {
            let [kind, a, b] = self.nodes[id as usize].key();
            class[id as usize] = known.of([kind, a, b, 0, 0]);
        }
        (class, known.len())
    }

    /// All others are alike where they do the same and lead to what is alike. Returns how many classes they are.
    fn classify(&self, order: &Order, class: &mut [Id], anchors: usize) -> usize {
        let mut known = Numbers::new();
        for &id in order.nodes.iter().filter(|id| !order.is_anchor[**id as usize]) {
            class[id as usize] = anchors as Id + known.of(seen(&self.nodes[id as usize], class));
        }
        known.len()
    }

    /// Anchors that were taken to be alike and lead to what is not are no more. Returns how many classes they are now.
    fn split_anchors(&self, order: &Order, class: &mut [Id]) -> usize {
        let (mut steps, mut known) = (Numbers::new(), Numbers::new());
        let mut fresh = Vec::new();
        for id in order.anchors() {
            let node = &self.nodes[id as usize];
            let before = class[id as usize];
            let number = match node {
                // A number for each beginning of the list, and so for the list.
                Node::Take(ranges) => {
                    let mut last = Id::MAX;
                    ranges.iter().fold(before, |so_far, range| {
                        let next = class[range.1 as usize];
                        let is_same = core::mem::replace(&mut last, next) == next;
                        if is_same { so_far } else { steps.of([u32::MAX, so_far, range.0.into(), next, 0]) }
                    })
                }
                node => steps.of(seen(node, class)),
            };
            fresh.push((id, known.of([before, number, 0, 0, 0])));
        }
        fresh.into_iter().for_each(|(id, number)| class[id as usize] = number);
        known.len()
    }

    /// One node for each class that the start can reach, in the order of the walk.
    fn merged(&self, class: &[Id], count: usize) -> (Graph, Vec<Id>) {
        let mut numbers: Vec<Option<Id>> = vec![None; count];
        let mut walk = vec![0 as Id];
        numbers[class[0] as usize] = Some(0);
        let mut done = 0;
        while done < walk.len() {
            each_next(&self.nodes[walk[done] as usize], |next| {
                let number = &mut numbers[class[next as usize] as usize];
                if number.is_none() {
                    *number = Some(walk.len() as Id);
                    walk.push(next);
                }
            });
            done += 1;
        }
        let to = |id: Id| numbers[class[id as usize] as usize].unwrap_or(0);
        let nodes = walk.iter().map(|&id| self.nodes[id as usize].redirected(to)).collect();
        let graph = Graph { nodes, words: self.words, arrays: self.arrays.clone(), sets: self.sets.clone() };
        (graph, (0..self.nodes.len() as Id).map(to).collect())
    }
}

/// What a step does, and the classes of what it leads to.
fn seen(node: &Node, class: &[Id]) -> Key {
    let of = |id: &Id| class[*id as usize];
    let [kind, a, b] = node.key();
    match node {
        Node::Take(_) => [kind, a, b, 0, 0],
        Node::Emit(_, next) | Node::Do(_, next) | Node::Outside(_, next) => [kind, a, b, of(next), 0],
        Node::Test(_, yes, no) => [kind, a, b, of(yes), of(no)],
    }
}

pub(crate) fn each_next(node: &Node, mut visit: impl FnMut(Id)) {
    match node {
        Node::Take(ranges) => ranges.iter().for_each(|range| visit(range.1)),
        Node::Emit(_, next) | Node::Do(_, next) | Node::Outside(_, next) => visit(*next),
        Node::Test(_, yes, no) => {
            visit(*yes);
            visit(*no);
        }
    }
}
