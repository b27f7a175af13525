//! Rename, with all of Linux's rules.

use super::*;

#[test]
fn a_file_replaces_a_file() {
    let world = World::new();
    let free = world.pool.free_frames();
    world.file("a", b"one");
    let replaced = world.file("b", b"two");
    world.rename("a", "b").unwrap();
    assert_eq!(read_all(&world.get("b").unwrap()), b"one");
    assert_eq!(world.get("a").err(), Some(Errno::ENOENT));
    assert_eq!(replaced.attributes().links, 0);
    drop(replaced);
    assert_eq!(world.pool.free_frames(), free - 1);
}

#[test]
fn kinds_must_fit() {
    let world = World::new();
    world.mkdir("d").unwrap();
    world.mkdir("full").unwrap();
    world.create("full/x").unwrap();
    world.create("f").unwrap();
    assert_eq!(world.rename("f", "d"), Err(Errno::EISDIR));
    assert_eq!(world.rename("d", "f"), Err(Errno::ENOTDIR));
    assert_eq!(world.rename("d", "full"), Err(Errno::ENOTEMPTY));
    assert_eq!(world.rename("f", "new/"), Err(Errno::ENOTDIR));
    assert_eq!(world.rename("f/", "new"), Err(Errno::ENOTDIR));
    assert_eq!(world.rename("none", "new"), Err(Errno::ENOENT));
    assert_eq!(world.rename("d/.", "new"), Err(Errno::EBUSY));
    assert_eq!(world.rename("f", "d/.."), Err(Errno::EBUSY));
    assert_eq!(world.rename_with("f", "d/..", RenameMode::Keep), Err(Errno::EEXIST));
    world.rename("full", "d/").unwrap();
    assert_eq!(names_in(&world.get("d").unwrap()), ["x"]);
}

#[test]
fn a_directory_cannot_move_into_itself() {
    let world = World::new();
    world.mkdir("a").unwrap();
    world.mkdir("a/b").unwrap();
    world.mkdir("a/b/c").unwrap();
    assert_eq!(world.rename("a", "a/b/x"), Err(Errno::EINVAL));
    assert_eq!(world.rename("a", "a/x"), Err(Errno::EINVAL));
    assert_eq!(world.rename("a/b/c", "a"), Err(Errno::ENOTEMPTY));
    assert_eq!(world.rename_with("a/b/c", "a", RenameMode::Exchange), Err(Errno::EINVAL));
    assert_eq!(world.rename("a", "a"), Ok(()));
}

#[test]
fn a_moved_directory_has_its_new_parent_above_it() {
    let world = World::new();
    let a = world.mkdir("a").unwrap();
    let b = world.mkdir("b").unwrap();
    let child = world.mkdir("a/c").unwrap();
    world.rename("a/c", "b/d").unwrap();
    assert_eq!(world.path(&child), "/b/d");
    assert!(world.get("b/d/..").unwrap().is(&b));
    assert_eq!((a.attributes().links, b.attributes().links), (2, 3));
    world.mkdir("b/e").unwrap();
    world.rename("b/d", "b/e").unwrap();
    assert_eq!((world.path(&child), b.attributes().links), ("/b/e".into(), 3));
}

#[test]
fn two_links_of_one_file_stay_two() {
    let world = World::new();
    world.create("a").unwrap();
    world.link("a", "b").unwrap();
    assert_eq!(world.rename("a", "b"), Ok(()));
    assert_eq!(names_in(&world.root), ["a", "b"]);
}

#[test]
fn keep_and_exchange() {
    let world = World::new();
    let file = world.create("f").unwrap();
    world.mkdir("p").unwrap();
    let directory = world.mkdir("p/d").unwrap();
    assert_eq!(world.rename_with("f", "p", RenameMode::Keep), Err(Errno::EEXIST));
    assert_eq!(world.rename_with("f", "none", RenameMode::Exchange), Err(Errno::ENOENT));
    world.rename_with("f", "p/d", RenameMode::Exchange).unwrap();
    assert!(world.get("f").unwrap().is(&directory) && world.get("p/d").unwrap().is(&file));
    assert_eq!((world.path(&directory), world.path(&file)), ("/f".into(), "/p/d".into()));
    assert_eq!((world.root.attributes().links, world.get("p").unwrap().attributes().links), (4, 2));
    world.rename_with("f", "g", RenameMode::Keep).unwrap();
    assert_eq!(world.path(&directory), "/g");
}

#[test]
fn moving_a_directory_to_another_parent_writes_to_it() {
    let world = World::new();
    for path in ["p", "q"] {
        let node = world.mkdir(path).unwrap();
        world.names.set_mode(&world.who, &node, 0o777, NOW).unwrap();
    }
    world.mkdir("p/d").unwrap();
    let one = user(1);
    let view = world.view_as(&one);
    let moved = |to: &'static [u8]| world.names.rename((view, b"p/d"), (view, to), RenameMode::Replace, NOW);
    assert_eq!(moved(b"q/d"), Err(Errno::EACCES));
    assert_eq!(moved(b"p/e"), Ok(()));
}
