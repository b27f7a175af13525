//! Several volumes in one tree.

use super::*;

/// A directory as /proc makes them: `self` leads to `42`, and there is a file that counts.
struct Produced;
struct Process;
struct Greeting;
struct Jump(Arc<Node>);

const NEW: NewNode = NewNode { mode: 0o555, user: 0, group: 0, now: NOW };

impl VirtualDirectory for Produced {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        match name {
            b"42" => {
                let data = Data::VirtualDirectory(Arc::new(Process));
                Ok(Node::produce(this, name, 42, NodeKind::Directory, data, NEW))
            }
            b"self" => {
                let data = Data::Symlink(b"42".as_slice().into());
                Ok(Node::produce(this, name, 2, NodeKind::Symlink, data, NEW))
            }
            _ => Err(Errno::ENOENT),
        }
    }

    fn list(&self, _this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
        let entries = [(b"self".as_slice(), NodeKind::Symlink, 2), (b"42", NodeKind::Directory, 42)];
        for (cookie, (name, kind, number)) in (0..).zip(entries).skip(from as usize) {
            let listed = Listed { cookie, next: cookie + 1, number, kind, name };
            if visit(&listed) == Visit::Stop {
                return;
            }
        }
    }

    fn subdirectories(&self) -> u32 {
        1
    }
}

impl VirtualDirectory for Process {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        if name != b"greeting" {
            return Err(Errno::ENOENT);
        }
        let data = Data::VirtualFile(Arc::new(Greeting));
        Ok(Node::produce(this, name, 43, NodeKind::Regular, data, NEW))
    }

    fn list(&self, _this: &Arc<Node>, _from: u64, _visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {}
}

impl VirtualFile for Greeting {
    fn content(&self) -> Result<Vec<u8>, Errno> {
        Ok(b"hello".to_vec())
    }
}

impl VirtualLink for Jump {
    fn target(&self) -> Result<LinkTarget, Errno> {
        Ok(LinkTarget::Node(self.0.clone(), b"somewhere".as_slice().into()))
    }
}

fn mount(world: &World, path: &str, root: &Arc<Node>) -> Result<(), Errno> {
    let (source, kind) = (b"none".as_slice().into(), b"tmpfs".as_slice().into());
    world.names.mount(Mount {
        point: world.get_link(path)?,
        root: root.clone(),
        source,
        kind,
        options: [].as_slice().into(),
    })
}

fn second_volume(world: &World) -> Arc<Node> {
    Node::root(&Volume::in_memory(world.pool).unwrap(), NewNode { mode: 0o755, ..NEW }).unwrap()
}

/// Volumes once had numbers that came back, and paths that were kept for one led into another.
#[test]
fn a_volume_is_never_taken_for_one_that_went() {
    let world = World::new();
    for name in ["/a", "/b", "/c"] {
        world.mkdir(name).unwrap();
    }
    let [first, second] = [second_volume(&world), second_volume(&world)];
    mount(&world, "/a", &first).unwrap();
    mount(&world, "/b", &second).unwrap();
    let kept = world.create("/b/x").unwrap();
    world.names.unmount(&first).unwrap();
    let third = second_volume(&world);
    mount(&world, "/c", &third).unwrap();
    let named = |root| world.names.lookup(world.at(root), b"x", FinalLink::Follow);
    assert!(named(&second).unwrap().is(&kept));
    assert_eq!(named(&third).err(), Some(Errno::ENOENT));
    let identities = [&world.root, &first, &second, &third].map(|root| root.volume().identity());
    assert!((1..4).all(|at| !identities[..at].contains(&identities[at])));
}

#[test]
fn a_mounted_volume_covers_a_directory_until_it_is_taken_away() {
    let world = World::new();
    world.mkdir("/mnt").unwrap();
    let hidden = world.create("/mnt/hidden").unwrap();
    assert!(world.get("/mnt/hidden").is_ok());
    let root = second_volume(&world);
    mount(&world, "/mnt", &root).unwrap();
    assert_eq!(world.get("/mnt/hidden").err(), Some(Errno::ENOENT));
    let file = world.create("/mnt/f").unwrap();
    let sub = world.mkdir("/mnt/sub").unwrap();
    assert_eq!(world.path(&file), "/mnt/f");
    assert!(world.get("/mnt/sub/../..").unwrap().is(&world.root));
    assert_eq!(world.names.working_directory(&sub, &world.root).unwrap(), b"/mnt/sub");
    assert_eq!(world.rename("/mnt/f", "/f"), Err(Errno::EXDEV));
    assert_eq!(world.link("/mnt/f", "/f"), Err(Errno::EXDEV));
    assert_eq!(world.rmdir("/mnt"), Err(Errno::EBUSY));
    assert_eq!(world.rename("/mnt", "/other"), Err(Errno::EBUSY));
    assert_eq!(mount(&world, "/mnt", &root).err(), Some(Errno::EBUSY));
    assert_eq!(world.names.mounts().unwrap().len(), 1);
    world.names.unmount(&root).unwrap();
    assert!(world.get("/mnt/hidden").unwrap().is(&hidden));
    assert_eq!(world.names.unmount(&root), Err(Errno::EINVAL));
}

#[test]
fn produced_nodes_walk_like_others() {
    let world = World::new();
    world.mkdir("/proc").unwrap();
    let volume = Volume::on_demand(world.pool, MAGIC_PROC).unwrap();
    let root = Node::virtual_root(&volume, Arc::new(Produced), NEW).unwrap();
    mount(&world, "/proc", &root).unwrap();
    for _ in 0..2 {
        let file = world.get("/proc/self/greeting").unwrap();
        assert_eq!(world.path(&file), "/proc/42/greeting");
        let Data::VirtualFile(produced) = file.data() else { panic!("not a virtual file") };
        assert_eq!(produced.content().unwrap(), b"hello");
    }
    assert!(world.get("/proc/42/../self/..").unwrap().is(&root));
    assert_eq!(names_in(&root), ["self", "42"]);
    assert_eq!(world.get("/proc/none").err(), Some(Errno::ENOENT));
    assert_eq!(world.create("/proc/new").err(), Some(Errno::ENOENT));
    assert_eq!(world.mkdir("/proc/new").err(), Some(Errno::ENOENT));
    assert_eq!(world.unlink("/proc/self"), Err(Errno::EPERM));
    assert_eq!(world.rmdir("/proc/42"), Err(Errno::EPERM));
    assert_eq!(world.rename("/proc/42", "/proc/43"), Err(Errno::EPERM));
    assert_eq!(root.volume().numbers().magic, MAGIC_PROC);
}

#[test]
fn a_listing_of_produced_entries_goes_on_where_it_stopped() {
    let world = World::new();
    let volume = Volume::on_demand(world.pool, MAGIC_PROC).unwrap();
    let root = Node::virtual_root(&volume, Arc::new(Produced), NEW).unwrap();
    let (mut next, mut names) = (0, Vec::new());
    for _ in 0..4 {
        let mut taken = None;
        let mut take = |listed: &Listed<'_>| {
            if taken.is_some() {
                return Visit::Stop;
            }
            taken = Some((String::from_utf8(listed.name.to_vec()).unwrap(), listed.next));
            Visit::Continue
        };
        root.list(next, &mut take).unwrap();
        let (name, after) = taken.unwrap();
        names.push(name);
        next = after;
    }
    assert_eq!(names, [".", "..", "self", "42"]);
}

#[test]
fn a_link_may_lead_straight_to_an_unlinked_file() {
    let world = World::new();
    let file = world.file("/f", b"still here");
    world.unlink("/f").unwrap();
    let volume = Volume::on_demand(world.pool, MAGIC_PROC).unwrap();
    let root = Node::virtual_root(&volume, Arc::new(Produced), NEW).unwrap();
    let data = Data::VirtualLink(Arc::new(Jump(file.clone())));
    let link = Node::produce(&root, b"3", 9, NodeKind::Symlink, data, NEW);
    struct Holder(Arc<Node>);
    impl VirtualDirectory for Holder {
        fn lookup(&self, _this: &Arc<Node>, _name: &[u8]) -> Result<Arc<Node>, Errno> {
            Ok(self.0.clone())
        }
        fn list(&self, _this: &Arc<Node>, _from: u64, _visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {}
    }
    world.mkdir("/fd").unwrap();
    let holder = Node::virtual_root(&volume, Arc::new(Holder(link)), NEW).unwrap();
    mount(&world, "/fd", &holder).unwrap();
    assert!(world.open("/fd/3", READ).unwrap().node.is(&file));
    assert!(world.open("/fd/3", CREATE).unwrap().node.is(&file));
    assert_eq!(world.get("/fd/3/x").err(), Some(Errno::ENOTDIR));
}

#[test]
fn a_nameless_file_can_be_given_its_first_name_once_lost_it_stays_lost() {
    let world = World::new();
    let node = Node::nameless_in(&world.root, true, NewNode { mode: 0o600, ..NEW }).unwrap();
    assert_eq!(node.attributes().links, 0);
    world.names.link_node(&node, world.view(), b"/named", NOW).unwrap();
    assert_eq!((node.attributes().links, world.path(&node)), (1, "/named".into()));
    world.unlink("/named").unwrap();
    assert_eq!(world.names.link_node(&node, world.view(), b"/named", NOW), Err(Errno::ENOENT));
}
