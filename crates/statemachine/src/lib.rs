//! A small language for machines that eat bytes, and three things to do with one (S-130, S-11, S-116):
//!
//! ```text
//!   Machine (const tables)  ──Graph::of──▶  Graph ──Runner──▶  interpreted, in plain Rust
//!                                             │ ──generate──▶  machine code whose state is a code address
//!   two Graphs  ──product──▶  one Graph       │     (no queue between them: an emitted byte is the next machine's step)
//!   Graph ──packed──▶ bytes in an image ──unpacked──▶ Graph
//! ```
//!
//! A machine has 32-bit words, arrays of bytes, and states. In a state it takes a byte, does the steps of the row the byte
//! is in, and goes to a state. What a machine cannot do itself is a call to the outside, a number.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod block;
mod generate;
mod graph;
mod language;
mod numbers;
mod packed;
pub mod parser;
mod product;
mod reduce;
mod run;
mod template;
pub mod terminal;

pub use block::{Block, Memory, Places};
pub use generate::{Generated, generate};
pub use graph::{Graph, Id};
pub use language::{Machine, Row, State, Step, Test, Value, Word};
pub use product::{Product, Unsupported, product};
pub use run::{Outside, Runner};
pub use template::templates;
