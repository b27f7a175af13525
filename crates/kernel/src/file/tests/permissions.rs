//! Who may do what.

use super::*;

fn node_with(world: &World, path: &str, mode: u32, owner: u32, group: u32) -> Arc<Node> {
    let node = world.create(path).unwrap();
    let root = Credentials::root();
    world.names.set_owner(&root, &node, Some(owner), Some(group), NOW).unwrap();
    world.names.set_mode(&root, &node, mode, NOW).unwrap();
    node
}

#[test]
fn the_first_class_that_fits_decides() {
    let world = World::new();
    let node = node_with(&world, "f", 0o074, 1, 2);
    assert_eq!(user(1).permit(&node, Access::READ), Err(Errno::EACCES));
    let member = Credentials { groups: Arc::from([2].as_slice()), ..user(5) };
    assert_eq!(member.permit(&node, Access { read: true, write: true, execute: true }), Ok(()));
    assert_eq!(user(5).permit(&node, Access::READ), Ok(()));
    assert_eq!(user(5).permit(&node, Access::WRITE), Err(Errno::EACCES));
}

#[test]
fn root_reads_everything_but_executes_only_what_somebody_may() {
    let world = World::new();
    let root = Credentials::root();
    let node = node_with(&world, "f", 0, 1, 1);
    assert_eq!(root.permit(&node, Access { read: true, write: true, execute: false }), Ok(()));
    assert_eq!(root.permit(&node, Access::SEARCH), Err(Errno::EACCES));
    world.names.set_mode(&root, &node, 0o001, NOW).unwrap();
    assert_eq!(root.permit(&node, Access::SEARCH), Ok(()));
    let directory = world.mkdir("d").unwrap();
    world.names.set_mode(&root, &directory, 0, NOW).unwrap();
    assert_eq!(root.permit(&directory, Access::CHANGE_NAMES), Ok(()));
}

#[test]
fn names_can_be_changed_only_in_writable_directories() {
    let world = World::new();
    let guest = user(7);
    let view = world.view_as(&guest);
    world.create("f").unwrap();
    assert_eq!(world.names.unlink(view, b"f", NOW).map(drop), Err(Errno::EACCES));
    assert_eq!(world.names.open(view, b"g", CREATE, NOW).err(), Some(Errno::EACCES));
    assert_eq!(world.names.open(view, b"f", CREATE, NOW).err(), Some(Errno::EACCES));
    assert!(world.names.open(view, b"f", READ, NOW).is_ok());
    assert_eq!(world.names.make_directory(view, b"f", 0o755, NOW).err(), Some(Errno::EEXIST));
    assert_eq!(world.names.make_directory(view, b"h", 0o755, NOW).err(), Some(Errno::EACCES));
}

#[test]
fn a_sticky_directory_protects_entries_of_others() {
    let world = World::new();
    let directory = world.mkdir("tmp").unwrap();
    world.names.set_mode(&world.who, &directory, 0o1777, NOW).unwrap();
    let (one, two) = (user(1), user(2));
    world.names.open(world.view_as(&one), b"tmp/f", CREATE, NOW).unwrap();
    world.names.open(world.view_as(&two), b"tmp/g", CREATE, NOW).unwrap();
    let two_view = world.view_as(&two);
    assert_eq!(world.names.unlink(two_view, b"tmp/f", NOW).map(drop), Err(Errno::EPERM));
    let rename = |from: &'static [u8], to: &'static [u8]| {
        world.names.rename((two_view, from), (two_view, to), RenameMode::Replace, NOW)
    };
    assert_eq!(rename(b"tmp/f", b"tmp/h"), Err(Errno::EPERM));
    assert_eq!(rename(b"tmp/g", b"tmp/f"), Err(Errno::EPERM));
    assert_eq!(rename(b"tmp/g", b"tmp/h"), Ok(()));
    assert_eq!(world.names.unlink(world.view_as(&one), b"tmp/f", NOW).map(drop), Ok(()));
}

#[test]
fn a_set_group_directory_hands_its_group_down() {
    let world = World::new();
    let directory = world.mkdir("d").unwrap();
    world.names.set_owner(&world.who, &directory, None, Some(50), NOW).unwrap();
    world.names.set_mode(&world.who, &directory, 0o2777, NOW).unwrap();
    let one = user(1);
    let how = OpenHow { create: Some(Create { mode: 0o2775, exclusive: true }), ..CREATE };
    let file = world.names.open(world.view_as(&one), b"d/f", how, NOW).unwrap().node;
    assert_eq!((file.attributes().group, file.attributes().mode), (50, 0o775));
    let sub = world.names.make_directory(world.view_as(&one), b"d/s", 0o755, NOW).unwrap();
    assert_eq!((sub.attributes().group, sub.attributes().mode), (50, 0o2755));
}

#[test]
fn modes_and_owners_change_only_for_who_may() {
    let world = World::new();
    let node = node_with(&world, "f", 0o6755, 1, 1);
    let (one, two) = (user(1), user(2));
    assert_eq!(world.names.set_mode(&two, &node, 0o777, NOW), Err(Errno::EPERM));
    assert_eq!(world.names.set_owner(&one, &node, Some(2), None, NOW), Err(Errno::EPERM));
    assert_eq!(world.names.set_owner(&one, &node, None, Some(9), NOW), Err(Errno::EPERM));
    world.names.set_owner(&one, &node, Some(1), Some(1), NOW).unwrap();
    assert_eq!(node.attributes().mode, 0o755);
    world.names.set_mode(&world.who, &node, 0o4755, NOW).unwrap();
    node.note_write(&two, LATER);
    assert_eq!((node.attributes().mode, node.attributes().modified), (0o755, LATER));
    let link = world.symlink("f", "l").unwrap();
    assert_eq!(world.names.set_mode(&world.who, &link, 0o700, NOW), Err(Errno::ENOTSUP));
}

#[test]
fn times_change_for_the_owner_and_to_now_for_writers() {
    let world = World::new();
    let node = node_with(&world, "f", 0o666, 1, 1);
    let two = user(2);
    let set = TimeChange::Set(Time { seconds: -5, nanos: 9 });
    assert_eq!(world.names.set_times(&two, &node, set, TimeChange::Omit, LATER), Err(Errno::EPERM));
    world.names.set_times(&two, &node, TimeChange::Now, TimeChange::Now, LATER).unwrap();
    assert_eq!(node.attributes().accessed, LATER);
    world.names.set_times(&user(1), &node, set, TimeChange::Omit, LATER).unwrap();
    assert_eq!(node.attributes().accessed, Time { seconds: -5, nanos: 9 });
    assert_eq!(node.attributes().modified, LATER);
    world.names.set_mode(&world.who, &node, 0o444, NOW).unwrap();
    let touched = world.names.set_times(&two, &node, TimeChange::Now, TimeChange::Now, LATER);
    assert_eq!(touched, Err(Errno::EACCES));
}

#[test]
fn reading_moves_the_access_time_once_per_change_or_day() {
    let world = World::new();
    let node = world.file("f", b"x");
    node.note_read(LATER);
    assert_eq!(node.attributes().accessed, LATER);
    node.note_read(Time { seconds: 3000, nanos: 0 });
    assert_eq!(node.attributes().accessed, LATER);
    let next_day = Time { seconds: 2000 + 86_400, nanos: 2 };
    node.note_read(next_day);
    assert_eq!(node.attributes().accessed, next_day);
}

#[test]
fn a_read_only_volume_refuses_every_change() {
    let world = World::new();
    let node = world.file("f", b"x");
    world.mkdir("d").unwrap();
    world.root.volume().change_rules(Rules { volume_read_only: true, ..Rules::default() }).unwrap();
    assert_eq!(world.create("g").err(), Some(Errno::EROFS));
    assert_eq!(world.create("f").err(), Some(Errno::EROFS));
    assert!(world.open("f", READ).is_ok());
    assert_eq!(world.mkdir("e").err(), Some(Errno::EROFS));
    assert_eq!(world.mkdir("d").err(), Some(Errno::EEXIST));
    assert_eq!(world.unlink("f"), Err(Errno::EROFS));
    assert_eq!(world.rmdir("d"), Err(Errno::EROFS));
    assert_eq!(world.rename("f", "g"), Err(Errno::EROFS));
    assert_eq!(world.link("f", "g"), Err(Errno::EROFS));
    assert_eq!(world.names.set_mode(&world.who, &node, 0o600, NOW), Err(Errno::EROFS));
}

#[test]
fn only_root_makes_devices() {
    let world = World::new();
    let directory = world.mkdir("d").unwrap();
    world.names.set_mode(&world.who, &directory, 0o777, NOW).unwrap();
    let one = user(1);
    let device = NewSpecial { kind: NodeKind::CharDevice(1, 3), mode: 0o666 };
    let refused = world.names.make_special(world.view_as(&one), b"d/null", device, NOW);
    assert_eq!(refused.err(), Some(Errno::EPERM));
    let node = world.names.make_special(world.view(), b"d/null", device, NOW).unwrap();
    assert_eq!(node.kind().device_numbers(), (1, 3));
    let fifo = NewSpecial { kind: NodeKind::Fifo, mode: 0o644 };
    assert!(world.names.make_special(world.view_as(&one), b"d/fifo", fifo, NOW).is_ok());
}
