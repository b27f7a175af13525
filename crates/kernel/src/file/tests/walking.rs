//! Paths: symlinks, slashes, limits, opening, the path cache.

use super::*;

#[test]
fn symlinks_are_followed_where_linux_follows_them() {
    let world = World::new();
    world.mkdir("d").unwrap();
    let file = world.file("d/f", b"x");
    world.symlink("d", "dir").unwrap();
    world.symlink("/d/f", "abs").unwrap();
    world.symlink("../d/f", "d/up").unwrap();
    world.symlink("f", "d/near").unwrap();
    for path in ["abs", "dir/f", "d/up", "dir/near", "//d//./f", "d/../dir/../d/f"] {
        assert!(world.get(path).unwrap().is(&file), "{path}");
    }
    assert!(world.get_link("abs").unwrap().is_symlink());
    assert!(world.get_link("dir/").unwrap().is_directory());
    assert_eq!(world.get("abs/").err(), Some(Errno::ENOTDIR));
    assert_eq!(world.get("d/f/.").err(), Some(Errno::ENOTDIR));
    assert_eq!(world.get("").err(), Some(Errno::ENOENT));
    assert!(world.get("/../../..").unwrap().is(&world.root));
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let world = World::new();
    world.create("l0").unwrap();
    for number in 1..=41 {
        world.symlink(&format!("l{}", number - 1), &format!("l{number}")).unwrap();
    }
    assert!(world.get("l40").is_ok());
    assert_eq!(world.get("l41").err(), Some(Errno::ELOOP));
    world.symlink("self", "self").unwrap();
    assert_eq!(world.get("self").err(), Some(Errno::ELOOP));
    assert_eq!(world.open("self", CREATE).err(), Some(Errno::ELOOP));
}

#[test]
fn long_paths_are_refused() {
    let world = World::new();
    let longest = "./".repeat(2047) + ".";
    assert_eq!(longest.len(), 4095);
    assert!(world.get(&longest).is_ok());
    assert_eq!(world.get(&(longest + "/")).err(), Some(Errno::ENAMETOOLONG));
    assert_eq!(world.symlink(&"t".repeat(4096), "l").err(), Some(Errno::ENAMETOOLONG));
}

#[test]
fn open_creates_excludes_and_truncates() {
    let world = World::new();
    assert!(world.open("f", CREATE).unwrap().created);
    assert!(!world.open("f", CREATE).unwrap().created);
    let exclusive = OpenHow { create: Some(Create { mode: 0o600, exclusive: true }), ..CREATE };
    assert_eq!(world.open("f", exclusive).err(), Some(Errno::EEXIST));
    world.symlink("made", "dangling").unwrap();
    assert_eq!(world.open("dangling", exclusive).err(), Some(Errno::EEXIST));
    assert!(world.open("dangling", CREATE).unwrap().created);
    assert!(world.get("made").is_ok());
    world.file("f", b"data");
    assert!(world.open("f", OpenHow { truncate: true, ..READ }).unwrap().is_to_be_cut);
    assert!(!world.open("f", READ).unwrap().is_to_be_cut);
    assert_eq!(world.get("f").unwrap().attributes().size_bytes, 0);
    assert_eq!(world.open("new/", CREATE).err(), Some(Errno::EISDIR));
    assert_eq!(world.open("/", CREATE).err(), Some(Errno::EISDIR));
    assert_eq!(world.open(".", exclusive).err(), Some(Errno::EEXIST));
    assert_eq!(world.open("none", READ).err(), Some(Errno::ENOENT));
}

#[test]
fn open_checks_kinds() {
    let world = World::new();
    world.mkdir("d").unwrap();
    world.create("f").unwrap();
    world.symlink("f", "l").unwrap();
    let directory = OpenHow { directory: true, ..READ };
    let no_follow = OpenHow { no_follow: true, ..READ };
    assert!(world.open("d", directory).is_ok());
    assert_eq!(world.open("f", directory).err(), Some(Errno::ENOTDIR));
    assert_eq!(world.open("d", CREATE).err(), Some(Errno::EISDIR));
    assert_eq!(world.open("d", OpenHow { create: None, ..CREATE }).err(), Some(Errno::EISDIR));
    assert_eq!(world.open("l", no_follow).err(), Some(Errno::ELOOP));
    assert_eq!(world.open("l", OpenHow { directory: true, ..no_follow }).err(), Some(Errno::ENOTDIR));
    let place = world.open("l", OpenHow { path_only: true, ..no_follow }).unwrap();
    assert!(place.node.is_symlink());
    let execute = OpenHow { access: Access::SEARCH, ..READ };
    assert_eq!(world.open("d", execute).err(), Some(Errno::EACCES));
    assert_eq!(world.open("f", execute).err(), Some(Errno::EACCES));
}

#[test]
fn a_directory_that_may_not_be_searched_stops_the_walk() {
    let world = World::new();
    let directory = world.mkdir("d").unwrap();
    world.file("d/f", b"x");
    let guest = user(9);
    let look = || world.names.lookup(world.view_as(&guest), b"/d/f", FinalLink::Follow).err();
    assert_eq!(look(), None);
    world.names.set_mode(&world.who, &directory, 0o600, NOW).unwrap();
    assert!(world.get("/d/f").is_ok());
    assert_eq!(look(), Some(Errno::EACCES), "the path cache must not let the guest in");
    world.names.set_mode(&world.who, &directory, 0o711, NOW).unwrap();
    assert_eq!(look(), None);
}

#[test]
fn relative_paths_start_where_the_view_says() {
    let world = World::new();
    let a = world.mkdir("a").unwrap();
    let b = world.mkdir("b").unwrap();
    let (x, y) = (world.create("a/f").unwrap(), world.create("b/f").unwrap());
    for _ in 0..2 {
        assert!(world.names.lookup(world.at(&a), b"f", FinalLink::Follow).unwrap().is(&x));
        assert!(world.names.lookup(world.at(&b), b"f", FinalLink::Follow).unwrap().is(&y));
    }
    let refused = world.names.lookup(world.at(&x), b"f", FinalLink::Follow);
    assert_eq!(refused.err(), Some(Errno::ENOTDIR));
    assert!(world.names.lookup(world.at(&x), b"/a", FinalLink::Follow).unwrap().is(&a));
}

#[test]
fn a_private_root_is_a_wall() {
    let world = World::new();
    let jail = world.mkdir("jail").unwrap();
    let inside = world.mkdir("jail/etc").unwrap();
    world.mkdir("etc").unwrap();
    world.symlink("/etc", "jail/l").unwrap();
    let view = View::new(&jail, &jail, &world.who);
    for path in [b"/etc".as_slice(), b"etc", b"/../etc", b"../../etc", b"/l", b"l"] {
        assert!(world.names.lookup(view, path, FinalLink::Follow).unwrap().is(&inside));
    }
    assert_eq!(world.names.path_of(&inside, &jail).unwrap(), b"/etc");
    let outside = world.get("/etc").unwrap();
    assert_eq!(world.names.path_of(&outside, &jail).unwrap(), b"(unreachable)/etc");
}

#[test]
fn remembered_paths_follow_every_change() {
    let world = World::new();
    world.mkdir("/d").unwrap();
    let first = world.file("/d/f", b"1");
    world.symlink("f", "/d/l").unwrap();
    for _ in 0..2 {
        assert!(world.get("/d/f").unwrap().is(&first));
        assert!(world.get("/d/l").unwrap().is(&first));
        assert!(world.get_link("/d/l").unwrap().is_symlink());
    }
    world.rename("/d", "/e").unwrap();
    assert_eq!(world.get("/d/f").err(), Some(Errno::ENOENT));
    world.rename("/e", "/d").unwrap();
    world.unlink("/d/f").unwrap();
    assert_eq!(world.get("/d/l").err(), Some(Errno::ENOENT));
    let second = world.file("/d/f", b"2");
    assert!(world.get("/d/f").unwrap().is(&second));
    assert!(world.open("/d/f", CREATE).unwrap().node.is(&second));
}

#[test]
fn remembered_paths_keep_no_frame() {
    let world = World::new();
    world.file("/f", &[1; 4096]);
    world.get("/f").unwrap();
    world.unlink("/f").unwrap();
    assert_eq!(world.pool.free_frames(), 256);
}

#[test]
fn paths_of_every_length_are_kept_apart() {
    let world = World::new();
    let mut made = Vec::new();
    for bytes in 1..40 {
        for letter in ["a", "b"] {
            let path = format!("/{letter}{}", "x".repeat(bytes));
            made.push((path.clone(), world.create(&path).unwrap()));
        }
    }
    for _ in 0..2 {
        made.iter().for_each(|(path, node)| assert!(world.get(path).unwrap().is(node), "{path}"));
    }
}
