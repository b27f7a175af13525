//! Intel High Definition Audio 1.0a from the driver's side: a controller that fetches samples by itself, and a codec behind it that
//! is asked by verbs. Sections in comments are that specification's.
//!
//! ```text
//!   Output ─┬─ Controller ── Registers: a window of memory       reset, interrupts (3.3, 4.2)
//!           ├─ Commands ─── Dma: a ring of verbs, a ring of answers (4.4)
//!           ├─ path ─────── widgets from a converter to a jack (7.1)
//!           └─ Stream ───── Dma: samples, and the list that says where they lie (4.5)
//! ```
//! A device is not believed: each wait ends, each answer is checked, and one that is wrong is used no more ([`Lost`]).
//! Must never touch memory but through `machine::Dma`, nor a register but through [`Registers`] that a machine made, and never
//! know what a program is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod commands;
mod controller;
mod output;
mod path;
mod registers;
mod stream;
mod verb;

pub use output::Output;
pub use registers::Registers;

/// What the class register of a function of PCI says, without its interface (PCI Code and ID Assignment 1.11, 1.5).
pub const PCI_CLASS: u16 = 0x0403;

/// Why the device is used no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// It does not do in time what it is told.
    Silent,
    /// It answers for somebody else, or nonsense.
    Answer,
    /// No path leads from a converter to a jack, or none takes samples as we have them.
    NoOutput,
    /// It is where no samples are.
    Position,
    NoMemory,
}
