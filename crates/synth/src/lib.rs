//! Layer 1: the code synthesizer's pure part. Templates in, bytes out; nothing here executes or
//! publishes code (that is `codestore`).
//!
//! A template is machine code assembled at build time by rustc's assembler (rule R1) with *holes*:
//! 32-bit fields that hold a recognizable pattern until they are filled. [`template!`] declares one
//! together with a struct that has a typed field per hole, so a forgotten or mistyped hole does not
//! compile. Making code is: copy the bytes, fill the holes (`factor`), append fragments
//! (`collapse`), improve the whole ([`optimize`]), hand the [`Draft`] to the code store.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod draft;
mod fact;
mod hole;
mod optimize;
mod pattern;
mod template;

pub use draft::{Bound, Cut, Draft, FaultLanding, FillError, Origin, Place};
pub use fact::Fact;
pub use hole::{Abs32, HoleKind, HoleValue, Imm32, Label, Target, pattern};
pub use optimize::{Flags, Instruction, Kind, Memory, Plan, decode, optimize};
pub use pattern::Pattern;
pub use template::{MadeOf, Paste, Shape, Template};
