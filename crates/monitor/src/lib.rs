//! The kernel monitor's language: C expressions, compiled by pasting templates (S-120; thesis 7.4.2).
//!
//! ```text
//!   text ─ parse ─► tree ─ lower ─► operations ═ bytes ═► decode ─ compile ─► code        (or interpret: the generic twin)
//!   └──────────── host tool ───────────────┘             └───────── kernel ───────┘
//! ```
//! Each operation is a template, and the templates are concatenated in the order in which a stack machine would run them.
//! The routine takes nothing and returns a value and how it ended ([`Ended`]): a load from memory that is not there, or a
//! division by zero, ends it and nothing else. The kernel takes operations from anybody: what [`decode`] accepts leaves
//! the stack as it was.
//!
//! Values are 64-bit words, signed as in C's `long`; arithmetic wraps. `(u8)x` and its kind cut a value, `*(u32 *)x` loads
//! one. Names are what [`Symbols`] says. What is not there: loops, types of one's own, text, floating point.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod blocks;
mod compile;
mod lexer;
mod lower;
mod ops;
mod read;
mod syntax;
mod template;
mod walk;

pub use compile::{World, compile, interpret};
pub use lexer::{LexError, Token, tokens};
pub use lower::{CompileError, Ended, Symbol, Symbols, lower};
pub use ops::{Allowed, OPS_MAX, Op, cut, decode, encode};
pub use read::{parse, parse_with, parser_code};
pub use syntax::{Binary, Error, Expression, Place, SyntaxError, Unary, Width};
pub use walk::walk;

/// For the golden listings.
pub fn templates() -> alloc::vec::Vec<synth::Template> {
    let mut all = template::all();
    all.extend(blocks::all());
    all
}

/// Most characters of one expression.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Most nested prefixes and parentheses. Reading, compiling and running go down as deep, on a kernel stack of 20 KB.
pub const DEPTH_MAX: usize = 24;
/// Most operators that chain operands without nesting: `+`, `,`, `[`.
pub const OPERATORS_MAX: usize = 40;
/// Most arguments of a call.
pub const ARGUMENTS_MAX: usize = 6;
