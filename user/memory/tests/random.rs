//! Random operations on both kinds of heap against a model. A failure prints its seed.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use std::collections::BTreeMap;
use std::ptr::NonNull;

use means::Random;
use synthmem::{CodeNodes, DataNodes, Heap, Nodes, Routines};

const HEAP_BYTES: usize = 8 << 20;

/// What a heap must do, whatever its nodes are.
fn behave<N: Nodes>(heap: &mut Heap<N>, seed: u64, size: fn(&mut Random) -> usize) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut blocks: BTreeMap<usize, (usize, u8)> = BTreeMap::new();
    let mut most_bytes = 0;
    for step in 0..20_000 {
        if blocks.len() < 400 && random.index(2) == 0 {
            let (bytes, mark) = (size(&mut random), step as u8);
            let at = heap.allocate(bytes).unwrap().as_ptr() as usize;
            assert_eq!(at % 16, 0);
            let before = blocks.range(..at).next_back();
            assert!(before.is_none_or(|(start, (bytes, _))| start + bytes <= at), "seed {seed}: overlap");
            assert!(blocks.range(at..).next().is_none_or(|(start, _)| at + bytes <= *start), "seed {seed}: overlap");
            // SAFETY: the heap gave so many bytes.
            unsafe { std::ptr::write_bytes(at as *mut u8, mark, bytes) };
            blocks.insert(at, (bytes, mark));
            most_bytes = most_bytes.max(blocks.values().map(|(bytes, _)| bytes + 32).sum());
        } else if let Some((at, (bytes, mark))) =
            blocks.iter().nth(random.index(blocks.len().max(1))).map(|(at, block)| (*at, *block))
        {
            // SAFETY: 1. the block is ours and so large. 2. It is freed once.
            unsafe {
                let held = std::slice::from_raw_parts(at as *const u8, bytes);
                assert!(held.iter().all(|byte| *byte == mark), "seed {seed}: someone else wrote here");
                assert!(heap.free(NonNull::new(at as *mut u8).unwrap()), "seed {seed}: not known");
            }
            blocks.remove(&at);
        }
        if step % 500 == 0 {
            let measure = heap.measure();
            assert_eq!(measure.used + measure.free, heap.spread(), "seed {seed}: bytes are lost");
            assert!(measure.depth <= 64, "seed {seed}: {measure:?}");
        }
    }
    // A larger bound than any run needs, and far below what a heap without joining takes.
    assert!(heap.spread() == 0 || most_bytes * 3 > heap.measure().used + heap.measure().free, "seed {seed}");
    for at in blocks.into_keys() {
        // SAFETY: ours, freed once.
        assert!(unsafe { heap.free(NonNull::new(at as *mut u8).unwrap()) }, "seed {seed}");
    }
    assert_eq!((heap.spread(), heap.measure().free), (0, 0), "seed {seed}: all that was freed came together again");
}

fn mixed(random: &mut Random) -> usize {
    let bytes = 1 << random.index(12);
    random.index(bytes) + usize::from(random.index(50) > 0)
}

#[test]
fn words_keep_a_heap() {
    for seed in 1..8 {
        behave::<DataNodes>(&mut Heap::new(HEAP_BYTES, seed as u32).unwrap(), seed, mixed);
    }
}

#[test]
fn code_keeps_a_heap() {
    for seed in 1..8 {
        behave::<CodeNodes>(&mut Heap::of_code(HEAP_BYTES, seed as u32).unwrap(), seed, mixed);
    }
}

/// Without an order among equals the tree would be a list.
#[test]
fn blocks_of_one_size_do_not_make_a_list() {
    let mut heap = Heap::of_code(HEAP_BYTES, 1).unwrap();
    let blocks: Vec<_> = (0..4000).map(|_| heap.allocate(48).unwrap()).collect();
    // SAFETY: each is freed once.
    blocks.iter().step_by(2).for_each(|block| assert!(unsafe { heap.free(*block) }));
    assert!(heap.measure().depth < 50, "{:?}", heap.measure());
    behave(&mut Heap::of_code(HEAP_BYTES, 9).unwrap(), 9, |_| 48);
}

#[test]
fn a_full_heap_says_so_and_recovers() {
    let mut heap = Heap::new(1 << 16, 1).unwrap();
    assert!(heap.allocate(1 << 17).is_none());
    assert!(heap.allocate(usize::MAX).is_none());
    let blocks: Vec<_> = std::iter::from_fn(|| heap.allocate(1000)).collect();
    assert!(blocks.len() > 60);
    // SAFETY: each is freed once.
    blocks.iter().rev().for_each(|block| assert!(unsafe { heap.free(*block) }));
    assert!(heap.allocate(60_000).is_some());
}

#[test]
fn copies_copy_their_length_and_no_more() {
    let copies: Vec<_> = (0..600).chain([4096, 5000]).flat_map(|bytes| [(bytes, false), (bytes, true)]).collect();
    let mut routines = Routines::new(1 << 20).unwrap();
    let (copiers, _) = routines.write(&copies, &[]).unwrap();
    #[repr(align(16))]
    struct Aligned([u8; 6000]);
    let mut from = Aligned([0; 6000]);
    from.0.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 + at / 256) as u8 | 1);
    for (copier, (bytes, aligned)) in copiers.iter().zip(&copies) {
        let mut to = Aligned([0; 6000]);
        let start = if *aligned { 16 } else { 3 };
        // SAFETY: both are large enough, and aligned where it says so.
        unsafe { copier.copy(to.0[start..].as_mut_ptr(), from.0[start - start % 16..].as_ptr()) };
        let source = start - start % 16;
        assert_eq!(to.0[start..start + bytes], from.0[source..source + bytes], "{bytes}");
        assert!(to.0[..start].iter().chain(&to.0[start + bytes..]).all(|byte| *byte == 0), "{bytes}: outside");
    }
}

#[test]
fn comparers_know_their_text_only() {
    let long: Vec<u8> = (0..200u8).collect();
    let texts: Vec<&[u8]> = (0..=200).map(|bytes| &long[..bytes]).collect();
    let mut routines = Routines::new(1 << 20).unwrap();
    let (_, comparers) = routines.write(&[], &texts).unwrap();
    for (comparer, text) in comparers.iter().zip(&texts) {
        assert!(comparer.is(text));
        assert_eq!(comparer.is(&long[..100]), text.len() == 100);
        for at in 0..text.len() {
            let mut other = text.to_vec();
            other[at] ^= 0x40;
            assert!(!comparer.is(&other), "{} bytes, at {at}", text.len());
        }
    }
}
