//! Packing: from a program's name to a boot archive that holds everything it needs.

mod elf;
mod image;
mod ld_cache;
mod libraries;
mod outside;
mod program;
mod root;
mod skeleton;
mod tree;

pub use image::write_image;
pub use outside::lay_over;
pub use program::{Packed, pack};
