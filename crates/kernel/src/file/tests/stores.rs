//! A file system of its own: its store keeps one directory with one file, and nothing else of the kernel knows it.

use std::boxed::Box;
use std::sync::Arc;

use abi::Errno;
use machine::Extended;

use super::small_volume;
use crate::file::*;
use crate::stream::{Io, UserRange};

struct OneFile;
struct Bytes(u64);

impl Store for OneFile {
    fn residence(&self) -> Residence {
        Residence::Outside
    }
    fn child(&self, directory: &Arc<Node>, name: &[u8], _: Guess) -> Result<Arc<Node>, Errno> {
        if name != b"one" {
            return Err(Errno::ENOENT);
        }
        let node = Node::kept(directory.volume(), 2, NodeKind::Regular, Box::new(Bytes(3)));
        node.show_in(directory, name);
        Ok(node)
    }
    fn meta(&self, _: &Node) -> Meta {
        let now = Time::default();
        Meta { mode: 0o755, user: 0, group: 0, links: 1, accessed: now, modified: now, changed: now, born: now }
    }
    fn attributes(&self, node: &Node) -> Attributes {
        let bytes = node.own::<Bytes>().map_or(0, |bytes| bytes.0);
        Attributes { number: node.number(), kind: node.kind(), size_bytes: bytes, ..node.own_attributes() }
    }
    fn open(&self, node: &Arc<Node>, _: u32) -> Result<Arc<dyn File>, Errno> {
        Ok(Arc::new(One(node.clone())))
    }
}

struct One(Arc<Node>);

impl File for One {
    fn node(&self) -> &Arc<Node> {
        &self.0
    }
    fn size(&self) -> u64 {
        3
    }
    fn read(&self, io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno> {
        let bytes = b"one".get(position as usize..).unwrap_or(&[]);
        let part = bytes.len().min(to.bytes);
        io.copy_out(to.address, &bytes[..part]).map(|()| part)
    }
    fn write(&self, _: &Io<'_>, _: u64, _: UserRange) -> Result<usize, Errno> {
        Err(Errno::EROFS)
    }
    fn read_at(&self, _: u64, into: &mut [u8]) -> Result<usize, Errno> {
        into[..3].copy_from_slice(b"one");
        Ok(3)
    }
    fn write_at(&self, _: u64, _: &[u8]) -> Result<usize, Errno> {
        Err(Errno::EROFS)
    }
}

#[test]
fn another_file_system_is_a_store_and_nothing_else() {
    let (memory, _) = small_volume(50);
    let root = Node::root(&memory, NewNode { mode: 0o755, user: 0, group: 0, now: Time::default() }).unwrap();
    let names = Namespace::new(root).unwrap();
    let who = Credentials::root();
    let view = View::new(names.root(), names.root(), &who);
    let point = names.make_directory(view, b"/t", 0o755, Time::default()).unwrap();
    let volume = Volume::of(memory.pool(), Arc::new(OneFile)).unwrap();
    let top = Node::kept(&volume, 1, NodeKind::Directory, Box::new(Bytes(0)));
    let empty: Arc<[u8]> = Arc::from([].as_slice());
    names.mount(Mount { point, root: top, source: empty.clone(), kind: empty.clone(), options: empty }).unwrap();
    let found = names.lookup(view, b"/t/one", FinalLink::Follow).unwrap();
    assert_eq!(found.attributes().size_bytes, 3);
    let mut into = [0; 8];
    assert_eq!(found.open(0).unwrap().read_at(0, &mut into), Ok(3));
    assert_eq!(names.path_of(&found, names.root()), Ok(b"/t/one".to_vec()));
    // It is asked each time: nothing of it is remembered.
    assert!(!names.is_settled(view, b"/t/one"));
    // What it does not say it cannot do.
    assert_eq!(names.unlink(view, b"/t/one", Time::default()).err(), Some(Errno::EPERM));
    assert_eq!(names.make_directory(view, b"/t/x", 0o755, Time::default()).err(), Some(Errno::EPERM));
    let special = NewSpecial { kind: NodeKind::Regular, mode: 0o644 };
    assert_eq!(names.make_special(view, b"/t/x", special, Time::default()).err(), Some(Errno::EACCES));
    assert_eq!(found.extended(&who, Extended::List { into: &mut [] }, Time::default()), Ok(0));
    let node = names.lookup(view, b"/t", FinalLink::Follow).unwrap();
    assert_eq!(names.unmount(&node), Ok(()));
    assert!(names.lookup(view, b"/t/one", FinalLink::Follow).is_err());
}
