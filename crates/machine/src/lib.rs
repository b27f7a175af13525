//! Layer 1: what a machine is, as words and traits; no implementation lives here.
//!
//! Two machines implement these traits: `machine-pc` (bare hardware) and, later, `machine-hosted`
//! (a Linux process). Everything above layer 2 knows only this crate.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cell;
mod memory;
mod time;
mod translation;

pub use cell::KernelCell;
pub use memory::{FrameNumber, PAGE_BYTES, PhysicalMemory, UserMemory};
pub use time::Nanos;
pub use translation::{Mapping, NoFrames, Protection, Translation, UserFault, VirtAddr};
