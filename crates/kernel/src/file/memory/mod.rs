//! The file system in memory (S-99): its names are tables, its files pages, and nobody else changes them.
//!
//! With a [`PageStore`] only the names are here; the pages of files come and go.

mod names;
mod renaming;

use alloc::sync::Arc;

use abi::Errno;

use super::attributes::Time;
use super::change::NewSpecial;
use super::node::Node;
use super::open::Opened;
use super::page_store::PageStore;
use super::rename::Renaming;
use super::store::{NewName, Residence, Store};

#[derive(Default)]
pub(super) struct Memory {
    pages: Option<Arc<dyn PageStore>>,
}

impl Memory {
    pub(super) fn with_pages(pages: Arc<dyn PageStore>) -> Memory {
        Memory { pages: Some(pages) }
    }
}

impl Store for Memory {
    fn residence(&self) -> Residence {
        Residence::Memory
    }

    fn page_store(&self) -> Option<&Arc<dyn PageStore>> {
        self.pages.as_ref()
    }

    fn make_directory(&self, new: NewName<'_>, mode: u32) -> Result<Arc<Node>, Errno> {
        names::make_directory(new, mode)
    }

    fn make_special(&self, new: NewName<'_>, special: NewSpecial) -> Result<Arc<Node>, Errno> {
        names::make_special(new, special)
    }

    fn make_symlink(&self, new: NewName<'_>, target: &[u8]) -> Result<Arc<Node>, Errno> {
        names::make_symlink(new, target)
    }

    fn create_nameless(&self, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        names::create_nameless(new, mode, flags).map(Opened::created)
    }

    fn link(&self, new: NewName<'_>, node: &Arc<Node>) -> Result<(), Errno> {
        names::link(new, node)
    }

    fn remove(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
        names::remove(directory, name, node, now)
    }

    fn rename(&self, renaming: &Renaming<'_>) -> Result<(), Errno> {
        renaming::rename(renaming)
    }
}
