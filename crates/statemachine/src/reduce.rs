//! The smallest graph that does the same: nodes that nobody can tell apart become one.
//!
//! Partition refinement (Moore 1956): two nodes are alike until a step, or a node it leads to, shows that they are not.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node};

impl Graph {
    pub(crate) fn reduced(&self) -> Graph {
        let mut class: Vec<Id> = vec![0; self.nodes.len()];
        let mut count = 1;
        loop {
            let mut known = BTreeMap::new();
            let next: Vec<Id> = self
                .nodes
                .iter()
                .map(|node| {
                    let number = known.len() as Id;
                    *known.entry(node.redirected(|id| class[id as usize])).or_insert(number)
                })
                .collect();
            let classes = known.len();
            class = next;
            if classes == count {
                return self.merged(&class, count);
            }
            count = classes;
        }
    }

    /// One node for each class that the start can reach, in the order of the walk.
    fn merged(&self, class: &[Id], count: usize) -> Graph {
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
        Graph { nodes, words: self.words, arrays: self.arrays.clone(), sets: self.sets.clone() }
    }
}

pub(crate) fn each_next(node: &Node, mut visit: impl FnMut(Id)) {
    match node {
        Node::Take(table) => table.iter().for_each(|&id| visit(id)),
        Node::Emit(_, next) | Node::Do(_, next) | Node::Outside(_, next) => visit(*next),
        Node::Test(_, yes, no) => {
            visit(*yes);
            visit(*no);
        }
    }
}
