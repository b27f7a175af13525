//! What a machine's firmware says about it in ACPI's tables (ACPI specification 6.5), as far as it is said as data: how the
//! machine is switched off, where its I/O APICs are, and which devices stand at fixed windows of memory.
//!
//! AML, the language of the definition blocks, is read but never executed: see [`aml`]. Nothing here trusts a length or an
//! address; what cannot be read is as if it were not there.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod aml;
mod bytes;
pub mod resources;
mod tables;

pub use tables::{IoApic, Memory, PciWindow, PowerOff, Register, Tables, Write};
