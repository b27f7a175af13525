//! What the store of a node's volume is asked for.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use machine::{Hold, LockedRange, Room};

use super::super::attributes::{Attributes, Meta, NewNode, NodeKind, Time};
use super::super::opened::File;
use super::super::store::Guess;
use super::super::volume::Volume;
use super::{Data, Node};

impl Node {
    /// A node that the volume's store keeps; `own` is what it knows of it.
    pub fn kept(volume: &Arc<Volume>, number: u64, kind: NodeKind, own: Box<dyn Any + Send + Sync>) -> Arc<Node> {
        // The store has the limits, so the charge cannot fail; `Drop` takes it back.
        let _ = volume.charge_node();
        let new = NewNode { mode: 0, user: 0, group: 0, now: Time::default() };
        Arc::new(Node::assemble(volume, number, kind, Data::Elsewhere(own), new))
    }

    /// Whether the volume's store keeps it.
    #[inline(always)]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.data, Data::Elsewhere(_))
    }

    /// What the store knows of the node, if it is of this type.
    pub fn own<T: Any>(&self) -> Option<&T> {
        if let Data::Elsewhere(own) = &self.data { own.downcast_ref() } else { None }
    }

    /// Opens a regular file or directory that the store keeps, with Linux's flags, `O_TRUNC` among them.
    /// Errors: those of the store; `EINVAL` for another node.
    pub fn open(self: &Arc<Node>, flags: u32) -> Result<Arc<dyn File>, Errno> {
        if self.is_elsewhere() { self.volume.store().open(self, flags) } else { Err(Errno::EINVAL) }
    }

    /// Numbers of the file system that it is in; `None`: those of its volume.
    pub fn room(&self) -> Option<Result<Room, Errno>> {
        self.volume.store().room(self)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn asked_meta(&self) -> Meta {
        self.volume.store().meta(self)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn asked_attributes(&self) -> Attributes {
        self.volume.store().attributes(self)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn asked_child(self: &Arc<Node>, name: &[u8], guess: Guess) -> Result<Arc<Node>, Errno> {
        self.volume.store().child(self, name, guess)
    }

    /// Holds `first..=last` against others too, where there are some. Error: `EAGAIN`.
    pub fn hold_outside(&self, hold: Hold, first: u64, last: u64) -> Result<(), Errno> {
        self.volume.store().hold(self, hold, first, last)
    }

    /// What others hold in the way.
    pub fn held_outside(&self, hold: Hold, first: u64, last: u64) -> Result<Option<LockedRange>, Errno> {
        self.volume.store().held(self, hold, first, last)
    }

    /// Gives up against others what nobody here holds any more.
    pub fn settle_outside(&self) {
        self.volume.store().settle(self);
    }
}
