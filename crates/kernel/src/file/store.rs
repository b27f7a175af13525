//! What a file system is to the rest: who changes what its names lead to, and who keeps what is behind them (S-98, S-99).

use alloc::sync::Arc;

use abi::Errno;
use machine::{Extended, Hold, LockedRange, Room};

use super::attributes::{Attributes, Meta, NodeKind, Time};
use super::change::NewSpecial;
use super::credentials::{Access, Credentials};
use super::node::Node;
use super::open::Opened;
use super::opened::File;
use super::ownership::TimeChange;
use super::page_store::PageStore;
use super::rename::Renaming;
use super::volume::Volume;
use super::walk::FinalLink;

/// Who changes what the names of a volume lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residence {
    /// This machine alone: what was found stays so until somebody here changes it.
    Memory,
    /// Others too. Such names are never cached.
    Outside,
    /// Nobody: nodes are produced when a name is looked up. Such names are never cached.
    Virtual,
}

/// Whether a node for a name is expected to be alive: then it is asked what the name stands for before its place is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guess {
    /// As most directories that are walked through.
    Known,
    /// As most files that are opened.
    New,
}

/// What one question about the rest of a path gives.
pub enum Glance {
    Seen(Attributes),
    /// Not from this directory, but perhaps from the next.
    Step,
    /// Only a walk can tell.
    Walk,
}

/// A free name under which something shall be made. Whether `who` may has been asked.
#[derive(Clone, Copy)]
pub struct NewName<'a> {
    pub who: &'a Credentials,
    pub directory: &'a Arc<Node>,
    pub name: &'a [u8],
    pub now: Time,
}

/// What a watched node is found by: device and number.
pub type WatchKey = ((u32, u32), u64);

/// A file system. A volume has one, and calls it for whatever its own nodes do not say.
///
/// What a node holds here ([`super::Data`]) the node does itself: a table of names, pages, a computed text. What the store keeps
/// ([`super::Data::Elsewhere`]) it is asked for, each time. A call may take as long as the other side takes; the caller holds nothing
/// that others need. What is left out says that nobody may change this file system, and that a node's attributes are the node's.
///
/// Before a change the caller has looked whether the volume is read-only and, unless the store does that itself
/// ([`Store::speaks_for`]), whether the mode bits let `who`.
pub trait Store: Send + Sync {
    fn residence(&self) -> Residence;

    /// What /proc/mounts calls it as the root.
    fn kind(&self) -> &'static str {
        "tmpfs"
    }

    /// Where the pages of its files are, if they come and go.
    fn page_store(&self) -> Option<&Arc<dyn PageStore>> {
        None
    }

    /// Nothing can be made in it, and a name that is not there is missing, whoever asks and why (Linux's /proc).
    fn denies_names(&self) -> bool {
        false
    }

    /// Whether it checks itself what `who` may do; for others the mode bits decide first.
    fn speaks_for(&self, _who: &Credentials) -> bool {
        false
    }

    /// Asked for whom it speaks.
    fn permit(&self, _node: &Node, _access: Access) -> Result<(), Errno> {
        Err(Errno::EACCES)
    }

    /// The node called `name`, which is not `.` or `..`, in a directory that it keeps.
    fn child(&self, _directory: &Arc<Node>, _name: &[u8], _guess: Guess) -> Result<Arc<Node>, Errno> {
        Err(Errno::ENOTDIR)
    }

    /// What `names`, with slashes between them, lead to below a directory that it keeps.
    fn glance(&self, _who: &Credentials, _at: &Node, _names: &[u8], _last: FinalLink) -> Result<Glance, Errno> {
        Ok(Glance::Walk)
    }

    /// Extended attributes of what `names` lead to below a directory that it keeps. `None`: only a walk can tell, or the next directory.
    fn extended_below(
        &self,
        _who: &Credentials,
        _at: &Node,
        _names: &[u8],
        _last: FinalLink,
        _what: &mut Extended<'_>,
    ) -> Result<Option<usize>, Errno> {
        Ok(None)
    }

    /// Differs from before if what was settled may be so no more. `None`: nothing ever is.
    fn moves(&self) -> Option<u64> {
        None
    }

    /// The name of a node that it keeps still leads to it for certain, as long as `moves` stays.
    fn is_settled(&self, _node: &Node) -> bool {
        false
    }

    /// A directory that it keeps was believed to be where it was, and has been removed: nothing is settled any more.
    fn is_gone(&self, _directory: &Node) -> bool {
        false
    }

    /// Where a symlink that it keeps leads.
    fn link_target(&self, _node: &Node) -> Result<Arc<[u8]>, Errno> {
        Err(Errno::EINVAL)
    }

    /// Device number of a node that it keeps.
    fn device(&self, node: &Node) -> (u32, u32) {
        node.volume().device()
    }

    /// The changeable attributes of a node that it keeps. One that cannot be asked for has no links.
    fn meta(&self, node: &Node) -> Meta {
        node.own_meta()
    }

    /// What `stat` tells of a node that it keeps.
    fn attributes(&self, node: &Node) -> Attributes {
        node.own_attributes()
    }

    /// Opens the regular file called `name` in a directory that it keeps, in one step with looking it up. `None`: it must be looked up.
    fn open_child(&self, _directory: &Arc<Node>, _name: &[u8], _flags: u32) -> Option<Arc<dyn File>> {
        None
    }

    /// Opens a file or directory that it keeps, with Linux's flags, `O_TRUNC` among them.
    fn open(&self, _node: &Arc<Node>, _flags: u32) -> Result<Arc<dyn File>, Errno> {
        Err(Errno::EINVAL)
    }

    /// Sets the size of a file that it keeps.
    fn resize(&self, _node: &Node, _bytes: u64) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn make_directory(&self, _new: NewName<'_>, _mode: u32) -> Result<Arc<Node>, Errno> {
        Err(Errno::EPERM)
    }

    /// Makes anything but directories and symlinks. Errors: `EINVAL` for those two, `EPERM` for a device without privilege.
    fn make_special(&self, _new: NewName<'_>, special: NewSpecial) -> Result<Arc<Node>, Errno> {
        Err(if special.kind == NodeKind::Regular { Errno::EACCES } else { Errno::EPERM })
    }

    fn make_symlink(&self, _new: NewName<'_>, _target: &[u8]) -> Result<Arc<Node>, Errno> {
        Err(Errno::EPERM)
    }

    /// Makes a regular file, to be opened with Linux's flags. Error: `EEXIST` if others have been faster.
    fn create(&self, new: NewName<'_>, mode: u32, _flags: u32) -> Result<Opened, Errno> {
        self.make_special(new, NewSpecial { kind: NodeKind::Regular, mode }).map(Opened::created)
    }

    /// The same without a name (`O_TMPFILE`): the name of `new` is empty.
    fn create_nameless(&self, _new: NewName<'_>, _mode: u32, _flags: u32) -> Result<Opened, Errno> {
        Err(Errno::ENOTSUP)
    }

    /// Gives a node of the same volume a further name.
    fn link(&self, _new: NewName<'_>, _node: &Arc<Node>) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Removes a name that stands for `node`, which is no mount point. Error: `ENOTEMPTY`.
    fn remove(&self, _directory: &Arc<Node>, _name: &[u8], _node: &Arc<Node>, _now: Time) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    fn rename(&self, _renaming: &Renaming<'_>) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    fn set_mode(&self, who: &Credentials, node: &Node, mode: u32, now: Time) -> Result<(), Errno> {
        node.set_own_mode(who, mode, now)
    }

    fn set_owner(&self, who: &Credentials, node: &Node, owner: [Option<u32>; 2], now: Time) -> Result<(), Errno> {
        node.set_own_owner(who, owner, now);
        Ok(())
    }

    /// Time of access, time of modification.
    fn set_times(&self, node: &Node, times: [TimeChange; 2], now: Time) -> Result<(), Errno> {
        node.set_own_times(times, now);
        Ok(())
    }

    /// One of the calls about extended attributes, whose names end with a NUL.
    fn extended(&self, who: &Credentials, node: &Node, what: Extended<'_>, now: Time) -> Result<usize, Errno> {
        node.own_extended(who, what, now)
    }

    /// Numbers of the file system that a node is in; `None`: those of its volume.
    fn room(&self, _node: &Node) -> Option<Result<Room, Errno>> {
        None
    }

    /// Holds a lock on `first..=last` against others than this machine's processes. Error: `EAGAIN`.
    fn hold(&self, _node: &Node, _hold: Hold, _first: u64, _last: u64) -> Result<(), Errno> {
        Ok(())
    }

    /// What others hold in the way.
    fn held(&self, _node: &Node, _hold: Hold, _first: u64, _last: u64) -> Result<Option<LockedRange>, Errno> {
        Ok(None)
    }

    /// Gives up against others what nobody here holds any more.
    fn settle(&self, _node: &Node) {}

    /// It tells itself of what happens to its nodes, whoever did it.
    fn tells(&self) -> bool {
        false
    }

    /// Has it tell these events of a node.
    fn watch(&self, _node: &Node, _key: WatchKey, _events: u32) -> Result<(), Errno> {
        Ok(())
    }

    /// Nobody asks any more.
    fn unwatch(&self, _key: &WatchKey) {}

    /// Takes what it has to tell, and tells those who watch.
    fn pull_events(&self, _volume: &Volume) {}

    /// A node of its volume goes.
    fn forget(&self, _node: &Node) {}
}
