//! Advisory locks.

use super::*;

fn lock(owner: u64, kind: LockKind, first: u64, last: u64) -> RecordLock {
    RecordLock { owner, process: owner as i32, kind, first, last }
}

#[test]
fn exclusive_records_keep_others_out_of_their_bytes_only() {
    let mut locks = NodeLocks::default();
    let held = lock(1, LockKind::Exclusive, 10, 19);
    locks.lock(held).unwrap();
    assert_eq!(locks.lock(lock(2, LockKind::Shared, 19, 30)), Err(LockRefused::Conflict(held)));
    locks.lock(lock(2, LockKind::Exclusive, 20, 30)).unwrap();
    assert_eq!(locks.conflict(&lock(3, LockKind::Shared, 0, 9)), None);
    assert_eq!(locks.conflict(&lock(1, LockKind::Exclusive, 0, 19)), None);
}

#[test]
fn unlocking_the_middle_splits_and_locking_it_again_joins() {
    let mut locks = NodeLocks::default();
    locks.lock(lock(1, LockKind::Shared, 0, 99)).unwrap();
    locks.unlock(1, 40, 59).unwrap();
    let probe = |locks: &NodeLocks, at| locks.conflict(&lock(2, LockKind::Exclusive, at, at));
    assert_eq!(probe(&locks, 39).map(|held| (held.first, held.last)), Some((0, 39)));
    assert_eq!(probe(&locks, 50), None);
    assert_eq!(probe(&locks, 60).map(|held| (held.first, held.last)), Some((60, 99)));
    locks.lock(lock(1, LockKind::Shared, 40, 59)).unwrap();
    assert_eq!(probe(&locks, 50).map(|held| (held.first, held.last)), Some((0, 99)));
    locks.lock(lock(1, LockKind::Exclusive, 10, 20)).unwrap();
    assert_eq!(locks.conflict(&lock(2, LockKind::Shared, 0, 50)).map(|held| held.first), Some(10));
    assert!(locks.unlock_all(1));
    assert_eq!(probe(&locks, 50), None);
}

#[test]
fn whole_file_locks_are_many_shared_or_one_exclusive() {
    let mut locks = NodeLocks::default();
    locks.lock_whole(1, LockKind::Shared).unwrap();
    locks.lock_whole(2, LockKind::Shared).unwrap();
    assert_eq!(locks.lock_whole(3, LockKind::Exclusive), Err(Errno::EAGAIN));
    assert!(locks.unlock_whole(1));
    locks.lock_whole(2, LockKind::Exclusive).unwrap();
    assert_eq!(locks.lock_whole(1, LockKind::Shared), Err(Errno::EAGAIN));
    assert!(!locks.unlock_whole(1));
}

#[test]
fn records_agree_with_a_table_of_bytes() {
    let mut seed = 0x1234_5678_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut locks = NodeLocks::default();
    let mut model: Vec<[Option<LockKind>; 3]> = vec![[None; 3]; 32];
    for step in 0..20_000 {
        let owner = next(3);
        let (a, b) = (next(32), next(32));
        let (first, last) = (a.min(b), a.max(b));
        let bytes = first as usize..=last as usize;
        let kind = if next(2) == 0 { LockKind::Shared } else { LockKind::Exclusive };
        if next(3) == 0 {
            locks.unlock(owner, first, last).unwrap();
            model[bytes].iter_mut().for_each(|byte| byte[owner as usize] = None);
            continue;
        }
        let blocked = model[bytes.clone()].iter().any(|byte| {
            (0..3)
                .filter(|other| *other != owner as usize)
                .any(|other| byte[other].is_some_and(|held| held == LockKind::Exclusive || kind == LockKind::Exclusive))
        });
        let result = locks.lock(lock(owner, kind, first, last));
        assert_eq!(result.is_err(), blocked, "step {step}");
        if !blocked {
            model[bytes].iter_mut().for_each(|byte| byte[owner as usize] = Some(kind));
        }
    }
}
