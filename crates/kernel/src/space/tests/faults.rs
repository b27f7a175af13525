//! Demand zero, copy on write, files, stacks.

use super::*;

#[test]
fn reading_maps_the_zero_page_and_writing_gives_a_frame() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(4 * PAGE, RW)).unwrap();
    let free = pool.free_frames();
    assert_eq!(space.fault(start, Access::Read), Ok(Resolved::Mapped));
    assert_eq!(space.usage().resident, 0);
    assert_eq!(free - pool.free_frames(), 1, "only a table");
    assert_eq!(space.fault(start, Access::Write), Ok(Resolved::Copied));
    assert_eq!(space.fault(start, Access::Write), Ok(Resolved::Present));
    assert_eq!(space.fault(start + PAGE, Access::Write), Ok(Resolved::Mapped));
    assert_eq!(space.usage().resident, 2 * PAGE);
    assert_eq!(byte(&mut space, start + PAGE + 77), Ok(0));
    check(&space);
}

#[test]
fn faults_without_right_or_area_say_why() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(PAGE, READ)).unwrap();
    assert_eq!(space.fault(start, Access::Write), Err(FaultKind::Denied));
    assert_eq!(space.fault(start, Access::Execute), Err(FaultKind::Denied));
    assert_eq!(space.fault(start + PAGE, Access::Read), Err(FaultKind::Unmapped));
    assert_eq!(space.fault(USER_LIMIT, Access::Read), Err(FaultKind::Unmapped));
    assert_eq!(space.fault(u64::MAX, Access::Read), Err(FaultKind::Unmapped));
    assert_eq!(space.fault(0, Access::Read), Err(FaultKind::Unmapped));
    assert_eq!(byte(&mut space, u64::MAX), Err(FaultKind::Unmapped));
    let none = space.map(MapRequest::anonymous(PAGE, NONE)).unwrap();
    assert_eq!(space.fault(none, Access::Read), Err(FaultKind::Denied));
    let write_only = Protection { write: true, ..NONE };
    let start = space.map(MapRequest::anonymous(PAGE, write_only)).unwrap();
    assert_eq!(space.fault(start, Access::Read), Ok(Resolved::Mapped), "writing implies reading");
}

#[test]
fn a_private_file_page_is_the_files_own_until_written() {
    let pool = pool(64);
    let file = file(pool, 3);
    let mut space = space(pool);
    let request = MapRequest::anonymous(5 * PAGE, RW).of(Kind::FilePrivate(view(&file, 1)));
    let start = space.map(request).unwrap();
    let free = pool.free_frames();
    assert_eq!(byte(&mut space, start), Ok(2));
    assert_eq!(free - pool.free_frames(), 1, "a table, no copy");
    assert_eq!(space.usage().resident, 2 * PAGE, "the neighbour came along");
    assert_eq!(space.resident_shared_bytes(), 2 * PAGE);
    poke(&mut space, start, 99).unwrap();
    assert_eq!(byte(&mut space, start), Ok(99));
    assert_eq!(file.page(1).unwrap().now().map(|page| page.is_shared()), Some(true));
    let mut own = [0];
    file.page(1).unwrap().now().unwrap().read(0, &mut own);
    assert_eq!(own, [2], "the file did not change");
    assert_eq!(space.resident_shared_bytes(), PAGE);
    assert_eq!(byte(&mut space, start + 2 * PAGE), Err(FaultKind::PastEndOfFile));
    assert_eq!(poke(&mut space, start + 2 * PAGE, 1), Err(FaultKind::PastEndOfFile));
    check(&space);
}

#[test]
fn a_private_reader_of_a_hole_sees_what_others_write_there() {
    let pool = pool(64);
    let file = file(pool, 2);
    file.pages.borrow_mut()[0] = None;
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(2 * PAGE, RW).of(Kind::FilePrivate(view(&file, 0)))).unwrap();
    assert_eq!(byte(&mut space, start), Ok(0));
    file.page_for_write(0).unwrap().now().unwrap().write(0, &[7]);
    assert_eq!(byte(&mut space, start), Ok(7));
    poke(&mut space, start, 5).unwrap();
    let mut own = [0];
    file.page(0).unwrap().now().unwrap().read(0, &mut own);
    assert_eq!((own, byte(&mut space, start)), ([7], Ok(5)), "the file did not change");
    check(&space);
}

#[test]
fn a_private_write_into_a_hole_leaves_it_one() {
    let pool = pool(64);
    let file = file(pool, 2);
    file.pages.borrow_mut()[0] = None;
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(2 * PAGE, RW).of(Kind::FilePrivate(view(&file, 0)))).unwrap();
    poke(&mut space, start, 5).unwrap();
    assert!(file.pages.borrow()[0].is_none());
    assert_eq!(byte(&mut space, start), Ok(5));
    check(&space);
}

#[test]
fn a_read_fault_maps_eight_file_pages_around() {
    let pool = pool(128);
    let file = file(pool, 40);
    let mut space = space(pool);
    let request = MapRequest::anonymous(40 * PAGE, RX).of(Kind::FilePrivate(view(&file, 0)));
    let start = space.map(request.at(0x40_0000)).unwrap();
    space.fault(start + 20 * PAGE, Access::Execute).unwrap();
    assert_eq!(space.usage().resident, 8 * PAGE);
    for index in 0..40 {
        let present = space.pages.query(start + index * PAGE).is_some();
        assert_eq!(present, (16..24).contains(&index));
    }
    check(&space);
}

#[test]
fn a_shared_file_map_writes_the_file_and_announces_it() {
    let pool = pool(64);
    let file = file(pool, 2);
    file.pages.borrow_mut()[1] = None;
    let mut writer = space(pool);
    let mut reader = space(pool);
    let request = MapRequest::anonymous(2 * PAGE, RW).of(Kind::FileShared(view(&file, 0)));
    let at = writer.map(request.clone()).unwrap();
    let seen = reader.map(MapRequest { protection: READ, limit: RX, ..request }).unwrap();
    assert_eq!(byte(&mut reader, seen), Ok(1));
    assert_eq!(byte(&mut reader, seen + PAGE), Ok(0), "a hole");
    let before = file.writes_announced.get();
    assert_eq!(byte(&mut writer, at), Ok(1));
    assert_eq!(file.writes_announced.get(), before);
    poke(&mut writer, at, 7).unwrap();
    assert_eq!(file.writes_announced.get(), before + 1);
    poke(&mut writer, at + PAGE, 8).unwrap();
    assert_eq!((byte(&mut reader, seen), byte(&mut reader, seen + PAGE)), (Ok(7), Ok(8)));
    assert_eq!(reader.protect(seen, PAGE, RW), Err(MapError::Access));
    check(&writer);
    check(&reader);
}

#[test]
fn a_stack_grows_to_its_limit_and_keeps_its_gap() {
    let pool = pool(4096);
    let limits = SpaceLimits { stack_bytes: 4 << 20, ..SpaceLimits::default() };
    let mut space = Space::with_limits(pool, tables(pool), limits);
    let top = space.map_stack(2 * PAGE, RW).unwrap();
    assert_eq!(top, STACK_TOP);
    poke(&mut space, top - 100 * PAGE, 1).unwrap();
    assert_eq!(space.usage().stack, 100 * PAGE);
    poke(&mut space, top - (4 << 20), 1).unwrap();
    assert_eq!(poke(&mut space, top - (4 << 20) - 1, 1), Err(FaultKind::Unmapped));
    check(&space);

    let limits = SpaceLimits { stack_bytes: u64::MAX, ..limits };
    space.set_limits(limits);
    let below = top - (8 << 20);
    space.map(MapRequest::anonymous(PAGE, RW).at(below - PAGE)).unwrap();
    poke(&mut space, below + STACK_GUARD_BYTES, 1).unwrap();
    assert_eq!(poke(&mut space, below + STACK_GUARD_BYTES - 1, 1), Err(FaultKind::Unmapped));
    space.protect(below - PAGE, PAGE, NONE).unwrap();
    poke(&mut space, below, 1).unwrap();
    check(&space);
}

#[test]
fn without_frames_a_fault_reports_it_and_nothing_leaks() {
    let pool = pool(8);
    let free = pool.free_frames();
    let mut space = space(pool);
    let start = space.map(MapRequest { no_reserve: true, ..MapRequest::anonymous(64 * PAGE, RW) }).unwrap();
    let filled = (0..64).take_while(|page| poke(&mut space, start + page * PAGE, 1).is_ok()).count();
    assert_eq!(filled, free - 1);
    assert_eq!(poke(&mut space, start + 63 * PAGE, 1), Err(FaultKind::OutOfMemory));
    assert_eq!(byte(&mut space, start + 63 * PAGE), Ok(0), "the zero page needs no frame");
    check(&space);
    drop(space);
    assert_eq!(pool.free_frames(), free);
}

#[test]
fn a_debugger_pokes_into_text_without_changing_the_file() {
    let pool = pool(64);
    let file = file(pool, 1);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(PAGE, RX).of(Kind::FilePrivate(view(&file, 0)))).unwrap();
    assert_eq!(poke(&mut space, start, 0xCC), Err(FaultKind::Denied));
    space.poke_bytes(start, &[0xCC]).unwrap();
    assert_eq!(byte(&mut space, start), Ok(0xCC));
    let mut own = [0];
    file.page(0).unwrap().now().unwrap().read(0, &mut own);
    assert_eq!(own, [1]);
    assert_eq!(space.fault(start, Access::Write), Err(FaultKind::Denied));
    check(&space);
}

#[test]
fn the_vdso_is_shown_and_named() {
    let pool = pool(64);
    let page = pool.allocate_zeroed().unwrap();
    page.write(0, b"\x7fELF");
    let fixed = FixedPages::new("[vdso]", vec![page]);
    let mut space = space(pool);
    let kind = Kind::Special(View { backing: fixed, first_page: 0 });
    let start = space.map(MapRequest::anonymous(PAGE, RX).of(kind)).unwrap();
    assert_eq!(byte(&mut space, start), Ok(0x7f));
    let line = space.areas().next().unwrap();
    assert!(matches!(line.label, AreaLabel::Backing(backing) if backing.name() == b"[vdso]"));
    let grow =
        Remap { address: start, old_bytes: PAGE, new_bytes: 2 * PAGE, target: RemapTarget::Anywhere, keep_old: false };
    assert_eq!(space.remap(grow), Err(MapError::Fault));
}

#[test]
fn a_cut_file_takes_its_pages_back() {
    let pool = pool(64);
    let file = file(pool, 4);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(4 * PAGE, RW).of(Kind::FileShared(view(&file, 0)))).unwrap();
    assert_eq!(byte(&mut space, start + 3 * PAGE), Ok(4));
    file.pages.borrow_mut().truncate(2);
    let backing: Arc<dyn Backing> = file.clone();
    space.forget_backing(&backing, 2);
    assert_eq!(byte(&mut space, start + 3 * PAGE), Err(FaultKind::PastEndOfFile));
    assert_eq!(byte(&mut space, start + PAGE), Ok(2));
    check(&space);
}

#[test]
fn the_reserve_is_for_the_kernel() {
    let ram: &'static Ram = Box::leak(Box::new(Ram(KernelCell::new(vec![0; 16 * PAGE_BYTES]))));
    let pool: &'static FramePool =
        Box::leak(Box::new(FramePool::new(ram, vec![practice::frames(2..6), practice::frames(8..16)], 3)));
    let pages: Vec<Page> = core::iter::from_fn(|| pool.allocate_zeroed()).collect();
    assert_eq!((pages.len(), pool.free_frames(), pool.total_frames()), (8, 3, 12));
    assert!(pool.allocate().is_none());
    let kernel: Vec<Page> = core::iter::from_fn(|| pool.allocate_reserved().ok()).collect();
    assert_eq!(kernel.len(), 3);
    drop((pages, kernel));
    assert_eq!(pool.free_frames(), 11);
}

#[test]
fn frames_zeroed_ahead_are_used_and_counted() {
    let pool = pool(16);
    let free = pool.free_frames();
    let junk = pool.allocate().unwrap();
    junk.fill(0, PAGE_BYTES, 0x55);
    drop(junk);
    while pool.zero_one_ahead() {}
    assert_eq!(pool.free_frames(), free);
    let pages: Vec<Page> = core::iter::from_fn(|| pool.allocate_zeroed()).collect();
    assert_eq!(pages.len(), free);
    for page in &pages {
        let mut bytes = [1; PAGE_BYTES];
        page.read(0, &mut bytes);
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
    drop(pages);
    assert_eq!(pool.free_frames(), free);
}

#[test]
fn a_hole_in_a_file_leaves_private_copies_and_a_cut_does_not() {
    let pool = pool(64);
    let file = file(pool, 4);
    let identity = Backing::identity(&*file);
    let mut space = space(pool);
    let shared = space.map(MapRequest::anonymous(4 * PAGE, RW).of(Kind::FileShared(view(&file, 0)))).unwrap();
    let private = space.map(MapRequest::anonymous(3 * PAGE, RW).of(Kind::FilePrivate(view(&file, 1)))).unwrap();
    for page in 0..3 {
        assert_eq!(byte(&mut space, shared + page * PAGE), Ok(page as u8 + 1));
        assert!(space.fault(private + page * PAGE, Access::Write).is_ok());
    }
    let reader = space.map(MapRequest::anonymous(3 * PAGE, RW).of(Kind::FilePrivate(view(&file, 1)))).unwrap();
    assert!(space.fault(reader + PAGE, Access::Write).is_ok());
    assert_eq!([0, 1, 2].map(|page| byte(&mut space, reader + page * PAGE)), [2, 3, 4].map(Ok));
    let present = |space: &Space, address| space.translation().query(VirtAddr(address)).is_some();
    space.forget_file(identity, 1..2, Forget::FilesOwn);
    assert_eq!([0, 1, 2].map(|page| present(&space, shared + page * PAGE)), [true, false, true]);
    assert_eq!([0, 1, 2].map(|page| present(&space, private + page * PAGE)), [true, true, true]);
    assert_eq!(
        [0, 1, 2].map(|page| present(&space, reader + page * PAGE)),
        [false, true, true],
        "it shows no page that has gone"
    );
    space.forget_file(identity, 2..u64::MAX, Forget::AllCopies);
    assert_eq!([0, 1, 2].map(|page| present(&space, shared + page * PAGE)), [true, false, false]);
    assert_eq!([0, 1, 2].map(|page| present(&space, private + page * PAGE)), [true, false, false]);
    check(&space);
}
