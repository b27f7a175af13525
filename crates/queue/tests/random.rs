//! Every queue against the standard library's on random operations. `QUEUE_SEED` repeats one run.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::rc::Rc;

use means::Random;
use queue::buffered::{Filler, PARTS};
use queue::{Full, Get, Put, dedicated, mpmc, mpsc, multi, spmc, spsc};

fn seeds() -> Vec<u64> {
    match std::env::var("QUEUE_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=40).collect(),
    }
}

/// An item whose loss or doubling the count of `alive` shows.
struct Item(u64, #[expect(dead_code, reason = "only counted")] Rc<()>);

fn race(name: &str, seed: u64, capacity: usize, mut put: impl Put<Item>, mut get: impl Get<Item>) {
    let alive = Rc::new(());
    let mut random = Random::new(seed);
    let mut model = VecDeque::new();
    for step in 0..2000 {
        // Phases of mostly putting and mostly taking, so that the queue gets full and empty.
        if random.below(8) < 2 + 4 * (step / 100 % 2) {
            let fits = model.len() < capacity;
            match put.put(Item(step, alive.clone())) {
                Ok(()) => model.push_back(step),
                Err(Full(Item(number, _))) => assert_eq!(number, step, "{name} gave another item back, seed {seed}"),
            }
            assert_eq!(fits, model.back() == Some(&step), "{name} at {} of {capacity}, seed {seed}", model.len());
        } else {
            assert_eq!(get.get().map(|item| item.0), model.pop_front(), "{name}, step {step}, seed {seed}");
        }
        assert_eq!(Rc::strong_count(&alive), model.len() + 1, "{name} lost or kept an item, seed {seed}");
    }
    drop((put, get));
    assert_eq!(Rc::strong_count(&alive), 1, "{name} kept items after its end, seed {seed}");
}

#[test]
fn queues_do_as_the_standard_one() {
    for seed in seeds() {
        println!("seed {seed}");
        for capacity in [2, 8, 64] {
            let (put, get) = spsc::pair(capacity);
            race("spsc", seed, capacity, put, get);
            let (put, get) = mpsc::pair(capacity);
            race("mpsc", seed, capacity, put, get);
            let (put, get) = spmc::pair(capacity);
            race("spmc", seed, capacity, put, get);
            let (put, get) = mpmc::pair(capacity);
            race("mpmc", seed, capacity, put, get);
            let (put, get) = multi::pair(capacity);
            race("multi", seed, capacity, put, get);
            let (put, get) = dedicated::pair(capacity);
            race("dedicated", seed, capacity, put, get);
        }
    }
}

#[test]
fn many_items_enter_whole_or_not_at_all() {
    for seed in seeds() {
        let mut random = Random::new(seed);
        let (put, mut get) = multi::pair(16);
        let mut model = VecDeque::new();
        for step in 0..3000u64 {
            let room = 16 - model.len();
            let wanted = [5, 3, 0, 0][random.below(4) as usize];
            let fits = wanted <= room;
            match wanted {
                5 => assert_eq!(put.put_all([step; 5]).is_ok(), fits, "seed {seed}"),
                3 => assert_eq!(put.put_all([step; 3]).is_ok(), fits, "seed {seed}"),
                _ => assert_eq!(get.get(), model.pop_front(), "seed {seed}"),
            }
            if fits {
                model.extend((0..wanted).map(|_| step));
            }
        }
        assert_eq!(put.put_all([0; 17]), Err(Full([0; 17])), "more than the capacity never fits");
    }
}

#[test]
fn a_buffered_queue_packs_eight_parts_and_keeps_the_last_when_full() {
    let (put, mut get) = spsc::pair(1);
    let mut filler = Filler::new(put);
    for part in 0..PARTS as u32 {
        assert!(get.get().is_none());
        filler.put(part).unwrap();
    }
    for part in 8..15 {
        filler.put(part).unwrap();
    }
    assert_eq!(filler.put(99), Err(Full(99)));
    assert_eq!(get.get(), Some([0, 1, 2, 3, 4, 5, 6, 7]));
    filler.put(15).unwrap();
    assert_eq!(get.get(), Some([8, 9, 10, 11, 12, 13, 14, 15]));
    filler.put(1).unwrap();
    filler.reset();
    (20..28).for_each(|part| filler.put(part).unwrap());
    assert_eq!(get.get(), Some([20, 21, 22, 23, 24, 25, 26, 27]));
}

#[test]
fn slices_are_looked_at_before_they_are_taken() {
    let (mut put, mut get) = spsc::pair(8);
    assert_eq!(put.put_slice(b"abcdef"), 6);
    let mut look = [0; 16];
    assert_eq!((get.peek(&mut look[..4]), &look[..4]), (4, &b"abcd"[..]));
    assert_eq!(get.skip(5), 5);
    assert_eq!(put.put_slice(b"ghijklmnop"), 7);
    assert_eq!((get.peek(&mut look), &look[..8]), (8, &b"fghijklm"[..]));
    assert_eq!((get.skip(99), get.get()), (8, None));
}
