//! Placement, splitting, merging, limits, the break.

use super::*;

fn lines(space: &Space) -> Vec<(u64, u64, Protection)> {
    space.areas().map(|area| (area.start, area.end, area.protection)).collect()
}

#[test]
fn maps_are_placed_downwards_and_merge() {
    let pool = pool(64);
    let mut space = space(pool);
    let first = space.map(MapRequest::anonymous(PAGE, RW)).unwrap();
    assert_eq!(first + PAGE, 0x7fff_f7ff_f000, "128 MiB below the top, as Linux without randomization");
    let second = space.map(MapRequest::anonymous(2 * PAGE + 1, RW)).unwrap();
    assert_eq!(second + 3 * PAGE, first);
    assert_eq!(lines(&space), [(second, first + PAGE, RW)]);
    space.unmap(second + PAGE, PAGE).unwrap();
    assert_eq!(space.map(MapRequest::anonymous(PAGE, READ)), Ok(second + PAGE), "the highest gap that fits");
    assert_eq!(space.map(MapRequest::anonymous(2 * PAGE, RW)), Ok(second - 2 * PAGE));
    check(&space);
}

#[test]
fn a_remembered_search_finds_what_a_full_one_finds() {
    let pool = pool(64);
    let mut space = space(pool);
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut mapped = Vec::new();
    for _ in 0..3000 {
        let bytes = (1 + random(6)) * PAGE;
        let remembered = space.find_free(0, bytes);
        let known = space.search.replace(place::Search::new());
        assert_eq!(space.find_free(0, bytes), remembered, "{bytes:#x} bytes");
        space.search.set(known);
        if random(5) < 3 || mapped.is_empty() {
            let protection = if random(2) == 0 { RW } else { READ };
            mapped.push((space.map(MapRequest::anonymous(bytes, protection)).unwrap(), bytes));
        } else {
            let (start, bytes) = mapped.swap_remove(random(mapped.len() as u64) as usize);
            space.unmap(start, bytes).unwrap();
        }
    }
}

#[test]
fn hints_are_taken_when_free() {
    let pool = pool(64);
    let mut space = space(pool);
    let hint = |address| MapRequest { address, ..MapRequest::anonymous(PAGE, RW) };
    assert_eq!(space.map(hint(0x5000_0123)), Ok(0x5000_0000));
    assert_ne!(space.map(hint(0x5000_0000)), Ok(0x5000_0000));
    assert_eq!(space.map(hint(1)), Ok(LOWEST_ADDRESS));
    assert!(space.map(hint(USER_LIMIT - PAGE)).is_ok());
    assert!(space.map(hint(u64::MAX)).unwrap() < USER_LIMIT);
    check(&space);
}

#[test]
fn fixed_maps_replace_or_refuse() {
    let pool = pool(64);
    let mut space = space(pool);
    let request = MapRequest::anonymous(4 * PAGE, RW);
    let start = space.map(request.clone().at(0x10_0000)).unwrap();
    poke(&mut space, start + PAGE, 9).unwrap();
    assert_eq!(space.map(MapRequest::anonymous(PAGE, READ).at(start + PAGE)), Ok(start + PAGE));
    assert_eq!(byte(&mut space, start + PAGE), Ok(0));
    assert_eq!(lines(&space).len(), 3);
    let careful = MapRequest { placement: Placement::FixedIfFree, ..request.clone().at(start + 3 * PAGE) };
    assert_eq!(space.map(careful), Err(MapError::Exists));
    assert_eq!(space.map(request.clone().at(start + 1)), Err(MapError::Invalid));
    assert_eq!(space.map(request.clone().at(0)), Err(MapError::NotPermitted));
    assert_eq!(space.map(request.clone().at(USER_LIMIT - PAGE)), Err(MapError::NoMemory));
    assert_eq!(space.map(request.clone().at(u64::MAX - 4095)), Err(MapError::NoMemory));
    assert_eq!(space.map(MapRequest::anonymous(0, RW)), Err(MapError::Invalid));
    assert_eq!(space.map(MapRequest::anonymous(u64::MAX, RW)), Err(MapError::NoMemory));
    assert_eq!(
        space.map(MapRequest { no_reserve: true, ..MapRequest::anonymous(1 << 60, RW) }),
        Err(MapError::NoMemory)
    );
    check(&space);
}

#[test]
fn unmapping_splits_and_checks() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(5 * PAGE, RW).at(0x10_0000)).unwrap();
    space.unmap(start + 2 * PAGE, 1).unwrap();
    assert_eq!(lines(&space), [(start, start + 2 * PAGE, RW), (start + 3 * PAGE, start + 5 * PAGE, RW)]);
    assert_eq!(space.unmap(start + 1, PAGE), Err(MapError::Invalid));
    assert_eq!(space.unmap(start, 0), Err(MapError::Invalid));
    assert_eq!(space.unmap(start, u64::MAX), Err(MapError::Invalid));
    assert_eq!(space.unmap(u64::MAX - 4095, PAGE), Err(MapError::Invalid));
    assert_eq!(space.unmap(0x7000_0000, PAGE), Ok(()), "nothing there is fine");
    space.unmap(0, USER_LIMIT).unwrap();
    assert_eq!(lines(&space).len(), 0);
    check(&space);
}

#[test]
fn protection_splits_merges_and_stops_at_gaps() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(6 * PAGE, RW).at(0x10_0000)).unwrap();
    poke(&mut space, start + PAGE, 3).unwrap();
    space.protect(start + PAGE, 2 * PAGE, READ).unwrap();
    assert_eq!(lines(&space).len(), 3);
    assert_eq!(poke(&mut space, start + PAGE, 4), Err(FaultKind::Denied));
    assert_eq!(byte(&mut space, start + PAGE), Ok(3));
    check(&space);
    space.protect(start + PAGE, PAGE, NONE).unwrap();
    assert_eq!(byte(&mut space, start + PAGE), Err(FaultKind::Denied));
    check(&space);
    space.protect(start, 6 * PAGE, RW).unwrap();
    assert_eq!(lines(&space).len(), 1);
    assert_eq!(byte(&mut space, start + PAGE), Ok(3), "a guard page keeps its content");
    space.unmap(start + 3 * PAGE, PAGE).unwrap();
    assert_eq!(space.protect(start, 6 * PAGE, READ), Err(MapError::NoMemory));
    assert_eq!(lines(&space), [(start, start + 3 * PAGE, READ), (start + 4 * PAGE, start + 6 * PAGE, RW)]);
    assert_eq!(space.protect(start + 1, PAGE, READ), Err(MapError::Invalid));
    assert_eq!(space.protect(start, 0, READ), Ok(()));
    assert_eq!(space.protect(start, u64::MAX, READ), Err(MapError::NoMemory));
    check(&space);
}

#[test]
fn the_break_moves_within_its_limits() {
    let pool = pool(64);
    let mut space = space(pool);
    assert_eq!(space.brk(0), 0);
    assert_eq!(space.brk(0x1234_5000), 0, "no program yet");
    let start = 0x60_0000;
    space.set_break_start(start, 0);
    assert_eq!(space.brk(0), start);
    assert_eq!(space.brk(start + 100), start + 100);
    poke(&mut space, start + 99, 1).unwrap();
    assert_eq!(space.brk(start + 3 * PAGE), start + 3 * PAGE);
    assert_eq!(space.areas().count(), 1);
    assert!(matches!(space.areas().next().unwrap().label, AreaLabel::Heap));
    assert_eq!(space.brk(start + PAGE + 1), start + PAGE + 1);
    assert_eq!(space.areas().next().unwrap().end, start + 2 * PAGE);
    assert_eq!(space.brk(start - 1), start + PAGE + 1);
    assert_eq!(space.brk(u64::MAX), start + PAGE + 1);
    space.map(MapRequest::anonymous(PAGE, RW).at(start + 4 * PAGE)).unwrap();
    assert_eq!(space.brk(start + 3 * PAGE), start + 3 * PAGE);
    assert_eq!(space.brk(start + 4 * PAGE), start + 3 * PAGE, "one page stays free");
    space.set_limits(SpaceLimits { data_bytes: PAGE, ..space.limits() });
    assert_eq!(space.brk(start + PAGE), start + PAGE);
    assert_eq!(space.brk(start + 2 * PAGE), start + PAGE);
    assert_eq!(space.brk(start), start);
    check(&space);
}

#[test]
fn limits_and_overcommit_refuse() {
    let pool = pool(64);
    let mut space = space(pool);
    assert_eq!(space.map(MapRequest::anonymous(65 * PAGE, RW)), Err(MapError::NoMemory));
    assert!(space.map(MapRequest { no_reserve: true, ..MapRequest::anonymous(65 * PAGE, RW) }).is_ok());
    let huge = space.map(MapRequest::anonymous(1 << 40, NONE)).unwrap();
    assert_eq!(space.protect(huge, 1 << 40, RW), Err(MapError::NoMemory));
    space.unmap(0, USER_LIMIT).unwrap();
    space.set_limits(SpaceLimits { address_space_bytes: 10 * PAGE, data_bytes: 4 * PAGE, ..space.limits() });
    assert_eq!(space.map(MapRequest::anonymous(5 * PAGE, RW)), Err(MapError::NoMemory));
    let start = space.map(MapRequest::anonymous(10 * PAGE, READ)).unwrap();
    assert_eq!(space.map(MapRequest::anonymous(PAGE, READ)), Err(MapError::NoMemory));
    assert!(space.map(MapRequest::anonymous(PAGE, READ).at(start)).is_ok(), "replacing needs no room");
    assert_eq!(space.protect(start, 5 * PAGE, RW), Err(MapError::NoMemory));
    assert_eq!(space.protect(start, 4 * PAGE, RW), Ok(()));
    check(&space);
}

#[test]
fn advice_drops_pages_and_reports_gaps() {
    let pool = pool(64);
    let mut space = space(pool);
    let start = space.map(MapRequest::anonymous(4 * PAGE, RW).at(0x10_0000)).unwrap();
    poke(&mut space, start, 1).unwrap();
    poke(&mut space, start + 3 * PAGE, 1).unwrap();
    space.unmap(start + PAGE, PAGE).unwrap();
    assert_eq!(space.advise(start, 4 * PAGE, Advice::DontNeed), Err(MapError::NoMemory));
    assert_eq!((byte(&mut space, start), byte(&mut space, start + 3 * PAGE)), (Ok(0), Ok(0)));
    assert_eq!(space.advise(start + 1, PAGE, Advice::Nothing), Err(MapError::Invalid));
    assert_eq!(space.advise(start, 0, Advice::Nothing), Ok(()));
    assert_eq!(populate(&mut space, start, PAGE, Some(Access::Write)), Ok(()));
    assert_eq!(space.check_mapped(start, 4 * PAGE), Err(MapError::NoMemory));
    assert_eq!(space.check_mapped(start + 2 * PAGE, 2 * PAGE), Ok(()));
    assert_eq!(space.lock(start + 2 * PAGE + 5, 10), Ok(()));
    assert_eq!(populate(&mut space, start + 2 * PAGE, PAGE, None), Ok(()));
    assert_eq!(space.is_in_core(start + 2 * PAGE), Ok(true));
    assert_eq!(space.is_in_core(start + PAGE), Err(MapError::NoMemory));
    check(&space);
}

#[test]
fn file_offsets_stay_in_range() {
    let pool = pool(64);
    let file = file(pool, 1);
    let mut space = space(pool);
    let at = |first_page| MapRequest::anonymous(2 * PAGE, READ).of(Kind::FileShared(view(&file, first_page)));
    assert_eq!(space.map(at(u64::MAX)), Err(MapError::Overflow));
    assert_eq!(space.map(at(1 << 51)), Err(MapError::Overflow));
    let start = space.map(at((1 << 51) - 3)).unwrap();
    assert_eq!(byte(&mut space, start), Err(FaultKind::PastEndOfFile));
    let grow = Remap {
        address: start,
        old_bytes: 2 * PAGE,
        new_bytes: 4 * PAGE,
        target: RemapTarget::Anywhere,
        keep_old: false,
    };
    assert_eq!(space.remap(grow), Err(MapError::Invalid));
    assert_eq!(space.areas().next().unwrap().offset_bytes, ((1 << 51) - 3) * PAGE);
}

#[test]
fn a_stacks_rights_change_from_its_start() {
    let pool = pool(64);
    let mut space = space(pool);
    let top = space.map_stack(8 * PAGE, RW).unwrap();
    let all = Protection { execute: true, ..RW };
    assert_eq!(space.protect_from_stack_start(top - PAGE, PAGE, all), Ok(()));
    assert_eq!(lines(&space), [(top - 8 * PAGE, top, all)]);
    poke(&mut space, top - 9 * PAGE, 1).unwrap();
    assert_eq!(space.fault(top - 9 * PAGE, Access::Execute), Ok(Resolved::Present));
    let other = space.map(MapRequest::anonymous(PAGE, RW)).unwrap();
    assert_eq!(space.protect_from_stack_start(other, PAGE, all), Err(MapError::Invalid));
    check(&space);
}

/// All parts, as who calls the kernel has them supplied.
fn populate(space: &mut Space, start: u64, bytes: u64, access: Option<Access>) -> Result<(), FaultKind> {
    let end = space.populated_at_most(start, start + bytes);
    let mut next = Some(start);
    while let Some(from) = next.filter(|from| *from < end) {
        next = space.populate_some(from..end, access)?;
    }
    Ok(())
}

#[test]
fn populating_more_than_memory_ends() {
    let pool = pool(64);
    let mut space = space(pool);
    let request = MapRequest { populate: true, no_reserve: true, ..MapRequest::anonymous(1 << 40, RW) };
    let start = space.map(request).unwrap();
    assert_eq!(populate(&mut space, start, 1 << 40, None), Err(FaultKind::OutOfMemory));
    assert_eq!(space.fault(start + (1 << 30), Access::Write), Err(FaultKind::OutOfMemory));
    space.unmap(start, 1 << 40).unwrap();
    let start = space.map(MapRequest::anonymous(1 << 40, READ)).unwrap();
    assert_eq!(populate(&mut space, start, 1 << 40, Some(Access::Read)), Ok(()));
    check(&space);
}

#[test]
fn a_map_never_lands_in_a_stacks_gap() {
    let pool = pool(64);
    let mut space = space(pool);
    let stack = 0x7fff_f000_0000;
    space.map(MapRequest::anonymous(PAGE, RW).at(stack).of(Kind::Stack)).unwrap();
    let hint = MapRequest { address: stack - PAGE, ..MapRequest::anonymous(PAGE, RW) };
    assert_ne!(space.map(hint), Ok(stack - PAGE));
    let fill = MapRequest { no_reserve: true, ..MapRequest::anonymous(0x7ff_e000 - PAGE, RW) };
    space.map(fill).unwrap();
    let next = space.map(MapRequest::anonymous(PAGE, READ)).unwrap();
    assert!(next + PAGE <= stack - STACK_GUARD_BYTES || next > stack, "{next:#x}");
    check(&space);
}
