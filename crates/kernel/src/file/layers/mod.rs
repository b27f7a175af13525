//! Directories that lie over others (a layered root, Linux's overlay): what is below is seen, and never changed.
//!
//! ```text
//!   above   a volume in memory: names, attributes, pages
//!             │ a name that is not known yet            │ a page that is not here yet
//!   below   directories of other volumes, the topmost first: a shared folder, another volume in memory
//! ```
//! Above is the file system in memory as it always is. What it has not got it learns from below when somebody asks: a name with its
//! attributes at the first look, a page at the first use. From then on it is above, costs what things in memory cost, and may be
//! changed like them: there is no step at which a file is copied up, no second node that an open file could be of, and a directory
//! that was only below can be renamed. A name that is removed leaves an entry that stands for nothing.
//!
//! What was seen stays as it was seen; who changes below meanwhile is not noticed for such names. A file's bytes are those that
//! it has when it is opened for the first time, as far as nobody changes them below while it is used.

mod names;
mod pages;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use machine::{KernelCell, Ordered, TryGrow, try_arc, try_box, try_collect};

use super::below::{Below, Identity, Keeper, Named, Seen, Under};
use super::node::Node;

/// Directories, the topmost first, and what is known of the whole tree that they belong to.
#[derive(Clone)]
struct Layers {
    directories: Arc<[Layer]>,
    tree: Arc<Tree>,
}

/// A directory below.
#[derive(Clone)]
pub struct Layer {
    pub directory: Arc<Node>,
    /// It was the upper directory of an overlay: devices 0/0 hide names, and directories may be opaque.
    pub has_marks: bool,
}

/// What all directories of a layered tree share.
#[derive(Default)]
struct Tree {
    /// Files below that have several names: each is one node above, also when the names that have been looked at are gone.
    linked: KernelCell<Ordered<Identity, Arc<Node>>>,
}

/// Where a node is kept for its other names.
struct Origin {
    tree: Weak<Tree>,
    identity: Identity,
}

impl Node {
    /// Lays this directory, which is in memory, over others, the topmost first. Directories that both have are joined, but for those
    /// that `is_alone` names, which are seen alone.
    ///
    /// Errors: `ENOTDIR`, `ENOMEM`, those of what is below.
    pub fn lay_over(self: &Arc<Node>, layers: &[Layer], is_alone: &dyn Fn(&Arc<Node>) -> bool) -> Result<(), Errno> {
        let tree = try_arc(Tree::default())?;
        self.join(Layers { directories: try_collect(layers.iter().cloned())?.into(), tree }, is_alone)
    }

    fn join(self: &Arc<Node>, layers: Layers, is_alone: &dyn Fn(&Arc<Node>) -> bool) -> Result<(), Errno> {
        let known = {
            let table = self.table(Errno::ENOTDIR)?.borrow();
            let nodes = table.at_or_after(0).filter_map(|(_, entry)| Some((entry.name.clone(), entry.node()?.clone())));
            try_collect(nodes)?
        };
        for (name, node) in known.iter().filter(|(_, node)| node.is_directory() && !is_alone(node)) {
            if let Some(below) = names::look(&layers, name)?.filter(|below| below.is_directory()) {
                node.join(below.layers(&layers.tree)?, is_alone)?;
            }
        }
        self.table(Errno::ENOTDIR)?.borrow_mut().below = Some(layers.below()?);
        Ok(())
    }
}

impl Layers {
    fn below(self) -> Result<Box<Below>, Errno> {
        Ok(try_box(Below { under: try_arc(self)?, is_listed: false })?)
    }
}

impl Under for Layers {
    fn bring(&self, directory: &Arc<Node>, name: &[u8], number: Option<u64>) -> Result<Option<Arc<Node>>, Errno> {
        let found = names::look(self, name)?;
        found.map(|found| found.make(directory, self, (name, number))).transpose()
    }

    fn list(&self) -> Result<Vec<Named>, Errno> {
        names::list(self)
    }

    fn look(&self, name: &[u8]) -> Result<Option<Seen>, Errno> {
        names::look(self, name).map(|found| found.map(|found| found.seen()))
    }

    fn identity(&self) -> Identity {
        self.directories.first().map_or(((0, 0), 0), |layer| names::identity(&layer.directory.attributes()))
    }
}

impl Keeper for Origin {
    fn let_go(&self) {
        if let Some(tree) = self.tree.upgrade() {
            let kept = tree.linked.borrow_mut().remove(&self.identity);
            drop(kept);
        }
    }
}

impl Tree {
    fn known(&self, identity: Identity) -> Option<Arc<Node>> {
        self.linked.borrow().get(&identity).cloned()
    }

    fn note(self: &Arc<Tree>, identity: Identity, node: &Arc<Node>) -> Result<(), Errno> {
        let origin = try_arc(Origin { tree: Arc::downgrade(self), identity })?;
        self.linked.borrow_mut().try_insert(identity, node.clone())?;
        *node.keeper.borrow_mut() = Some(origin);
        Ok(())
    }
}

/// A path of names, no longer than it may be.
fn owned(name: &[u8]) -> Result<Box<[u8]>, Errno> {
    let mut bytes = Vec::new();
    bytes.try_extend_from_slice(name)?;
    Ok(bytes.into_boxed_slice())
}
