//! The tree of names that programs see: volumes, joined at mount points.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{KernelCell, KernelValue, NoMemory, TryGrow, try_filled, try_to_vec};

use super::changes::Upper;
use super::node::Node;
use super::path_cache::PathCache;
use super::rules::Rules;
use super::sending::Outgoing;
use super::volume::Volume;

/// One volume's root laid over a directory.
#[derive(Clone)]
pub struct Mount {
    /// The directory that is covered; it belongs to a volume in memory.
    pub point: Arc<Node>,
    pub root: Arc<Node>,
    /// What `/proc/mounts` calls the source and the type.
    pub source: Arc<[u8]>,
    pub kind: Arc<[u8]>,
    /// What `/proc/mounts` says of the volume beside its rules, each word with a comma before it.
    pub options: Arc<[u8]>,
}

/// A tree of names. Each volume is in it at most once, so a node says where it is.
pub struct Namespace {
    root: Arc<Node>,
    /// The volume in memory, which may be laid over a root that is outside of the machine.
    memory: Arc<Volume>,
    /// The volume of what has no name at all. It is mounted nowhere, so nobody can make it read-only.
    nameless: Arc<Volume>,
    mounts: KernelCell<Vec<Mount>>,
    /// Changes with everything that could make a path lead elsewhere: see [`PathCache`].
    generation: KernelValue<u64>,
    /// Some of it is kept by stores that are asked for it.
    asks: KernelValue<bool>,
    pub(super) cache: KernelCell<PathCache>,
    /// What is brought out when the machine ends.
    pub(super) outgoing: KernelCell<Vec<Outgoing>>,
    /// Where what programs change is brought then.
    pub(super) upper: KernelCell<Option<Upper>>,
    /// Paths that led to directories which stores keep, while these are settled.
    pub(super) folders: KernelCell<PathCache>,
}

/// Where the way up from a node ends.
#[derive(PartialEq, Eq)]
enum Upwards {
    Root,
    /// Outside of the root that was asked for.
    Unreachable,
}

impl Namespace {
    /// A tree with only `root`, the root directory of a volume in memory. Error: `EMFILE`.
    pub fn new(root: Arc<Node>) -> Result<Namespace, Errno> {
        let memory = root.volume().clone();
        Namespace::over(root, memory)
    }

    /// A tree with only `root`, which may be outside of the machine; `memory` is the volume of what is laid over it.
    /// Error: `EMFILE`.
    pub fn over(root: Arc<Node>, memory: Arc<Volume>) -> Result<Namespace, Errno> {
        Ok(Namespace {
            nameless: Volume::in_memory(memory.pool())?,
            memory,
            mounts: KernelCell::new(Vec::new()),
            generation: KernelValue::new(0),
            asks: KernelValue::new(root.is_elsewhere()),
            cache: KernelCell::new(PathCache::new()),
            outgoing: KernelCell::new(Vec::new()),
            upper: KernelCell::new(None),
            folders: KernelCell::new(PathCache::new()),
            root,
        })
    }

    /// The volume in memory.
    pub fn memory(&self) -> &Arc<Volume> {
        &self.memory
    }

    /// The volume of memory files, namespaces and streams.
    pub fn nameless(&self) -> &Arc<Volume> {
        &self.nameless
    }

    /// Pages of data that files in memory hold.
    pub fn pages_in_use(&self) -> u64 {
        let mounts = self.mounts.borrow();
        let mounted = mounts.iter().map(|mount| mount.root.volume().pages_in_use());
        self.memory.pages_in_use() + self.nameless.pages_in_use() + mounted.sum::<u64>()
    }

    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// Address of the generation word, for code that compares it.
    pub fn generation_word(&self) -> u64 {
        self.generation.as_ptr() as u64
    }

    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Forgets all remembered paths: called by every change that could make one wrong.
    pub(super) fn names_changed(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    /// Empties the cache of paths, which would hide a small leak: for those who look for one.
    pub fn forget_paths(&self) {
        *self.cache.borrow_mut() = PathCache::new();
        *self.folders.borrow_mut() = PathCache::new();
    }

    /// Lays a volume over a directory. Errors: `ENOTDIR`, `EBUSY` if something is mounted there, the
    /// directory is produced or removed, or the volume is in the tree already.
    pub fn mount(&self, mount: Mount) -> Result<(), Errno> {
        if !mount.point.is_directory() || !mount.root.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        mount.point.table(Errno::EBUSY)?;
        let placed = mount.root.is(&self.root) || self.mount_of_root(&mount.root).is_some();
        if placed || mount.point.covered.get() || mount.point.is_removed() {
            return Err(Errno::EBUSY);
        }
        let mut mounts = self.mounts.borrow_mut();
        mounts.room_for(1).map_err(|_| Errno::ENOMEM)?;
        self.asks.set(self.asks.get() || mount.root.is_elsewhere());
        mount.point.covered.set(true);
        mounts.put(mount);
        self.names_changed();
        Ok(())
    }

    /// Takes a volume away; `root` is its root directory. Files of it that are open stay usable.
    /// Errors: `EINVAL` if it is not mounted, `EBUSY` if another volume is mounted in it.
    pub fn unmount(&self, root: &Arc<Node>) -> Result<(), Errno> {
        let mut mounts = self.mounts.borrow_mut();
        let position = mounts.iter().position(|mount| mount.root.is(root)).ok_or(Errno::EINVAL)?;
        if mounts.iter().any(|mount| Arc::ptr_eq(mount.point.volume(), root.volume())) {
            return Err(Errno::EBUSY);
        }
        let mount = mounts.remove(position);
        drop(mounts);
        mount.point.covered.set(false);
        self.names_changed();
        mount.root.volume().unmounted();
        Ok(())
    }

    /// Gives the volume with this root directory other rules, and its line in `/proc/mounts` other options.
    /// Errors: `EINVAL` if it is not mounted, `EBUSY` as for [`Volume`]'s rules.
    pub fn remount(&self, root: &Arc<Node>, rules: Rules, options: Option<Arc<[u8]>>) -> Result<(), Errno> {
        let mut mounts = self.mounts.borrow_mut();
        let mount = mounts.iter_mut().find(|mount| mount.root.is(root));
        if mount.is_none() && !root.is(&self.root) {
            return Err(Errno::EINVAL);
        }
        root.volume().change_rules(rules)?;
        if let (Some(mount), Some(options)) = (mount, options) {
            mount.options = options;
        }
        // A device that was opened may not be opened any more.
        self.names_changed();
        Ok(())
    }

    /// What `/proc/mounts` says of the mount with this root beside its rules.
    pub fn options_of(&self, root: &Node) -> Arc<[u8]> {
        self.mount_of_root(root).map_or_else(|| [].as_slice().into(), |mount| mount.options)
    }

    /// Whether a volume's root directory is seen here.
    pub fn is_mounted(&self, root: &Node) -> bool {
        root.is(&self.root) || self.mount_of_root(root).is_some()
    }

    /// All mounts, oldest first, without the root.
    pub fn mounts(&self) -> Result<Vec<Mount>, NoMemory> {
        try_to_vec(&self.mounts.borrow())
    }

    fn mount_of_root(&self, root: &Node) -> Option<Mount> {
        self.mounts.borrow().iter().find(|mount| mount.root.is(root)).cloned()
    }

    /// Whether a store may be asked for many names at once: there is one, and nothing hides what it has.
    #[inline(always)]
    pub fn may_glance(&self) -> bool {
        self.asks.get() && !self.mounts.borrow().iter().any(|mount| mount.point.is_elsewhere())
    }

    /// The generation of `folders`: it changes with this machine's names and with what moves outside. `None`: nobody keeps the root for
    /// it.
    #[inline(always)]
    pub(super) fn folders_generation(&self) -> Option<u64> {
        if !self.asks.get() {
            return None;
        }
        let moves = self.root.volume().store().moves()?;
        Some(self.generation() << 32 ^ moves)
    }

    /// What a program sees at `node`: the root of what is mounted there, or `node`.
    pub(super) fn uncover(&self, mut node: Arc<Node>) -> Arc<Node> {
        while node.covered.get() {
            let mounts = self.mounts.borrow();
            let Some(mount) = mounts.iter().find(|mount| mount.point.is(&node)) else { break };
            let root = mount.root.clone();
            drop(mounts);
            node = root;
        }
        node
    }

    /// The directory above `node` for a program whose root directory is `root`.
    pub(super) fn above(&self, node: &Arc<Node>, root: &Node) -> Arc<Node> {
        if node.is(root) {
            return node.clone();
        }
        let mut node = node.clone();
        loop {
            if let Some(parent) = node.parent() {
                return self.uncover(parent);
            }
            match self.mount_of_root(&node) {
                Some(mount) => node = mount.point,
                None => return node,
            }
        }
    }

    /// The absolute path of `node` for a program whose root directory is `root`.
    ///
    /// For a directory it is exact. A file is shown under the name it was last given; if that name is
    /// gone, or now names another file, the path ends in ` (deleted)`, as on Linux.
    /// A node outside of `root` is shown from the top, with `(unreachable)` before it.
    ///
    /// # Errors
    /// No memory for it: directories may lie deep.
    pub fn path_of(&self, node: &Arc<Node>, root: &Node) -> Result<Vec<u8>, NoMemory> {
        let mut bytes = 0;
        let end = self.names_upwards(node, root, |name| bytes += 1 + name.len());
        let head: &[u8] = if end == Upwards::Unreachable { b"(unreachable)" } else { b"" };
        let tail: &[u8] = if is_named(node) { b"" } else { b" (deleted)" };
        let length = head.len() + bytes.max(1) + tail.len();
        // One more byte, for who ends it with a zero.
        let mut path = try_filled(b'/', length + 1)?;
        path.truncate(length);
        let mut at = path.len() - tail.len();
        path[at..].copy_from_slice(tail);
        path[..head.len()].copy_from_slice(head);
        self.names_upwards(node, root, |name| {
            path[at - name.len()..at].copy_from_slice(name);
            at -= 1 + name.len();
        });
        Ok(path)
    }

    /// Shows the names on the way from `node` up to `root`, and where the way ends.
    fn names_upwards(&self, node: &Arc<Node>, root: &Node, mut show: impl FnMut(&[u8])) -> Upwards {
        let mut at = node.clone();
        while !at.is(root) {
            if let Some(parent) = at.parent() {
                show(&at.name());
                at = parent;
            } else if let Some(mount) = self.mount_of_root(&at) {
                at = mount.point;
            } else if Arc::ptr_eq(at.volume(), &self.nameless) {
                show(&at.name());
                break;
            } else {
                return Upwards::Unreachable;
            }
        }
        Upwards::Root
    }

    /// The path of a working directory (`getcwd`). Errors: `ENOENT` if it was removed, `ENOMEM`.
    pub fn working_directory(&self, directory: &Arc<Node>, root: &Node) -> Result<Vec<u8>, Errno> {
        if directory.is_removed() { Err(Errno::ENOENT) } else { Ok(self.path_of(directory, root)?) }
    }
}

/// Whether `node` is still where it says it is.
fn is_named(node: &Arc<Node>) -> bool {
    if node.is_removed() {
        return false;
    }
    match (node.is_directory(), node.parent()) {
        (true, _) => true,
        (false, None) => node.name().is_empty() && node.meta().links > 0,
        (false, Some(parent)) => parent.child(&node.name()).is_ok_and(|found| found.is(node)),
    }
}
