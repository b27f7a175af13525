//! Copy-on-write duplication.

use super::*;

#[test]
fn both_sides_keep_their_own_writes() {
    let pool = pool(64);
    let free = pool.free_frames();
    let mut parent = space(pool);
    let start = parent.map(MapRequest::anonymous(4 * PAGE, RW)).unwrap();
    poke(&mut parent, start, 1).unwrap();
    poke(&mut parent, start + PAGE, 2).unwrap();
    let mut child = parent.fork_whole(tables(pool)).unwrap();
    check(&parent);
    check(&child);
    poke(&mut child, start, 10).unwrap();
    poke(&mut parent, start + PAGE, 20).unwrap();
    poke(&mut parent, start + 2 * PAGE, 30).unwrap();
    assert_eq!([0, 1, 2].map(|page| byte(&mut parent, start + page * PAGE).unwrap()), [1, 20, 30]);
    assert_eq!([0, 1, 2].map(|page| byte(&mut child, start + page * PAGE).unwrap()), [10, 2, 0]);
    check(&parent);
    check(&child);
    drop(parent);
    // The last one to have a page writes it in place.
    let before = pool.free_frames();
    assert_eq!(child.fault(start + PAGE, Access::Write), Ok(Resolved::Present));
    assert_eq!(pool.free_frames(), before);
    drop(child);
    assert_eq!(pool.free_frames(), free);
}

#[test]
fn shared_anonymous_memory_stays_shared_even_where_untouched() {
    let pool = pool(64);
    let free = pool.free_frames();
    let mut parent = space(pool);
    let memory = AnonymousMemory::new(pool, 2 * PAGE, false).unwrap();
    let kind = Kind::SharedAnonymous(View { backing: memory, first_page: 0 });
    let start = parent.map(MapRequest::anonymous(2 * PAGE, RW).of(kind)).unwrap();
    assert_eq!(byte(&mut parent, start), Ok(0));
    let mut child = parent.fork_whole(tables(pool)).unwrap();
    poke(&mut child, start, 5).unwrap();
    poke(&mut parent, start + PAGE, 6).unwrap();
    assert_eq!((byte(&mut parent, start), byte(&mut child, start + PAGE)), (Ok(5), Ok(6)));
    let keys = [&parent, &child].map(|space| match space.identity(start + PAGE + 8) {
        Some(Identity::Shared { backing, offset_bytes }) => (Arc::as_ptr(&backing).cast::<()>(), offset_bytes),
        _ => panic!("not shared"),
    });
    assert_eq!(keys[0], keys[1]);
    drop((parent, child));
    assert_eq!(pool.free_frames(), free);
}

#[test]
fn what_is_shared_is_charged_in_parts() {
    let pool = pool(64);
    let mut parent = space(pool);
    let own = parent.map(MapRequest::anonymous(4 * PAGE, RW)).unwrap();
    (0..4).for_each(|page| poke(&mut parent, own + page * PAGE, 1).unwrap());
    let memory = AnonymousMemory::new(pool, 8 * PAGE, false).unwrap();
    let shared = Kind::SharedAnonymous(View { backing: memory.clone(), first_page: 0 });
    let start = parent.map(MapRequest::anonymous(8 * PAGE, RW).of(shared)).unwrap();
    (0..6).for_each(|page| poke(&mut parent, start + page * PAGE, 1).unwrap());
    drop(memory);
    // A page of a file that was only read is the file's.
    let text = MapRequest::anonymous(2 * PAGE, RW).of(Kind::FilePrivate(view(&file(pool, 2), 0)));
    let text = parent.map(text).unwrap();
    byte(&mut parent, text).unwrap();
    poke(&mut parent, text + PAGE, 9).unwrap();
    let pages = |space: &Space| {
        let mut bill = Bill::new();
        space.charge(&mut bill);
        let mut next = Some(0);
        while let Some(from) = next {
            next = space.charge_some(&mut bill, from, 3);
        }
        (bill.of(Kept::Pages) / PAGE, bill.of(Kept::SharedMemory) / PAGE)
    };
    assert_eq!(pages(&parent), (4 + 1, 6));
    let child = parent.fork_whole(tables(pool)).unwrap();
    assert_eq!((pages(&parent), pages(&child)), ((2, 3), (2, 3)));
    drop(child);
    assert_eq!(pages(&parent), (4 + 1, 6));
}

#[test]
fn a_fork_without_frames_undoes_all() {
    let pool = pool(24);
    let mut parent = space(pool);
    // Pages far apart need a table each in the child.
    let starts: Vec<u64> = (1..8).map(|index| index * 0x4000_0000).collect();
    for &start in &starts {
        parent.map(MapRequest::anonymous(PAGE, RW).at(start)).unwrap();
        poke(&mut parent, start, 1).unwrap();
    }
    let held: Vec<Page> = core::iter::from_fn(|| (pool.free_frames() > 3).then(|| pool.allocate()).flatten()).collect();
    let free = pool.free_frames();
    assert!(parent.fork_whole(tables(pool)).is_err());
    assert_eq!(pool.free_frames(), free);
    check(&parent);
    for &start in &starts {
        assert_eq!(parent.fault(start, Access::Write), Ok(Resolved::Present));
    }
    drop(held);
}

#[test]
fn text_is_left_to_the_childs_faults() {
    let pool = pool(256);
    let file = file(pool, 64);
    let mut parent = space(pool);
    let request = MapRequest::anonymous(64 * PAGE, RX).of(Kind::FilePrivate(view(&file, 0)));
    let start = parent.map(MapRequest { populate: true, ..request }).unwrap();
    assert_eq!(parent.populate_some(start + 32 * PAGE..start + 64 * PAGE, None), Ok(None));
    assert_eq!(parent.usage().resident, 64 * PAGE);
    let child_tables = tables(pool);
    let mut child = parent.fork_whole(child_tables.clone()).unwrap();
    assert_eq!(child_tables.changes.get(), 0);
    assert_eq!(byte(&mut child, start + 33 * PAGE), Ok(34));
    // With a poked page the area has copies, and they are the child's too.
    parent.poke_bytes(start, &[0xCC]).unwrap();
    let mut second = parent.fork_whole(tables(pool)).unwrap();
    assert_eq!(byte(&mut second, start), Ok(0xCC));
}

#[test]
fn advice_omits_or_wipes_areas_in_the_child() {
    let pool = pool(64);
    let mut parent = space(pool);
    let start = parent.map(MapRequest::anonymous(3 * PAGE, RW)).unwrap();
    for page in 0..3 {
        poke(&mut parent, start + page * PAGE, 7).unwrap();
    }
    parent.advise(start, PAGE, Advice::AtFork(AtFork::Omit)).unwrap();
    parent.advise(start + PAGE, PAGE, Advice::AtFork(AtFork::Wipe)).unwrap();
    let mut child = parent.fork_whole(tables(pool)).unwrap();
    check(&child);
    assert_eq!(byte(&mut child, start), Err(FaultKind::Unmapped));
    assert_eq!(byte(&mut child, start + PAGE), Ok(0));
    assert_eq!(byte(&mut child, start + 2 * PAGE), Ok(7));
    parent.advise(start, 3 * PAGE, Advice::AtFork(AtFork::Share)).unwrap();
    assert_eq!(parent.areas().count(), 1);
}

#[test]
fn a_thousand_forks_return_every_frame() {
    let pool = pool(256);
    let free = pool.free_frames();
    let mut parent = space(pool);
    let start = parent.map(MapRequest::anonymous(16 * PAGE, RW)).unwrap();
    for round in 0..1000u64 {
        poke(&mut parent, start + round % 16 * PAGE, round as u8).unwrap();
        let mut child = parent.fork_whole(tables(pool)).unwrap();
        poke(&mut child, start + (round + 3) % 16 * PAGE, 1).unwrap();
    }
    check(&parent);
    drop(parent);
    assert_eq!(pool.free_frames(), free);
}
