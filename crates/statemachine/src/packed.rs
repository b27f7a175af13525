//! Graphs as constants. What a machine does, and what two joined do, follows from tables that never change, so it is found when
//! a kernel is built; the kernel unpacks what was found.
//!
//! All is numbers, the small ones short: seven bits in a byte, the lowest first, and a bit that says that more follow.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node};
use crate::language::{Step, Test, Value};
use crate::product::Product;

/// Kinds of nodes, as in [`Node::key`].
const TAKE: u32 = 0;
const EMIT: u32 = 1;
const OUTSIDE: u32 = 2;

/// Writes numbers.
#[derive(Default)]
struct Packer(Vec<u8>);

impl Packer {
    fn put(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn put_all(&mut self, numbers: &[u32]) {
        self.put(numbers.len() as u32);
        numbers.iter().for_each(|number| self.put(*number));
    }

    fn node(&mut self, node: &Node) {
        let [kind, a, b] = node.key();
        self.put(kind);
        match node {
            Node::Take(ranges) => {
                self.put(ranges.len() as u32);
                ranges
                    .iter()
                    .for_each(|(first, id)| [(*first).into(), *id].into_iter().for_each(|part| self.put(part)));
            }
            Node::Emit(_, next) | Node::Outside(_, next) => [a, *next].into_iter().for_each(|part| self.put(part)),
            Node::Do(_, next) => [a, b, *next].into_iter().for_each(|part| self.put(part)),
            Node::Test(_, yes, no) => [a, b, *yes, *no].into_iter().for_each(|part| self.put(part)),
        }
    }
}

/// Reads them; behind the end all are 0.
struct Unpacker<'a>(core::slice::Iter<'a, u8>);

impl Unpacker<'_> {
    fn take(&mut self) -> u32 {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.0.next().copied().unwrap_or(0);
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.take();
        (0..count).map(|_| element(self)).collect()
    }

    fn node(&mut self) -> Node {
        let kind = self.take();
        if kind == TAKE {
            let ranges: Box<[(u8, Id)]> = self.list(|all| (all.take() as u8, all.take())).into();
            return Node::Take(ranges);
        }
        let a = self.take();
        if let EMIT | OUTSIDE = kind {
            let next = self.take();
            return if kind == EMIT { Node::Emit(Value::of_key(a), next) } else { Node::Outside(a as u16, next) };
        }
        let (key, next) = ([kind, a, self.take()], self.take());
        match Test::of_key(key) {
            Some(test) => Node::Test(test, next, self.take()),
            None => Node::Do(Step::of_key(key), next),
        }
    }
}

impl Graph {
    /// The graph as bytes.
    pub fn packed(&self) -> Vec<u8> {
        let mut all = Packer::default();
        all.put(self.words as u32);
        all.put_all(&self.arrays);
        all.put_all(self.sets.as_flattened());
        all.put(self.nodes.len() as u32);
        self.nodes.iter().for_each(|node| all.node(node));
        all.0
    }

    /// The graph that was packed.
    pub fn unpacked(packed: &[u8]) -> Graph {
        let mut all = Unpacker(packed.iter());
        let words = all.take() as usize;
        let arrays = all.list(Unpacker::take);
        let sets = all.list(Unpacker::take).as_chunks().0.to_vec();
        Graph { words, arrays, sets, nodes: all.list(Unpacker::node) }
    }
}

impl Product {
    /// The pairs of states as bytes.
    pub fn packed_pairs(&self) -> Vec<u8> {
        let mut all = Packer::default();
        all.put(self.pairs().count() as u32);
        self.pairs().for_each(|(second, both)| [second, both].into_iter().for_each(|id| all.put(id)));
        all.0
    }

    /// The pairs that were packed.
    pub fn unpacked_pairs(packed: &[u8]) -> Vec<(Id, Id)> {
        Unpacker(packed.iter()).list(|all| (all.take(), all.take()))
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::{COOK, EDIT, VT100, cook_vt100, edit_cook, edit_unseen};
    use crate::{Graph, Product};

    #[test]
    fn a_graph_is_what_it_was_after_packing() {
        let graphs = [&COOK, &EDIT, &VT100].map(Graph::of).into_iter();
        for graph in graphs.chain([cook_vt100().graph, edit_cook(), edit_unseen()]) {
            let again = Graph::unpacked(&graph.packed());
            assert_eq!(format!("{:?}", again.nodes), format!("{:?}", graph.nodes));
            assert_eq!((again.words, &again.arrays, &again.sets), (graph.words, &graph.arrays, &graph.sets));
        }
        let pairs = cook_vt100();
        assert!(pairs.pairs().eq(Product::unpacked_pairs(&pairs.packed_pairs())));
    }

    #[test]
    fn bytes_that_end_too_early_are_read_as_zeroes() {
        let packed = Graph::of(&VT100).packed();
        for end in 0..packed.len() {
            Graph::unpacked(&packed[..end]);
        }
    }
}
