//! The smallest graph that does the same: nodes that nobody can tell apart become one.
//!
//! Two nodes are alike if they do the same step and lead to nodes that are alike. Steps lead to others in one direction, but for
//! states and the heads of loops. So a round takes it that all of those that look alike are, finds in one pass from the
//! ends to the beginnings which of the others are, and then looks whether the states and loops still are; where not, it begins
//! again with what it has learnt. Few rounds suffice, because there are few states.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node};
use crate::language::{Step, Test, Value};

/// What a node does, wherever it leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Take,
    Emit(Value),
    Do(Step),
    Outside(u16),
    Test(Test),
}

fn shape(node: &Node) -> Shape {
    match node {
        Node::Take(_) => Shape::Take,
        Node::Emit(value, _) => Shape::Emit(*value),
        Node::Do(step, _) => Shape::Do(*step),
        Node::Outside(number, _) => Shape::Outside(*number),
        Node::Test(test, ..) => Shape::Test(*test),
    }
}

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
        let mut waiting = vec![0 as Id];
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
            each_next(&graph.nodes[at], |next| match walked[next as usize] {
                Walked::Not => waiting.push(next),
                Walked::Begun => order.is_anchor[next as usize] = true,
                Walked::Done => {}
            });
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
        let mut shapes = BTreeMap::new();
        for id in order.anchors() {
            let next = shapes.len() as Id;
            class[id as usize] = *shapes.entry(shape(&self.nodes[id as usize])).or_insert(next);
        }
        (class, shapes.len())
    }

    /// All others are alike where they do the same and lead to what is alike. Returns how many classes they are.
    fn classify(&self, order: &Order, class: &mut [Id], anchors: usize) -> usize {
        let mut known = BTreeMap::new();
        for &id in order.nodes.iter().filter(|id| !order.is_anchor[**id as usize]) {
            let node = &self.nodes[id as usize];
            let next = (anchors + known.len()) as Id;
            class[id as usize] = *known.entry((shape(node), behind(node, class))).or_insert(next);
        }
        known.len()
    }

    /// Anchors that were taken to be alike and lead to what is not are no more. Returns how many classes they are now.
    fn split_anchors(&self, order: &Order, class: &mut [Id]) -> usize {
        let mut known: Vec<(Id, Node)> = Vec::new();
        let mut fresh = Vec::new();
        for id in order.anchors() {
            let seen = (class[id as usize], self.nodes[id as usize].redirected(|next| class[next as usize]));
            let number = known.iter().position(|other| *other == seen).unwrap_or(known.len());
            if number == known.len() {
                known.push(seen);
            }
            fresh.push((id, number as Id));
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

/// The classes of what a step leads to.
fn behind(node: &Node, class: &[Id]) -> [Id; 2] {
    let of = |id: &Id| class[*id as usize];
    match node {
        Node::Take(_) => [0, 0],
        Node::Emit(_, next) | Node::Do(_, next) | Node::Outside(_, next) => [of(next), 0],
        Node::Test(_, yes, no) => [of(yes), of(no)],
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
