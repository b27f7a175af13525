//! The calls: each family of calls has a file or a folder with its functions, and its numbers.
//!
//! `table.rs` joins them, and serves a call.

pub(crate) mod aio;
pub mod coming;
pub(crate) mod descriptors;
mod files;
pub(crate) mod futexes;
pub(crate) mod identity;
pub(crate) mod images;
pub(crate) mod inotify;
pub(crate) mod life;
pub(crate) mod limits;
pub(crate) mod memory;
mod mounts;
pub(crate) mod mqueue;
mod open_cache;
pub mod parts;
mod paths;
pub(crate) mod pidfd;
mod pipes;
mod polls;
pub(crate) mod ptrace;
pub(crate) mod restartable;
mod resume;
mod scheduling;
pub(crate) mod shm;
pub(crate) mod signals;
pub(crate) mod sockets;
pub(crate) mod system;
pub(crate) mod sysv;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod times;
pub(crate) mod trace;
mod transfer;
pub(crate) mod watched;
