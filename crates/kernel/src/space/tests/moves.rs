//! mremap.

use super::*;

fn remap(address: u64, old_bytes: u64, new_bytes: u64, target: RemapTarget) -> Remap {
    Remap { address, old_bytes, new_bytes, target, keep_old: false }
}

#[test]
fn ranges_grow_in_place_shrink_and_move() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(2 * PAGE, RW).at(0x10_0000)).unwrap();
    poke(&mut space, start + PAGE, 8).unwrap();
    assert_eq!(space.remap(remap(start, 2 * PAGE, 4 * PAGE, RemapTarget::InPlace)), Ok(start));
    assert_eq!(space.areas().next().unwrap().end, start + 4 * PAGE);
    assert_eq!(space.remap(remap(start, 4 * PAGE, 2 * PAGE, RemapTarget::InPlace)), Ok(start));
    space.map(MapRequest::anonymous(PAGE, READ).at(start + 2 * PAGE)).unwrap();
    assert_eq!(space.remap(remap(start, 2 * PAGE, 3 * PAGE, RemapTarget::InPlace)), Err(MapError::NoMemory));
    let free = pool.free_frames();
    let moved = space.remap(remap(start, 2 * PAGE, 3 * PAGE, RemapTarget::Anywhere)).unwrap();
    assert_eq!(free - pool.free_frames(), 1, "a table, no copies");
    assert_eq!(byte(&mut space, moved + PAGE), Ok(8));
    assert_eq!(byte(&mut space, start + PAGE), Err(FaultKind::Unmapped));
    check(&space);
    let fixed = start + 2 * PAGE;
    assert_eq!(space.remap(remap(moved + PAGE, PAGE, PAGE, RemapTarget::Fixed(fixed))), Ok(fixed));
    assert_eq!(byte(&mut space, fixed), Ok(8));
    assert_eq!(byte(&mut space, moved + PAGE), Err(FaultKind::Unmapped));
    assert_eq!(byte(&mut space, moved + 2 * PAGE), Ok(0));
    check(&space);
}

#[test]
fn senseless_moves_are_refused() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(2 * PAGE, RW).at(0x10_0000)).unwrap();
    let anywhere = RemapTarget::Anywhere;
    assert_eq!(space.remap(remap(start + 1, PAGE, PAGE, anywhere)), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start, PAGE, 0, anywhere)), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start - PAGE, PAGE, PAGE, anywhere)), Err(MapError::Fault));
    assert_eq!(space.remap(remap(start, 3 * PAGE, 4 * PAGE, anywhere)), Err(MapError::Fault));
    assert_eq!(space.remap(remap(start, 0, PAGE, anywhere)), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start, PAGE, PAGE, RemapTarget::Fixed(start))), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start, PAGE, PAGE, RemapTarget::Fixed(start + 1))), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start, PAGE, PAGE, RemapTarget::Fixed(USER_LIMIT))), Err(MapError::Invalid));
    assert_eq!(space.remap(remap(start, PAGE, u64::MAX - PAGE, anywhere)), Err(MapError::NoMemory));
    assert_eq!(space.remap(remap(start, u64::MAX - PAGE, PAGE, anywhere)), Err(MapError::Invalid));
    check(&space);
}

#[test]
fn an_old_area_can_stay_empty_and_shared_pages_can_be_mapped_twice() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(PAGE, RW).at(0x10_0000)).unwrap();
    poke(&mut space, start, 4).unwrap();
    let kept = Remap { keep_old: true, ..remap(start, PAGE, PAGE, RemapTarget::Anywhere) };
    let moved = space.remap(kept).unwrap();
    assert_eq!((byte(&mut space, start), byte(&mut space, moved)), (Ok(0), Ok(4)));

    let file = file(pool, 2);
    let shared = space.map(MapRequest::anonymous(2 * PAGE, RW).of(Kind::FileShared(view(&file, 0)))).unwrap();
    let second = space.remap(remap(shared, 0, 2 * PAGE, RemapTarget::Anywhere)).unwrap();
    poke(&mut space, shared + PAGE, 77).unwrap();
    assert_eq!(byte(&mut space, second + PAGE), Ok(77));
    check(&space);
}

#[test]
fn a_move_without_frames_for_tables_moves_nothing() {
    let pool = pool(32);
    let mut space = space(pool);
    let start = 0x40_0000 - PAGE;
    space.map(MapRequest::anonymous(2 * PAGE, RW).at(start)).unwrap();
    poke(&mut space, start, 1).unwrap();
    poke(&mut space, start + PAGE, 2).unwrap();
    let held: Vec<Page> = core::iter::from_fn(|| (pool.free_frames() > 1).then(|| pool.allocate()).flatten()).collect();
    let target = RemapTarget::Fixed(0x4000_0000 - PAGE);
    assert_eq!(space.remap(remap(start, 2 * PAGE, 2 * PAGE, target)), Err(MapError::NoMemory));
    assert_eq!((byte(&mut space, start), byte(&mut space, start + PAGE)), (Ok(1), Ok(2)));
    check(&space);
    drop(held);
}
