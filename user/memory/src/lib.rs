//! Memory for ordinary Linux programs, with the papers' methods: a heap (S-110), block copy and string compare (S-111;
//! SOSP'89 6.3).
//!
//! - [`Heap`] is a fast-fit heap: the free blocks are a tree, ordered by address from left to right and by size from top to
//!   bottom. The tree is kept in one of two ways ([`Nodes`]): [`CodeNodes`], where each node is code that compares and
//!   jumps on to its child (the papers' executable data structure), and [`DataNodes`], ordinary words. The second is
//!   faster on today's processors and is what [`Heap::new`] takes; docs/adr/0027-fast-fit.md has the figures.
//! - [`pool::Pool`] is such a heap with lists of freed blocks in front, which is what programs want of a `malloc`.
//! - [`Copier`] and [`Comparer`] are routines written for one length and one text.
//!
//! Code lies in [`Twin`] regions: two views of the same memory in the low 2 GB, one to write and one to execute.
//!
//! A heap has no lock: it belongs to one thread at a time.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod blocks;
#[cfg(feature = "c")]
mod c;
mod code_nodes;
mod data_nodes;
mod heap;
#[cfg(feature = "malloc")]
mod lock;
#[cfg(feature = "malloc")]
mod malloc;
pub mod pool;
mod template;
mod tree;

pub use blocks::{Comparer, Copier, Routines};
pub use code_nodes::CodeNodes;
pub use data_nodes::DataNodes;
pub use ground::Errno;
pub use ground::{Twin, serialize};
pub use heap::{BYTES_MAX, Heap, Measure};
pub use tree::{Link, Node, Nodes, Side};
