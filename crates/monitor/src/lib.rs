//! The kernel monitor's language: C expressions, compiled by pasting templates (S-120; thesis 7.4.2).
//!
//! An expression becomes one routine: each operator is a template, and the templates are concatenated in the order in which a
//! stack machine would run them. The routine takes nothing and returns a value and how it ended ([`Ended`]): a load from
//! memory that is not there, or a division by zero, ends it and nothing else.
//!
//! Values are 64-bit words, signed as in C's `long`; arithmetic wraps. `(u8)x` and its kind cut a value, `*(u32 *)x` loads
//! one. Names are what [`Symbols`] says. What is not there: loops, types of one's own, text, floating point.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod compile;
mod lexer;
mod syntax;
mod template;

pub use compile::{CompileError, Ended, Symbol, Symbols, World, compile, cut, interpret};
pub use lexer::{LexError, Token};
pub use syntax::{Binary, Error, Expression, Place, SyntaxError, Unary, Width, parse};

/// For the golden listings.
pub fn templates() -> alloc::vec::Vec<synth::Template> {
    template::all()
}

/// Most characters of one expression.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Most nested operators and parentheses. Each takes a word of the stack when the routine runs.
pub const DEPTH_MAX: usize = 64;
/// Most arguments of a call.
pub const ARGUMENTS_MAX: usize = 6;
