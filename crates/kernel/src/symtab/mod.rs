//! Symbol tables (S-109): the name service (thesis 7.4.2). Names on one side, what they stand for on the other.
//!
//! There are two kinds. [`SymbolTable`] is plain Rust, for any number of names that come and go: the names of sockets. A few
//! names that one thread asks for again and again are code instead ([`paste_name`]), an executable data structure (S-12): each
//! name is a node that compares the words of what is asked for with its own and either does what the name stands for or
//! jumps on to the next node. That is how a synthesized `open` knows its paths (`call::open`). docs/adr/0032-names-as-code.md has
//! the figures of both.
//!
//! The paths of files have a name service of their own (`file::walk`, `file::path_cache`), whose names are made of parts. The
//! mappers beside it: `file::window` maps positions to pages, `file::foreign::map` the inodes of a foreign volume to nodes.

mod code;
mod table;

pub use code::{SamePath, paste_name};
pub use table::{AddError, NAME_BYTES_MAX, NAMES_MAX, SymbolTable};
