//! The pool over a long time: what random sizes leave behind has a bound. A failure prints its seed.

use std::ptr::NonNull;

use means::Random;
use synthmem::pool::Pool;

const LIVE: usize = 3000;
const ROUNDS: usize = 40;
const STEPS: usize = 20_000;

/// Sizes as programs have them: mostly small, some up to 200,000 bytes; each round prefers others, so that what fitted the
/// last round's holes does not fit this one's.
fn size(random: &mut Random, round: usize) -> usize {
    match random.index(100) {
        0 => random.index(200_000),
        1..=9 => random.index(10_000),
        _ => 1 + random.index(16 << (round % 7)),
    }
}

#[test]
fn random_sizes_do_not_make_it_grow_without_bound() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut pool = Pool::new().unwrap();
        let mut blocks: Vec<Option<(NonNull<u8>, usize)>> = vec![None; LIVE];
        let (mut live, mut most_live) = (0, 0);
        let mut spreads = Vec::new();
        for round in 0..ROUNDS {
            for _ in 0..STEPS {
                let place = &mut blocks[random.index(LIVE)];
                if let Some((block, bytes)) = place.take() {
                    // SAFETY: the pool gave it, and it is freed once.
                    assert!(unsafe { pool.free(block) }, "seed {seed}: not known");
                    live -= bytes;
                }
                let bytes = size(&mut random, round);
                *place = Some((pool.allocate(bytes).unwrap(), bytes));
                live += bytes;
                most_live = most_live.max(live);
            }
            spreads.push(pool.fill().1);
        }
        let most = *spreads.iter().max().unwrap();
        println!("seed {seed}: {most_live} bytes live at most, heap {most}, by round {spreads:?}");
        // Headers and rounding are 24 bytes a block at most.
        let needed = most_live + LIVE * 24;
        assert!(most < 2 * needed, "seed {seed}: {most} bytes for {needed}");
        let (early, late) = spreads.split_at(ROUNDS / 2);
        assert!(late.iter().max() < early.iter().max().map(|most| most + most / 4).as_ref(), "seed {seed}: it grows");
        for (block, _) in blocks.into_iter().flatten() {
            // SAFETY: as above.
            assert!(unsafe { pool.free(block) });
        }
        assert_eq!(pool.fill(), (0, 0), "seed {seed}: all that was freed came together again");
    }
}

#[test]
fn a_block_that_waits_is_not_freed_again() {
    let mut pool = Pool::new().unwrap();
    let block = pool.allocate(100).unwrap();
    // SAFETY: nobody uses it; the second and third are refused.
    assert_eq!([(); 3].map(|()| unsafe { pool.free(block) }), [true, false, false]);
    assert_eq!(pool.allocate(100), Some(block), "the block that was freed last comes first");
    assert!(pool.usable_bytes(block).is_some_and(|bytes| bytes >= 100));
}
