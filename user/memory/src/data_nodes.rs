//! Nodes as ordinary words.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use ground::{Errno, Mapping};

use crate::tree::{Link, Node, Nodes, Side};

/// 24 bytes: two nodes or three in a cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
struct Word {
    address: u32,
    /// The child that is tried first is `children[first]`.
    first: u32,
    children: [Node; 2],
    bytes: [u32; 2],
}

/// The nodes of a tree, as words.
#[derive(Debug)]
pub struct DataNodes {
    words: Mapping,
    /// Nodes that were ever taken, and the list of those that were given back.
    used: u32,
    free: Node,
    root: (Node, u32),
    random: u32,
}

impl DataNodes {
    /// Room for `count` nodes.
    ///
    /// # Errors
    /// The system's, when there is no memory.
    pub fn new(count: usize, seed: u32) -> Result<DataNodes, Errno> {
        let words = Mapping::zeroed((count + 1) * size_of::<Word>())?;
        Ok(DataNodes { words, used: 0, free: 0, root: (0, 0), random: seed | 1 })
    }

    fn word(&self, node: Node) -> &Word {
        debug_assert!(node <= self.used);
        // SAFETY: 1. nodes are at most `used`, which fits the memory (see `take`). 2. It is zeroed or was written. 3. Nobody
        // else has it.
        unsafe { &*(self.words.at() as *const Word).add(node as usize) }
    }

    fn word_mut(&mut self, node: Node) -> &mut Word {
        debug_assert!(node <= self.used);
        // SAFETY: as in `word`, and `&mut self`.
        unsafe { &mut *(self.words.at() as *mut Word).add(node as usize) }
    }
}

/// One step of the usual 32-bit shift register (G. Marsaglia, *Xorshift RNGs*).
pub(crate) fn draw(random: &mut u32) -> u32 {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    *random
}

impl Nodes for DataNodes {
    fn take(&mut self, address: u32) -> Option<Node> {
        let node = match self.free {
            0 if (self.used as usize + 2) * size_of::<Word>() > self.words.bytes() => return None,
            0 => {
                self.used += 1;
                self.used
            }
            free => {
                self.free = self.word(free).children[0];
                free
            }
        };
        let first = draw(&mut self.random) >> 31;
        *self.word_mut(node) = Word { address, first, ..Word::default() };
        Some(node)
    }

    fn give_back(&mut self, node: Node) {
        let next = self.free;
        self.word_mut(node).children[0] = next;
        self.free = node;
    }

    fn address(&self, node: Node) -> u32 {
        self.word(node).address
    }

    fn at(&self, link: Link) -> (Node, u32) {
        match link {
            Link::Root => self.root,
            Link::Child(node, side) => {
                let word = self.word(node);
                (word.children[side as usize], word.bytes[side as usize])
            }
        }
    }

    fn hang(&mut self, link: Link, node: Node, bytes: u32) {
        match link {
            Link::Root => self.root = (node, bytes),
            Link::Child(parent, side) => {
                let word = self.word_mut(parent);
                word.children[side as usize] = node;
                word.bytes[side as usize] = bytes;
            }
        }
    }

    fn fit(&mut self, bytes: u32) -> Option<(Node, Link)> {
        if self.root.1 < bytes {
            return None;
        }
        let (mut node, mut link) = (self.root.0, Link::Root);
        loop {
            let word = self.word(node);
            let first = word.first as usize & 1;
            let child = match () {
                () if bytes <= word.bytes[first] => first,
                () if bytes <= word.bytes[first ^ 1] => first ^ 1,
                () => return Some((node, link)),
            };
            link = Link::Child(node, if child == 0 { Side::Left } else { Side::Right });
            node = word.children[child];
        }
    }

    fn around(&mut self, address: u32) -> (Node, Node) {
        let (mut before, mut behind) = (0, 0);
        let mut node = self.root.0;
        while node != 0 {
            let word = self.word(node);
            let right = address > word.address;
            if right {
                before = node
            } else {
                behind = node
            }
            node = word.children[usize::from(right)];
        }
        (before, behind)
    }
}
