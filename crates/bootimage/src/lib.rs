//! Layer 0: what the host tool hands to the kernel, and the records the two exchange while it runs.
//!
//! The boot archive is one blob that the virtual machine monitor loads page-aligned into memory (the PVH
//! initrd module). It holds a boot configuration and the files of the first file system. File data starts
//! on page boundaries and the rest of its last page is zero, so the kernel adopts the frames as file pages
//! instead of copying them.
//!
//! ```text
//!   0        header            96 bytes, magic "SYNBOOT\0", version
//!   96       index             one 72-byte record for each entry, sorted by path
//!            strings           paths and symlink targets, no terminators
//!            configuration     see `Config`
//!   k*4096   data              file after file, in index order, each padded with zeros to a page
//! ```
//!
//! All numbers are little-endian. [`Archive`] reads and validates, [`Plan`] writes, [`control`] frames the
//! records on the control port, [`inspect`] is what people ask a running kernel, [`ports`] numbers the channels.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod archive;
mod config;
pub mod control;
pub mod inspect;
mod layout;
mod plan;
pub mod ports;

pub use archive::{Archive, ArchiveError, Entry, Kind};
pub use config::{Config, ConfigFlags, ConfigView, FdKind};
pub use layout::{ENTRIES_MAX, PAGE_BYTES, PATH_BYTES_MAX, VERSION};
pub use plan::{Attributes, Encoded, Node, Piece, Plan, PlanError};
