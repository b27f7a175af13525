//! A regular file as the source of a quaspace's pages.

use alloc::string::String;
use alloc::sync::Arc;

use kernel::file::Node;
use kernel::space::{Backing, BackingError, BackingIdentity, Page};
use machine::PAGE_BYTES;

/// A file and the path it was mapped under.
pub struct NodeBacking {
    node: Arc<Node>,
    path: Arc<[u8]>,
}

impl NodeBacking {
    pub fn new(node: &Arc<Node>, path: &[u8]) -> Arc<NodeBacking> {
        Arc::new(NodeBacking { node: node.clone(), path: path.into() })
    }

    fn content(&self, index: u64) -> Result<&kernel::file::Content, BackingError> {
        let content = self.node.content().ok_or(BackingError::PastEnd)?;
        let past_end = index.saturating_mul(PAGE_BYTES as u64) >= content.size();
        if past_end { Err(BackingError::PastEnd) } else { Ok(content) }
    }
}

impl Backing for NodeBacking {
    fn page(&self, index: u64) -> Result<Option<Page>, BackingError> {
        self.content(index)?.page(index).map_err(|_| BackingError::PastEnd)
    }

    fn page_for_write(&self, index: u64) -> Result<Page, BackingError> {
        self.content(index)?.page_for_write(index).map_err(|_| BackingError::OutOfMemory)
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    fn identity(&self) -> BackingIdentity {
        let (device_major, device_minor) = self.node.volume().device();
        BackingIdentity { device_major, device_minor, inode: self.node.number() }
    }
}
