//! Behaviour of the file system.

mod attributes;
mod data;
mod directories;
mod locking;
mod permissions;
mod random;
mod renaming;
mod stores;
mod tree;
mod walking;

use std::sync::Arc;

use abi::Errno;
use machine::{FrameNumber, KernelCell, PAGE_BYTES, PhysicalMemory, UserFault, UserMemory, VirtAddr};

use super::*;
use crate::practice;
use crate::space::FramePool;

/// Frames in a vector.
struct VecMemory(KernelCell<Vec<u8>>);

impl PhysicalMemory for VecMemory {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        let start = in_frame(frame, offset, into.len());
        into.copy_from_slice(&self.0.borrow()[start..start + into.len()]);
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        let start = in_frame(frame, offset, from.len());
        self.0.borrow_mut()[start..start + from.len()].copy_from_slice(from);
    }

    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        let start = in_frame(frame, offset, bytes);
        self.0.borrow_mut()[start..start + bytes].fill(value);
    }

    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        let start = in_frame(from, 0, PAGE_BYTES);
        self.0.borrow_mut().copy_within(start..start + PAGE_BYTES, in_frame(to, 0, PAGE_BYTES));
    }

    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(frame, offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        self.write(frame, offset, &value.to_le_bytes());
    }
}

fn in_frame(frame: FrameNumber, offset: usize, bytes: usize) -> usize {
    assert!(offset + bytes <= PAGE_BYTES, "range leaves the frame");
    frame.number() as usize * PAGE_BYTES + offset
}

fn pool_of(frames: u32) -> &'static FramePool {
    // The pool keeps one frame for its page of zeros.
    let all = frames + 1;
    let memory = VecMemory(KernelCell::new(vec![0xEE; all as usize * PAGE_BYTES]));
    let pool = FramePool::new(Box::leak(Box::new(memory)), vec![practice::frames(0..all)], 0);
    Box::leak(Box::new(pool))
}

/// A program's memory: readable and writable below `limit`, a fault above it. `on_touch` runs before
/// each copy, as a page fault would.
struct Program<'a> {
    pool: &'static FramePool,
    bytes: KernelCell<Vec<u8>>,
    limit: usize,
    on_touch: Option<&'a dyn Fn()>,
}

impl Program<'_> {
    fn new(pool: &'static FramePool, bytes: Vec<u8>) -> Program<'static> {
        let limit = bytes.len();
        Program { pool, bytes: KernelCell::new(bytes), limit, on_touch: None }
    }

    fn reachable(&self, at: VirtAddr, bytes: usize) -> usize {
        if let Some(touch) = self.on_touch {
            touch();
        }
        bytes.min(self.limit.saturating_sub(at.0 as usize))
    }
}

impl UserMemory for Program<'_> {
    fn copy_in(&self, _from: VirtAddr, _into: &mut [u8]) -> Result<(), UserFault> {
        unreachable!("file data moves by frames")
    }

    fn copy_out(&self, _to: VirtAddr, _from: &[u8]) -> Result<(), UserFault> {
        unreachable!("file data moves by frames")
    }

    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let bytes = self.reachable(from, bytes);
        let start = from.0 as usize;
        if bytes > 0 {
            self.pool.memory().write(frame, offset, &self.bytes.borrow()[start..start + bytes]);
        }
        bytes
    }

    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let bytes = self.reachable(to, bytes);
        let start = to.0 as usize;
        if bytes > 0 {
            self.pool.memory().read(frame, offset, &mut self.bytes.borrow_mut()[start..start + bytes]);
        }
        bytes
    }

    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize {
        let bytes = self.reachable(to, bytes);
        let start = to.0 as usize;
        if bytes > 0 {
            self.bytes.borrow_mut()[start..start + bytes].fill(0);
        }
        bytes
    }
}

const NOW: Time = Time { seconds: 1_000, nanos: 1 };
const LATER: Time = Time { seconds: 2_000, nanos: 2 };

/// A tree with a root volume, seen by one process whose working directory is the root.
struct World {
    pool: &'static FramePool,
    names: Namespace,
    root: Arc<Node>,
    who: Credentials,
}

impl World {
    fn new() -> World {
        World::with_frames(256)
    }

    fn with_frames(frames: u32) -> World {
        World::in_pool(pool_of(frames))
    }

    fn in_pool(pool: &'static FramePool) -> World {
        let volume = Volume::in_memory(pool).unwrap();
        let root = Node::root(&volume, NewNode { mode: 0o755, user: 0, group: 0, now: NOW }).unwrap();
        World { pool, names: Namespace::new(root.clone()).unwrap(), root, who: Credentials::root() }
    }

    /// A tree that lies over another, which nobody changes from now on.
    fn over(below: &World) -> World {
        let World { pool, names, root, who } = World::in_pool(below.pool);
        let layer = Layer { directory: below.root.clone(), has_marks: false };
        root.lay_over(&[layer], &|_| false).unwrap();
        World { pool, names, root, who }
    }

    fn view(&self) -> View<'_> {
        View::new(&self.root, &self.root, &self.who)
    }

    fn view_as<'a>(&'a self, who: &'a Credentials) -> View<'a> {
        View { credentials: who, ..self.view() }
    }

    fn at<'a>(&'a self, directory: &'a Arc<Node>) -> View<'a> {
        View { directory, ..self.view() }
    }

    fn get(&self, path: &str) -> Result<Arc<Node>, Errno> {
        self.names.lookup(self.view(), path.as_bytes(), FinalLink::Follow)
    }

    fn get_link(&self, path: &str) -> Result<Arc<Node>, Errno> {
        self.names.lookup(self.view(), path.as_bytes(), FinalLink::Keep)
    }

    fn mkdir(&self, path: &str) -> Result<Arc<Node>, Errno> {
        self.names.make_directory(self.view(), path.as_bytes(), 0o755, NOW)
    }

    /// Opens and, if it is to be, cuts.
    fn open(&self, path: &str, how: OpenHow) -> Result<Opened, Errno> {
        self.cut(self.names.open(self.view(), path.as_bytes(), how, NOW)?)
    }

    fn cut(&self, opened: Opened) -> Result<Opened, Errno> {
        if opened.is_to_be_cut {
            opened.node.truncate(0, self.view().credentials, NOW)?;
        }
        Ok(opened)
    }

    fn create(&self, path: &str) -> Result<Arc<Node>, Errno> {
        Ok(self.open(path, CREATE)?.node)
    }

    fn file(&self, path: &str, data: &[u8]) -> Arc<Node> {
        let node = self.create(path).unwrap();
        assert_eq!(node.content().unwrap().write_at(0, data), Ok(data.len()));
        node
    }

    fn symlink(&self, target: &str, path: &str) -> Result<Arc<Node>, Errno> {
        self.names.make_symlink(self.view(), target.as_bytes(), path.as_bytes(), NOW)
    }

    fn link(&self, old: &str, new: &str) -> Result<(), Errno> {
        let ends = ((self.view(), old.as_bytes()), (self.view(), new.as_bytes()));
        self.names.link(ends.0, ends.1, FinalLink::Keep, LATER)
    }

    fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.names.unlink(self.view(), path.as_bytes(), LATER).map(drop)
    }

    fn rmdir(&self, path: &str) -> Result<(), Errno> {
        self.names.remove_directory(self.view(), path.as_bytes(), LATER)
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        self.rename_with(old, new, RenameMode::Replace)
    }

    fn rename_with(&self, old: &str, new: &str, mode: RenameMode) -> Result<(), Errno> {
        self.names.rename((self.view(), old.as_bytes()), (self.view(), new.as_bytes()), mode, LATER)
    }

    fn path(&self, node: &Arc<Node>) -> String {
        String::from_utf8(self.names.path_of(node, &self.root).unwrap()).unwrap()
    }
}

/// Open for reading and writing, creating.
const CREATE: OpenHow = OpenHow {
    flags: 0,
    access: Access { read: true, write: true, execute: false },
    create: Some(Create { mode: 0o644, exclusive: false }),
    truncate: false,
    directory: false,
    no_follow: false,
    path_only: false,
    no_access_time: false,
};

const READ: OpenHow = OpenHow { access: Access::READ, create: None, ..CREATE };

fn user(number: u32) -> Credentials {
    let capabilities = Capabilities::of_user(number);
    Credentials { user: number, group: number, groups: Arc::from([].as_slice()), capabilities }
}

fn read_all(node: &Node) -> Vec<u8> {
    let content = node.content().unwrap();
    let mut bytes = vec![0xAA; content.size() as usize];
    assert_eq!(content.read_at(0, &mut bytes), bytes.len());
    bytes
}

fn names_in(node: &Arc<Node>) -> Vec<String> {
    let mut names = Vec::new();
    let mut take = |listed: &Listed<'_>| {
        names.push(String::from_utf8(listed.name.to_vec()).unwrap());
        Visit::Continue
    };
    node.list(0, &mut take).unwrap();
    names.split_off(2)
}

/// A volume with room for so many nodes, and a file of it without a name.
pub(super) fn small_volume(nodes: u64) -> (Arc<Volume>, Arc<Node>) {
    let volume = Volume::in_memory(pool_of(16)).unwrap();
    volume.limit(None, Some(nodes)).unwrap();
    let new = NewNode { mode: 0o644, user: 0, group: 0, now: NOW };
    let node = Node::nameless(&volume, b"", new).unwrap();
    (volume, node)
}
