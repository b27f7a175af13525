//! Packing: from a program's name to a boot archive that holds everything it needs.

mod container;
mod elf;
mod host;
mod image;
mod ld_cache;
mod libraries;
mod locale;
mod out;
mod outside;
mod program;
mod root;
mod shares;
mod skeleton;
mod tree;
mod upper;
mod users;

pub use container::{Container, cache_folder};
pub use host::over_host;
pub use image::{Image, LOADED_BYTES_MAX};
pub use out::Outgoing;
pub use outside::lay_over;
pub use program::{Packed, pack};
pub use shares::{Manner, Share};
pub use tree::Source;
pub use upper::Upper;
