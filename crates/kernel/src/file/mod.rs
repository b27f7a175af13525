//! The memory-resident file system (S-99) and its names (S-100).
//!
//! A [`Node`] is a file, directory or other thing with a name; a [`Volume`] is the file system it
//! belongs to. A [`Namespace`] joins volumes into one tree and is where programs' paths are walked
//! and names are changed. The rules are Linux's, with its error numbers.
//!
//! ```text
//!   path ── PathCache hit ───────────────┐
//!     └──── Walk, one name at a time ────┴─> Arc<Node> ─> Content ─> PageTree ─> Page (frame)
//! ```
//!
//! What a volume is, its [`Store`] says: names and pages in memory (`memory/`), nodes that are computed (`virtual_tree.rs`), places
//! outside of the machine (`foreign/`). The rest asks the store, and never which one it is.
//!
//! Nothing here sleeps, and no borrow is held while program memory is copied.

pub(crate) mod attributes;
mod below;
mod capabilities;
mod change;
mod changes;
mod content;
pub(crate) mod credentials;
mod directory;
mod doomed;
mod extended;
mod foreign;
mod glance;
mod kept;
mod layers;
pub mod limits;
mod locks;
mod memory;
mod name;
mod namespace;
mod node;
mod open;
mod opened;
mod ownership;
mod page_map;
mod page_store;
mod path_cache;
mod positioned;
mod rename;
mod rules;
mod seals;
mod sending;
pub mod share;
mod store;
mod virtual_tree;
mod volume;
mod walk;
mod watch;
mod window;

#[cfg(test)]
mod tests;

pub use attributes::{
    Attributes, CounterClock, MODE_BITS, Meta, NewNode, NodeKind, SET_GROUP, SET_USER, STICKY, Time, VolumeNumbers,
};
pub use capabilities::Capabilities;
pub use change::NewSpecial;
pub use content::{Content, ContentWords};
pub use credentials::{Access, Credentials};
pub use foreign::{Ferry, ForeignTree};
pub use glance::Seen;
pub use layers::Layer;
pub use locks::{LockKind, LockRefused, NodeLocks, RecordLock};
pub use namespace::{Mount, Namespace};
pub use node::{Data, DirectoryData, Node};
pub use open::{Create, OpenHow, Opened};
pub use opened::{Carrier, File, MappedFile};
pub use ownership::TimeChange;
pub use page_store::{Fresh, PageStore};
pub use positioned::{Positioned, PositionedCallouts};
pub use rename::{Named, RenameMode, Renaming};
pub use rules::{AccessTimes, Rules};
pub use seals::Seals;
pub use store::{Glance, Guess, NewName, Residence, Store, WatchKey};
pub use virtual_tree::{LinkTarget, Listed, VirtualDirectory, VirtualFile, VirtualLink, Visit};
pub use volume::{MAGIC_DEVPTS, MAGIC_PROC, MAGIC_SYSFS, MAGIC_TMPFS, Volume, VolumeIdentity};
pub use walk::{FinalLink, Limits, View};
pub use watch::{ENDED, Happened, OVERFLOWED, UNMOUNTED, Watch, Watcher};
pub use window::{Window, WindowCallouts, WindowCode};
