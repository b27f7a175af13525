//! Directories: entries, listings, counts, removal.

use super::*;

#[test]
fn link_counts_follow_names() {
    let world = World::new();
    world.mkdir("d").unwrap();
    world.mkdir("d/e").unwrap();
    assert_eq!(world.get("d").unwrap().attributes().links, 3);
    let node = world.file("d/f", b"1");
    world.link("d/f", "g").unwrap();
    assert_eq!(node.attributes().links, 2);
    assert_eq!(node.attributes().changed, LATER);
    world.rmdir("d/e").unwrap();
    assert_eq!(world.get("d").unwrap().attributes().links, 2);
    assert_eq!(world.link("d", "h"), Err(Errno::EPERM));
    assert_eq!(world.link("g", "d/f"), Err(Errno::EEXIST));
}

#[test]
fn rmdir_refuses_what_linux_refuses() {
    let world = World::new();
    world.mkdir("d").unwrap();
    world.create("d/f").unwrap();
    assert_eq!(world.rmdir("d"), Err(Errno::ENOTEMPTY));
    assert_eq!(world.rmdir("d/f"), Err(Errno::ENOTDIR));
    assert_eq!(world.rmdir("d/."), Err(Errno::EINVAL));
    assert_eq!(world.rmdir("d/.."), Err(Errno::ENOTEMPTY));
    assert_eq!(world.rmdir("/"), Err(Errno::EBUSY));
    assert_eq!(world.rmdir("none"), Err(Errno::ENOENT));
    assert_eq!(world.unlink("d"), Err(Errno::EISDIR));
    assert_eq!(world.unlink("d/"), Err(Errno::EISDIR));
    assert_eq!(world.unlink("d/f/"), Err(Errno::ENOTDIR));
    assert_eq!(world.unlink("d/.."), Err(Errno::EISDIR));
}

#[test]
fn making_refuses_what_linux_refuses() {
    let world = World::new();
    world.mkdir("d/").unwrap();
    world.create("f").unwrap();
    assert_eq!(world.mkdir("d").err(), Some(Errno::EEXIST));
    assert_eq!(world.mkdir("d/.").err(), Some(Errno::EEXIST));
    assert_eq!(world.mkdir("/").err(), Some(Errno::EEXIST));
    assert_eq!(world.mkdir("f/x").err(), Some(Errno::ENOTDIR));
    assert_eq!(world.mkdir("none/x").err(), Some(Errno::ENOENT));
    assert_eq!(world.symlink("t", "new/").err(), Some(Errno::ENOENT));
    assert_eq!(world.symlink("", "new").err(), Some(Errno::ENOENT));
    assert_eq!(world.link("f", "new/"), Err(Errno::ENOENT));
    assert_eq!(world.mkdir(&"n".repeat(256)).err(), Some(Errno::ENAMETOOLONG));
    assert!(world.mkdir(&"n".repeat(255)).is_ok());
    assert_eq!(world.get(&"n".repeat(256)).err(), Some(Errno::ENAMETOOLONG));
}

#[test]
fn a_removed_working_directory_is_dead_but_knows_its_parent() {
    let world = World::new();
    let parent = world.mkdir("a").unwrap();
    let directory = world.mkdir("a/b").unwrap();
    world.rmdir("a/b").unwrap();
    let view = world.at(&directory);
    assert_eq!(world.names.lookup(view, b"x", FinalLink::Follow).err(), Some(Errno::ENOENT));
    assert_eq!(world.names.open(view, b"x", CREATE, NOW).err(), Some(Errno::ENOENT));
    assert_eq!(world.names.make_directory(view, b"x", 0o755, NOW).err(), Some(Errno::ENOENT));
    assert!(world.names.lookup(view, b".", FinalLink::Follow).unwrap().is(&directory));
    assert!(world.names.lookup(view, b"..", FinalLink::Follow).unwrap().is(&parent));
    assert_eq!(world.names.working_directory(&directory, &world.root), Err(Errno::ENOENT));
    assert_eq!(directory.list(0, &mut |_| Visit::Continue), Err(Errno::ENOENT));
}

#[test]
fn a_listing_survives_changes_between_its_parts() {
    let world = World::new();
    let directory = world.mkdir("d").unwrap();
    for number in 0..500 {
        world.create(&format!("d/{number}")).unwrap();
    }
    let (mut seen, mut next, mut removed) = (Vec::new(), 0, 0);
    loop {
        let mut batch = Vec::new();
        directory
            .list(next, &mut |listed| {
                if batch.len() == 7 {
                    return Visit::Stop;
                }
                batch.push(String::from_utf8(listed.name.to_vec()).unwrap());
                next = listed.next;
                Visit::Continue
            })
            .unwrap();
        if batch.is_empty() {
            break;
        }
        // Removes entries that were shown, and adds others, which also rebuilds the table.
        for name in batch.iter().filter(|name| name.parse::<u32>().is_ok_and(|number| number % 3 != 0)) {
            world.unlink(&format!("d/{name}")).unwrap();
            removed += 1;
        }
        if seen.len() < 300 {
            world.create(&format!("d/new{}", seen.len())).unwrap();
        }
        seen.extend(batch);
    }
    let mut old: Vec<u32> = seen.iter().filter_map(|name| name.parse().ok()).collect();
    assert_eq!(&seen[..2], [".", ".."]);
    assert_eq!(old.len(), 500);
    old.dedup();
    assert_eq!(old, (0..500).collect::<Vec<_>>());
    assert!(removed > 300);
}

#[test]
fn many_entries_are_found_and_removed() {
    let world = World::with_frames(8);
    let volume = Volume::in_memory_limited(world.pool, 20_000).unwrap();
    let root = Node::root(&volume, NewNode { mode: 0o755, user: 0, group: 0, now: NOW }).unwrap();
    let view = View::new(&world.root, &root, &world.who);
    for number in 0..5000 {
        world.names.open(view, format!("file-{number}").as_bytes(), CREATE, NOW).unwrap();
    }
    for number in (0..5000).step_by(2) {
        world.names.unlink(view, format!("file-{number}").as_bytes(), NOW).unwrap();
    }
    for number in 0..5000 {
        let found = root.child(format!("file-{number}").as_bytes());
        assert_eq!(found.is_ok(), number % 2 == 1, "file-{number}");
    }
    assert_eq!(names_in(&root).len(), 2500);
    assert_eq!(root.attributes().size_bytes, 2502 * 20);
}

#[test]
fn nodes_and_links_are_limited_and_given_back() {
    let world = World::with_frames(4);
    let volume = world.root.volume();
    let free = volume.numbers().nodes_free;
    world.create("f").unwrap();
    let mut links = 0;
    let error = loop {
        match world.link("f", &format!("l{links}")) {
            Ok(()) => links += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error, links + 1), (Errno::ENOSPC, free));
    assert_eq!(world.create("g").err(), Some(Errno::ENOSPC));
    for number in 0..links {
        world.unlink(&format!("l{number}")).unwrap();
    }
    world.unlink("f").unwrap();
    assert_eq!(volume.numbers().nodes_free, free);
}

#[test]
fn a_very_deep_tree_goes_away_without_a_deep_stack() {
    let world = World::with_frames(4);
    let volume = Volume::in_memory_limited(world.pool, 300_000).unwrap();
    let root = Node::root(&volume, NewNode { mode: 0o755, user: 0, group: 0, now: NOW }).unwrap();
    let mut at = root.clone();
    for _ in 0..100_000 {
        at = world.names.make_directory(world.at(&at), b"d", 0o755, NOW).unwrap();
    }
    // Removed from the bottom, each directory is kept by the one below it.
    let held = at.clone();
    for _ in 0..50_000 {
        let parent = at.parent().unwrap();
        world.names.remove_directory(world.at(&parent), b"d", NOW).unwrap();
        at = parent;
    }
    drop(at);
    drop(held);
    drop(root);
    assert_eq!(volume.numbers().nodes_free, 300_000);
}

#[test]
fn times_of_directories_move_with_their_names() {
    let world = World::new();
    let directory = world.mkdir("d").unwrap();
    world.create("d/f").unwrap();
    world.unlink("d/f").unwrap();
    assert_eq!((directory.attributes().modified, directory.attributes().changed), (LATER, LATER));
    assert_eq!(directory.attributes().accessed, NOW);
}

/// Names that come and go in any order, many of them in one place of the index: each is found as long as it is there, and what is not
/// there is passed by nobody.
#[test]
fn names_that_come_and_go_are_found() {
    use crate::file::directory::{Entries, Found};

    let node = World::new().create("node").unwrap();
    for seed in 1..=20u64 {
        let mut entries = Entries::default();
        let mut present = std::collections::BTreeSet::new();
        let mut state = seed;
        for step in 0..3_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let few = if step % 1_000 < 500 { 12 } else { 60 };
            let name = format!("n{}", (state >> 33) % few);
            if (state >> 60) & 1 == 0 {
                match present.insert(name.clone()) {
                    true => entries.insert(name.as_bytes().into(), node.clone()).unwrap(),
                    false => assert!(entries.replace(name.as_bytes(), node.clone()).is_some()),
                }
            } else {
                assert_eq!(
                    entries.remove(name.as_bytes()).is_some(),
                    present.remove(&name),
                    "seed {seed}, step {step}"
                );
            }
            assert_eq!(entries.len(), present.len());
            let is_found = |name: &String| matches!(entries.find(name.as_bytes()), Found::Node(_));
            assert!(present.iter().all(is_found), "seed {seed}, step {step}: one is lost");
            let listed: std::collections::BTreeSet<_> =
                entries.at_or_after(0).map(|(_, entry)| String::from_utf8_lossy(&entry.name).into_owned()).collect();
            assert_eq!(listed, present, "seed {seed}, step {step}");
        }
    }
}
