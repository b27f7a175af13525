//! The tree of free blocks: a Cartesian tree (C. J. Stephenson, *Fast fits*, SOSP 1983). From left to right by address, no
//! child larger than its parent. So the root tells whether any block fits, and a descent never goes where none does.
//!
//! Blocks of one size would make it a list; equal sizes are therefore ordered by a number made of the address, which makes
//! it as deep as a random tree.

/// A node, by its number; 0 is none.
pub type Node = u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Left,
    Right,
}

/// A place where a subtree hangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    Root,
    Child(Node, Side),
}

/// How the nodes are kept. A node's size stands at the link it hangs from, because that is where it is asked for.
pub trait Nodes {
    /// A node without children for the free block at `address`; `None` when there is no room.
    fn take(&mut self, address: u32) -> Option<Node>;
    /// The node hangs nowhere any more.
    fn give_back(&mut self, node: Node);
    fn address(&self, node: Node) -> u32;
    /// What hangs there, and its bytes; (0, 0): nothing.
    fn at(&self, link: Link) -> (Node, u32);
    fn hang(&mut self, link: Link, node: Node, bytes: u32);
    /// A block with at least `bytes`, none of whose children has so many, and where it hangs. Which of two children that
    /// both would do is taken was drawn at random when the node was made.
    fn fit(&mut self, bytes: u32) -> Option<(Node, Link)>;
    /// The free blocks before and behind `address`; 0: none.
    fn around(&mut self, address: u32) -> (Node, Node);
}

/// Whether `a` belongs above `b`.
fn above<N: Nodes>(nodes: &N, a: (Node, u32), b: (Node, u32)) -> bool {
    let rank = |(node, bytes)| (bytes, nodes.address(node).wrapping_mul(0x9E37_79B1));
    rank(a) > rank(b)
}

/// Puts a node without children into the tree, at `from` or below.
pub fn insert<N: Nodes>(nodes: &mut N, from: Link, new: Node, bytes: u32) {
    let address = nodes.address(new);
    let mut link = from;
    let mut below = nodes.at(link);
    while below.0 != 0 && above(nodes, below, (new, bytes)) {
        let side = if nodes.address(below.0) < address { Side::Right } else { Side::Left };
        link = Link::Child(below.0, side);
        below = nodes.at(link);
    }
    let (mut left, mut right) = (Link::Child(new, Side::Left), Link::Child(new, Side::Right));
    while below.0 != 0 {
        let (node, bytes) = below;
        let (end, side) =
            if nodes.address(node) < address { (&mut left, Side::Right) } else { (&mut right, Side::Left) };
        hang_if_moved(nodes, *end, node, bytes);
        *end = Link::Child(node, side);
        below = nodes.at(*end);
    }
    hang_if_moved(nodes, left, 0, 0);
    hang_if_moved(nodes, right, 0, 0);
    nodes.hang(link, new, bytes);
}

/// Takes what hangs at `link` out of the tree; it keeps no children.
pub fn remove<N: Nodes>(nodes: &mut N, link: Link) {
    let (gone, _) = nodes.at(link);
    let mut link = link;
    let mut left = nodes.at(Link::Child(gone, Side::Left));
    let mut right = nodes.at(Link::Child(gone, Side::Right));
    while left.0 != 0 && right.0 != 0 {
        if above(nodes, left, right) {
            hang_if_moved(nodes, link, left.0, left.1);
            link = Link::Child(left.0, Side::Right);
            left = nodes.at(link);
        } else {
            hang_if_moved(nodes, link, right.0, right.1);
            link = Link::Child(right.0, Side::Left);
            right = nodes.at(link);
        }
    }
    let rest = if left.0 != 0 { left } else { right };
    hang_if_moved(nodes, link, rest.0, rest.1);
    for side in [Side::Left, Side::Right] {
        hang_if_moved(nodes, Link::Child(gone, side), 0, 0);
    }
}

/// Where the node hangs that keeps the free block at `address`, which is in the tree.
pub fn find<N: Nodes>(nodes: &N, address: u32) -> Link {
    let mut link = Link::Root;
    loop {
        let (node, _) = nodes.at(link);
        let here = nodes.address(node);
        if node == 0 || here == address {
            return link;
        }
        link = Link::Child(node, if here < address { Side::Right } else { Side::Left });
    }
}

/// Writing is dear where nodes are code.
fn hang_if_moved<N: Nodes>(nodes: &mut N, link: Link, node: Node, bytes: u32) {
    if nodes.at(link) != (node, bytes) {
        nodes.hang(link, node, bytes);
    }
}
