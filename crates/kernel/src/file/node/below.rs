//! What is particular to nodes that lie over others.

use alloc::sync::Arc;

use abi::Errno;
use machine::Moment;

use super::super::attributes::{NewNode, NodeKind, Time};
use super::super::below::Under;
use super::super::directory::Found;
use super::super::page_store::Fresh;
use super::super::volume::Volume;
use super::{Data, Node};

impl Node {
    /// It is a directory in memory that lies over others.
    pub fn is_layered(&self) -> bool {
        matches!(&self.data, Data::Directory(table) if table.0.borrow().below.is_some())
    }

    fn under(&self) -> Option<Arc<dyn Under>> {
        let Data::Directory(table) = &self.data else { return None };
        table.0.borrow().below.as_ref().map(|below| below.under.clone())
    }

    /// Looks below for a name that this directory does not know. Errors: `ENOENT`, `ENOSPC`, those of what is below.
    #[cold]
    #[inline(never)]
    pub(in crate::file) fn bring(self: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let table = self.table(Errno::ENOTDIR)?;
        let number = table.borrow().listed_number(name);
        let brought = self.under().ok_or(Errno::ENOENT)?.bring(self, name, number)?;
        // Somebody else may have been faster.
        let found = table.borrow().find(name);
        match (found, brought) {
            (Found::Node(node), _) => Ok(node),
            (Found::Missing, _) => Err(Errno::ENOENT),
            (Found::Unknown, None) => {
                table.borrow_mut().note_nothing(name);
                Err(Errno::ENOENT)
            }
            (Found::Unknown, Some(node)) => {
                table.borrow_mut().settle(name, node.clone())?;
                node.set_place(self, name.into());
                Ok(node)
            }
        }
    }

    /// It has lost its last name.
    #[inline]
    pub(in crate::file) fn leave_layers(&self) {
        let keeper = self.keeper.borrow_mut().take();
        if let Some(keeper) = keeper {
            keeper.let_go();
        }
    }

    /// Learns all names that are below. Errors: `ENOSPC`, those of what is below.
    #[inline]
    pub(in crate::file) fn list_below(self: &Arc<Node>) -> Result<(), Errno> {
        let Data::Directory(table) = &self.data else { return Ok(()) };
        let is_known = table.0.borrow().below.as_ref().is_none_or(|below| below.is_listed);
        if is_known { Ok(()) } else { self.list_unknown() }
    }

    #[cold]
    #[inline(never)]
    fn list_unknown(self: &Arc<Node>) -> Result<(), Errno> {
        let Some(under) = self.under() else { return Ok(()) };
        let listed = under.list()?;
        let mut table = self.table(Errno::ENOTDIR)?.borrow_mut();
        for (name, kind) in &listed {
            table.list_below(name, *kind, self.volume.take_number())?;
        }
        if let Some(below) = &mut table.below {
            below.is_listed = true;
        }
        Ok(())
    }

    /// A node for something below, whose room has been charged.
    pub(in crate::file) fn layered(
        volume: &Arc<Volume>,
        number: u64,
        kind: NodeKind,
        data: Data,
        new: NewNode,
    ) -> Arc<Node> {
        Arc::new(Node::assemble(volume, number, kind, data, new))
    }

    /// A regular file is going to be used by somebody who can wait. Errors: its bytes cannot be had.
    #[inline]
    pub fn prepare(&self) -> Result<(), Errno> {
        match &self.data {
            Data::Regular(content) => {
                content.prepare().map(|fresh| fresh.into_iter().for_each(|fresh| self.refresh(fresh)))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn refresh(&self, fresh: Fresh) {
        self.change_meta(|meta| (meta.modified, meta.changed) = (time_of(fresh.modified), time_of(fresh.changed)));
    }
}

fn time_of((seconds, nanos): Moment) -> Time {
    Time { seconds, nanos }
}
