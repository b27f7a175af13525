//! A regular file as the source of a quaspace's pages.

use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;

use abi::Errno;
use kernel::charge::{Held, Kept};
use kernel::file::{Content, File, MappedFile, Node};
use kernel::space::{Backing, BackingError, BackingIdentity, Page, Supply};
use machine::PAGE_BYTES;

/// A file and the path it was mapped under.
pub struct NodeBacking {
    node: Arc<Node>,
    path: Arc<[u8]>,
    /// The pages of a file outside of the machine.
    outside: Option<Arc<dyn MappedFile>>,
    /// `begin_write` of the node was called: programs store into it, whoever has it open.
    counts_as_writer: bool,
}

impl NodeBacking {
    pub fn new(node: &Arc<Node>, path: &[u8]) -> Arc<NodeBacking> {
        Arc::new(NodeBacking { node: node.clone(), path: path.into(), outside: None, counts_as_writer: false })
    }

    /// As `new`, for a file that is open, perhaps outside of the machine. A shared map `is_writable` if its opening is.
    /// Error: `ETXTBSY` for such a map of a program that runs.
    pub fn open(
        node: &Arc<Node>,
        path: &[u8],
        opening: Option<&Arc<dyn File>>,
        is_writable: bool,
    ) -> Result<Arc<NodeBacking>, Errno> {
        if is_writable {
            node.begin_write()?;
            node.content().inspect(|content| content.map_gained());
        }
        let outside = opening.map(|opening| opening.clone().map(is_writable)).transpose()?;
        Ok(Arc::new(NodeBacking { node: node.clone(), path: path.into(), outside, counts_as_writer: is_writable }))
    }

    /// The file.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn content(&self, index: u64) -> Result<&Content, BackingError> {
        let content = self.node.content().ok_or(BackingError::PastEnd)?;
        let past_end = index.saturating_mul(PAGE_BYTES as u64) >= content.size();
        if past_end { Err(BackingError::PastEnd) } else { Ok(content) }
    }
}

/// Why `content` gave no page: a volume at its limit is no want of memory, for which somebody would have to go.
fn backing_error(content: &Content, error: Errno) -> BackingError {
    match error {
        Errno::ENXIO => BackingError::PastEnd,
        _ if content.volume_is_full() => BackingError::Failed,
        _ => BackingError::OutOfMemory,
    }
}

/// What would come back if nobody had the node: of a file without a name its pages. One part of it: the node is held by opens
/// and areas.
pub fn node_held(node: &Arc<Node>) -> Held {
    Held::new(Kept::NamelessFiles, node.nameless_pages() as usize * PAGE_BYTES / Arc::strong_count(node))
}

impl Drop for NodeBacking {
    fn drop(&mut self) {
        if self.counts_as_writer {
            self.node.end_write();
            self.node.content().inspect(|content| content.map_lost());
        }
    }
}

impl Backing for NodeBacking {
    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        match &self.outside {
            Some(map) => map.page(index),
            None => {
                let content = self.content(index)?;
                content.page(index).map_err(|error| backing_error(content, error))
            }
        }
    }

    fn present(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page)) {
        match (&self.outside, self.node.content()) {
            (Some(map), _) => map.visit(range, show),
            (None, Some(content)) => content.visit(range, show),
            (None, None) => {}
        }
    }

    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError> {
        match &self.outside {
            Some(map) => map.page(index),
            None => {
                let content = self.content(index)?;
                content.page_for_write(index).map_err(|error| backing_error(content, error))
            }
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    /// A file with a name stays when nobody shows it, and one outside of the machine takes none of its memory.
    fn held(&self) -> Held {
        if self.outside.is_some() { Held::NOTHING } else { node_held(&self.node) }
    }

    fn sync(&self) {
        if let Some(map) = &self.outside {
            // What cannot be made safe is told by the next fsync.
            let _ = map.sync();
        }
    }

    fn name(&self) -> &[u8] {
        &self.path
    }

    fn identity(&self) -> BackingIdentity {
        let (device_major, device_minor) = self.node.device();
        BackingIdentity { device_major, device_minor, inode: self.node.number() }
    }
}
