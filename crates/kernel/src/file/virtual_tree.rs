//! Trees whose nodes are produced when somebody looks: /proc, /sys, /dev/pts and the like.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::Held;

use super::attributes::NodeKind;
use super::node::Node;
use super::store::{Residence, Store};
use super::volume::MAGIC_PROC;

/// The store of such a tree: nobody may change it.
pub(super) struct Produced {
    /// Linux's `f_type`.
    pub(super) magic: u64,
}

impl Store for Produced {
    fn residence(&self) -> Residence {
        Residence::Virtual
    }

    fn denies_names(&self) -> bool {
        self.magic == MAGIC_PROC
    }
}

/// A directory whose entries are computed.
///
/// Nodes that it returns are made with [`Node::produce`] and carry `this` as their parent, so that
/// `..` and the path of a working directory work. Nobody can create, remove or rename entries.
pub trait VirtualDirectory: Send + Sync {
    /// The node called `name` (never `.` or `..`). Error: `ENOENT`.
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno>;

    /// Shows the entries from cookie `from` on (0 is the first; `.` and `..` are not among them) in
    /// rising order of cookie, until `visit` returns [`Visit::Stop`]. A cookie names the same entry
    /// as long as that entry exists.
    fn list(&self, this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit);

    /// Subdirectories, for the link count.
    fn subdirectories(&self) -> u32 {
        0
    }
}

/// A file whose content is computed.
pub trait VirtualFile: Send + Sync {
    /// The whole content as of now. An open file takes it once, at its first read at position 0.
    fn content(&self) -> Result<Vec<u8>, Errno>;

    /// Up to `bytes` bytes from `position` on, for a file without content of its own: another process's memory. `None`:
    /// the file is what `content` says.
    fn window(&self, position: u64, bytes: usize) -> Option<Result<Vec<u8>, Errno>> {
        let _ = (position, bytes);
        None
    }

    /// Nobody may open it for writing, whatever their rights.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Takes what a program wrote; returns how many bytes were used. The default refuses (`EINVAL`).
    fn write(&self, held: Held<'_>, position: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let _ = (held, position, bytes);
        Err(Errno::EINVAL)
    }
}

/// A symlink whose target is computed.
pub trait VirtualLink: Send + Sync {
    /// Where the link leads. Error: `ENOENT` if the thing it stands for has gone.
    fn target(&self) -> Result<LinkTarget, Errno>;
}

/// Where a symlink leads.
#[derive(Clone)]
pub enum LinkTarget {
    /// To a path.
    Path(Arc<[u8]>),
    /// Straight to a node, whatever its path says (`/proc/self/fd/3` of an unlinked file). The bytes
    /// are what `readlink` shows.
    Node(Arc<Node>, Arc<[u8]>),
}

/// One entry of a directory listing.
pub struct Listed<'a> {
    /// Cookie of this entry.
    pub cookie: u64,
    /// Where a listing that has taken this entry goes on (Linux `d_off`).
    pub next: u64,
    pub number: u64,
    pub kind: NodeKind,
    pub name: &'a [u8],
}

/// Whether a listing goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit {
    /// The entry was taken; show the next.
    Continue,
    /// The entry was not taken; show no more.
    Stop,
}
