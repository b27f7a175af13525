//! Who asks, and whether the mode bits let them.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::{CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER};

use super::attributes::NodeKind;
use super::capabilities::Capabilities;
use super::node::Node;

/// The identity with which a file is reached: Linux's fsuid, fsgid and supplementary groups, and the effective
/// capabilities, which alone make root more than a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    pub user: u32,
    pub group: u32,
    pub groups: Arc<[u32]>,
    pub capabilities: Capabilities,
}

/// What somebody wants to do with a node; fields may be combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    pub read: bool,
    pub write: bool,
    /// Execute a file, search a directory.
    pub execute: bool,
}

impl Access {
    pub const READ: Access = Access { read: true, write: false, execute: false };
    pub const WRITE: Access = Access { read: false, write: true, execute: false };
    pub const SEARCH: Access = Access { read: false, write: false, execute: true };
    /// Needed on a directory to add or remove names.
    pub const CHANGE_NAMES: Access = Access { read: false, write: true, execute: true };

    pub(crate) fn bits(self) -> u32 {
        (self.read as u32) << 2 | (self.write as u32) << 1 | self.execute as u32
    }
}

impl Credentials {
    pub fn root() -> Credentials {
        Credentials { user: 0, group: 0, groups: Arc::from([].as_slice()), capabilities: Capabilities::ALL }
    }

    /// Whether this capability is in force.
    pub fn can(&self, capability: u32) -> bool {
        self.capabilities.has(capability)
    }

    /// Mode bits keep nobody of these from searching a directory.
    pub(super) fn searches_all(&self) -> bool {
        self.can(CAP_DAC_OVERRIDE) || self.can(CAP_DAC_READ_SEARCH)
    }

    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }

    /// Owner of the node, or as good as (Linux `inode_owner_or_capable`).
    pub fn owns(&self, node: &Node) -> bool {
        node.meta().user == self.user || self.can(CAP_FOWNER)
    }

    /// Checks `access` against the mode bits of `node`, as Linux's `generic_permission`: the first
    /// class that fits decides, owner, then group, then others.
    ///
    /// Errors: `EACCES`; `EROFS` for writing to a file, directory or symlink of a read-only volume.
    pub fn permit(&self, node: &Node, access: Access) -> Result<(), Errno> {
        let stored = matches!(node.kind(), NodeKind::Regular | NodeKind::Directory | NodeKind::Symlink);
        if access.write && stored && node.volume().is_read_only() {
            return Err(Errno::EROFS);
        }
        if access.execute && node.kind() == NodeKind::Regular && node.volume().rules().no_execute {
            return Err(Errno::EACCES);
        }
        if node.is_elsewhere() && node.volume().speaks_for(self) {
            return node.volume().store().permit(node, access);
        }
        let meta = node.meta();
        let shift = match () {
            _ if meta.user == self.user => 6,
            _ if self.in_group(meta.group) => 3,
            _ => 0,
        };
        if access.bits() & !(meta.mode >> shift) == 0 {
            return Ok(());
        }
        let may_override = node.is_directory() || !access.execute || meta.mode & 0o111 != 0;
        let only_looks = !access.write && (node.is_directory() || !access.execute);
        let overrides = self.can(CAP_DAC_OVERRIDE) && may_override || self.can(CAP_DAC_READ_SEARCH) && only_looks;
        if overrides { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// In a sticky directory only the owner of an entry or of the directory may take the entry away.
    /// Error: `EPERM`.
    pub(super) fn permit_removal(&self, directory: &Node, victim: &Node) -> Result<(), Errno> {
        let directory = directory.meta();
        let bound = directory.mode & super::attributes::STICKY != 0;
        if bound && victim.meta().user != self.user && directory.user != self.user && !self.can(CAP_FOWNER) {
            return Err(Errno::EPERM);
        }
        Ok(())
    }
}
