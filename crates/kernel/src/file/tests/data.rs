//! Reading, writing, holes, sizes and frames of regular files.

use super::*;

#[test]
fn bytes_come_back_across_pages() {
    let world = World::new();
    let data: Vec<u8> = (0..20_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let node = world.file("f", &data);
    assert_eq!(read_all(&node), data);
    let mut part = [0; 5000];
    assert_eq!(node.content().unwrap().read_at(4000, &mut part), 5000);
    assert_eq!(part[..], data[4000..9000]);
    assert_eq!(node.content().unwrap().read_at(19_999, &mut part), 1);
    assert_eq!(node.content().unwrap().read_at(u64::MAX, &mut part), 0);
}

#[test]
fn a_terabyte_of_hole_costs_nothing() {
    let world = World::new();
    let node = world.create("f").unwrap();
    let content = node.content().unwrap();
    content.resize(1 << 40).unwrap();
    let free = world.pool.free_frames();
    assert_eq!(content.write_at((1 << 40) - 3, b"end"), Ok(3));
    assert_eq!(world.pool.free_frames(), free - 1);
    assert_eq!(node.attributes().blocks_512, 8);
    let mut bytes = [1; 6];
    assert_eq!(content.read_at((1 << 40) - 6, &mut bytes), 6);
    assert_eq!(&bytes, b"\0\0\0end");
    assert_eq!(content.seek_data(0), Ok((1 << 40) - 4096));
    assert_eq!(content.seek_hole(0), Ok(0));
    assert_eq!(content.seek_hole((1 << 40) - 1), Ok(1 << 40));
    assert_eq!(content.seek_data(1 << 40), Err(Errno::ENXIO));
}

#[test]
fn the_largest_offset_is_kept_and_the_next_refused() {
    let world = World::new();
    let node = world.create("f").unwrap();
    let content = node.content().unwrap();
    let end = limits::FILE_BYTES_MAX;
    assert_eq!(content.write_at(end - 2, b"four"), Ok(2));
    assert_eq!(content.size(), end);
    assert_eq!(content.write_at(end, b"x"), Err(Errno::EFBIG));
    assert_eq!(content.resize(end + 1), Err(Errno::EFBIG));
    content.punch_hole(5..end).unwrap();
    let mut bytes = [1; 2];
    assert_eq!((content.read_at(end - 2, &mut bytes), bytes), (2, [0; 2]));
    content.resize(0).unwrap();
    assert_eq!(world.pool.free_frames(), 256);
}

#[test]
fn shrinking_and_growing_shows_zeros() {
    let world = World::new();
    let node = world.file("f", &[9; 9000]);
    node.truncate(10, &world.who, LATER).unwrap();
    assert_eq!(world.pool.free_frames(), 255);
    node.truncate(5000, &world.who, LATER).unwrap();
    let bytes = read_all(&node);
    assert!(bytes[..10].iter().all(|byte| *byte == 9) && bytes[10..].iter().all(|byte| *byte == 0));
}

#[test]
fn bytes_stored_behind_the_end_through_a_mapping_never_appear() {
    let world = World::new();
    let node = world.file("f", b"abc");
    let content = node.content().unwrap();
    content.page_for_write(0).unwrap().now().unwrap().write(3, b"junk");
    assert_eq!(content.write_at(5, b"x"), Ok(1));
    assert_eq!(read_all(&node), b"abc\0\0x");
}

#[test]
fn a_punched_hole_reads_as_zeros_and_frees_its_frames() {
    let world = World::new();
    let node = world.file("f", &[7; 5 * 4096]);
    let content = node.content().unwrap();
    content.punch_hole(100..4 * 4096 + 50).unwrap();
    assert_eq!(content.pages_present(), 2);
    let bytes = read_all(&node);
    assert!(bytes.iter().enumerate().all(|(at, byte)| (*byte == 0) == (100..4 * 4096 + 50).contains(&at)));
    assert_eq!(content.seek_hole(0), Ok(4096));
    assert_eq!(content.seek_data(4096), Ok(4 * 4096));
    content.punch_hole(20..30).unwrap();
    assert_eq!(read_all(&node)[19..31], [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
}

#[test]
fn allocation_is_all_or_nothing() {
    let world = World::with_frames(16);
    let node = world.file("f", b"x");
    let content = node.content().unwrap();
    assert_eq!(content.allocate(0..17 * 4096), Err(Errno::ENOSPC));
    assert_eq!(content.pages_present(), 1);
    content.allocate(0..3 * 4096).unwrap();
    assert_eq!((content.pages_present(), content.size()), (3, 1));
}

#[test]
fn a_full_pool_gives_a_short_write_and_then_no_space() {
    let world = World::with_frames(4);
    let node = world.create("f").unwrap();
    let content = node.content().unwrap();
    assert_eq!(content.write_at(0, &[1; 5 * 4096]), Ok(4 * 4096));
    assert_eq!(content.write_at(4 * 4096, b"x"), Err(Errno::ENOSPC));
    assert_eq!(world.root.volume().numbers().blocks_free, 0);
    node.truncate(0, &world.who, NOW).unwrap();
    assert_eq!(world.root.volume().numbers().blocks_free, 4);
}

#[test]
fn program_memory_is_copied_both_ways_with_partial_counts() {
    let world = World::new();
    let node = world.create("f").unwrap();
    let content = node.content().unwrap();
    let source: Vec<u8> = (0..10_000).map(|n| n as u8).collect();
    let program = Program::new(world.pool, source.clone());
    assert_eq!(content.write_user(&program, 100, VirtAddr(0), 12_000), Ok(10_000));
    assert_eq!(content.size(), 10_100);
    assert_eq!(read_all(&node)[100..], source[..]);
    assert_eq!(content.write_user(&program, 0, VirtAddr(10_000), 1), Err(Errno::EFAULT));
    let target = Program::new(world.pool, vec![0xFF; 6000]);
    assert_eq!(content.read_user(&target, 0, VirtAddr(0), 9000), Ok(6000));
    assert_eq!(target.bytes.borrow()[..], read_all(&node)[..6000]);
    assert_eq!(content.read_user(&target, 0, VirtAddr(6000), 1), Err(Errno::EFAULT));
    assert_eq!(content.read_user(&target, 20_000, VirtAddr(6000), 1), Ok(0));
}

#[test]
fn a_write_that_faults_at_once_leaves_no_page() {
    let world = World::new();
    let node = world.create("f").unwrap();
    let program = Program::new(world.pool, vec![]);
    assert_eq!(node.content().unwrap().write_user(&program, 0, VirtAddr(0), 10), Err(Errno::EFAULT));
    assert_eq!((node.content().unwrap().pages_present(), world.pool.free_frames()), (0, 256));
}

#[test]
fn a_fault_may_come_back_to_the_same_file() {
    let world = World::new();
    let node = world.file("f", b"x");
    let content = node.content().unwrap();
    content.resize(4 * 4096).unwrap();
    let touch = || {
        content.page_for_write(1).unwrap().now().unwrap().write(4090, b"mapped");
        content.page(0).unwrap();
    };
    let program = Program { on_touch: Some(&touch), ..Program::new(world.pool, vec![5; 4096]) };
    assert_eq!(content.write_user(&program, 4096, VirtAddr(0), 50), Ok(50));
    let bytes = read_all(&node);
    assert_eq!((bytes[4096], bytes[4096 + 49], bytes[4096 + 50]), (5, 5, 0));
    assert_eq!(&bytes[8186..8192], b"mapped");
    assert_eq!(content.read_user(&program, 0, VirtAddr(0), 100), Ok(100));
}

#[test]
fn archive_frames_become_file_pages() {
    let memory = VecMemory(KernelCell::new(vec![b'a'; 8 * PAGE_BYTES]));
    let pool: &'static FramePool =
        Box::leak(Box::new(FramePool::new(Box::leak(Box::new(memory)), vec![practice::frames(0..4)], 0)));
    let volume = Volume::in_memory_limited(pool, 100).unwrap();
    let root = Node::root(&volume, NewNode { mode: 0o755, user: 0, group: 0, now: NOW }).unwrap();
    let names = Namespace::new(root.clone()).unwrap();
    let who = Credentials::root();
    let view = View::new(&root, &root, &who);
    let node = names.open(view, b"/bin", CREATE, NOW).unwrap().node;
    let content = node.content().unwrap();
    let mut archive = practice::frames(5..7);
    let first = archive.number(0);
    content.adopt_page(pool.adopt(&mut archive).unwrap(), 4096).unwrap();
    content.adopt_page(pool.adopt(&mut archive).unwrap(), 10).unwrap();
    assert!(pool.adopt(&mut archive).is_none(), "all are adopted");
    assert_eq!(content.size(), 4106);
    assert_eq!(content.page(0).unwrap().now().unwrap().frame(), first);
    assert_eq!(content.write_at(0, b"W"), Ok(1));
    assert_eq!(content.page(0).unwrap().now().unwrap().frame(), first, "written in place");
    content.resize(5000).unwrap();
    assert_eq!(read_all(&node)[4100..4110], *b"aaaaaa\0\0\0\0");
    assert_eq!(content.page(2).err(), Some(Errno::ENXIO));
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let world = World::new();
    let node = world.file("f", &[1; 8192]);
    world.unlink("f").unwrap();
    assert_eq!(world.get("f").err(), Some(Errno::ENOENT));
    assert_eq!((node.attributes().links, read_all(&node).len()), (0, 8192));
    assert_eq!(world.path(&node), "/f (deleted)");
    drop(node);
    assert_eq!(world.pool.free_frames(), 256);
}

#[test]
fn executed_files_cannot_be_written() {
    let world = World::new();
    let node = world.file("f", b"code");
    node.begin_execute().unwrap();
    assert_eq!(node.begin_write(), Err(Errno::ETXTBSY));
    assert_eq!(world.open("f", CREATE).err(), Some(Errno::ETXTBSY));
    assert!(world.open("f", READ).is_ok());
    node.end_execute();
    node.begin_write().unwrap();
    assert_eq!(node.begin_execute(), Err(Errno::ETXTBSY));
    node.end_write();
}
