//! Quaspaces: what a program may see of the one address space (S-2).

mod frames;

pub use frames::{FramePool, Page};
