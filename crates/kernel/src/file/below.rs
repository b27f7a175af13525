//! What a directory in memory may lie over: asked for what it has not got.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;

use super::attributes::{NodeKind, Time};
use super::node::Node;

/// A name and what kind of thing it stands for.
pub(super) type Named = (Box<[u8]>, NodeKind);

/// What is below a directory.
pub(super) trait Under: Send + Sync {
    /// A node above for what `name` stands for; it has `number` if it was listed before. `None`: there is nothing. May wait.
    fn bring(&self, directory: &Arc<Node>, name: &[u8], number: Option<u64>) -> Result<Option<Arc<Node>>, Errno>;

    /// All names. May wait.
    fn list(&self) -> Result<Vec<Named>, Errno>;

    /// What `name` stands for below, as it is now. May wait.
    fn look(&self, name: &[u8]) -> Result<Option<Seen>, Errno>;

    /// Which directory the topmost below is.
    fn identity(&self) -> Identity;
}

/// Device and number of something below.
pub(super) type Identity = ((u32, u32), u64);

/// Something below.
pub(super) struct Seen {
    pub(super) identity: Identity,
    pub(super) changed: Time,
}

/// Keeps a node for names below that nobody has looked at.
pub(super) trait Keeper: Send + Sync {
    /// It has lost its last name.
    fn let_go(&self);
}

/// What a directory lies over, and how much of it is known.
pub(super) struct Below {
    pub(super) under: Arc<dyn Under>,
    /// The directory knows all names of it.
    pub(super) is_listed: bool,
}
