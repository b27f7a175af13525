//! What heap, copies and comparisons cost beside the C library's: `cargo bench -p synthmem`.
//!
//! Without arguments all operations, in turns, as nanoseconds an operation (the median of the rounds). `memory OPERATION
//! COUNT` does one and prints the nanoseconds of all; under `synth run --icount` these are guest instructions.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

use synthmem::pool::Pool;
use synthmem::{Heap, Nodes, Routines};

const LIVE: usize = 1024;
const ROUNDS: usize = 11;
const COUNT: usize = 200_000;

/// Some place that gives memory.
trait Allocator {
    fn allocate(&mut self, bytes: usize) -> usize;
    fn free(&mut self, block: usize);
}

impl<N: Nodes> Allocator for Heap<N> {
    fn allocate(&mut self, bytes: usize) -> usize {
        Heap::allocate(self, bytes).map_or(0, |block| block.as_ptr() as usize)
    }

    fn free(&mut self, block: usize) {
        // SAFETY: the loops below free what they got, once.
        NonNull::new(block as *mut u8).into_iter().for_each(|block| assert!(unsafe { Heap::free(self, block) }));
    }
}

impl Allocator for Pool {
    fn allocate(&mut self, bytes: usize) -> usize {
        Pool::allocate(self, bytes).map_or(0, |block| block.as_ptr() as usize)
    }

    fn free(&mut self, block: usize) {
        // SAFETY: as above.
        NonNull::new(block as *mut u8).into_iter().for_each(|block| assert!(unsafe { Pool::free(self, block) }));
    }
}

struct CLibrary;

impl Allocator for CLibrary {
    fn allocate(&mut self, bytes: usize) -> usize {
        // SAFETY: any size may be asked for.
        unsafe { libc::malloc(bytes) as usize }
    }

    fn free(&mut self, block: usize) {
        // SAFETY: as above.
        unsafe { libc::free(block as *mut _) };
    }
}

fn next(random: &mut u64) -> usize {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 20) as usize
}

/// A block of a random age is replaced by one of a random size up to `bytes_max`.
fn replace(allocator: &mut dyn Allocator, bytes_max: usize, count: usize) -> f64 {
    let mut random = 88_172_645_463_325_252;
    let mut blocks = vec![0; LIVE];
    let mut step = |blocks: &mut [usize]| {
        let at = next(&mut random) % LIVE;
        if blocks[at] != 0 {
            allocator.free(blocks[at]);
        }
        blocks[at] = allocator.allocate(1 + next(&mut random) % bytes_max);
    };
    (0..LIVE * 8).for_each(|_| step(&mut blocks));
    let start = Instant::now();
    (0..count).for_each(|_| step(&mut blocks));
    let nanos = start.elapsed().as_nanos() as f64;
    blocks.into_iter().for_each(|block| allocator.free(block));
    nanos
}

/// The search alone, in a tree that stands still: where code nodes can gain.
fn search<N: Nodes>(mut heap: Heap<N>, count: usize) -> f64 {
    let mut random = 88_172_645_463_325_252;
    let blocks: Vec<_> = (0..LIVE * 2).map(|_| Allocator::allocate(&mut heap, 1 + next(&mut random) % 2000)).collect();
    blocks.iter().step_by(2).for_each(|block| Allocator::free(&mut heap, *block));
    timed(count, || {
        black_box(heap.has((next(&mut random) % 1500 + 32) as u32));
    })
}

fn timed(count: usize, mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| operation());
    start.elapsed().as_nanos() as f64
}

fn copy(bytes: usize, written: bool, count: usize) -> f64 {
    let mut routines = Routines::new(1 << 16).expect("memory");
    let (copiers, _) = routines.write(&[(bytes, false)], &[]).expect("room");
    let (from, mut to, length) = (vec![1u8; bytes], vec![0u8; bytes], black_box(bytes));
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: both have so many bytes and are two.
    timed(count, || unsafe {
        if written {
            black_box(copiers[0]).copy(black_box(to), black_box(from));
        } else {
            libc::memcpy(black_box(to).cast(), black_box(from).cast(), length);
        }
    })
}

fn compare(bytes: usize, written: bool, count: usize) -> f64 {
    let text: Vec<u8> = (0..bytes).map(|at| at as u8 | 1).collect();
    let mut routines = Routines::new(1 << 16).expect("memory");
    let (_, comparers) = routines.write(&[], &[&text]).expect("room");
    let other = text.clone();
    timed(count, || {
        let (other, text) = (black_box(&other[..]), black_box(&text[..]));
        black_box(if written {
            comparers[0].is(other)
        } else {
            other.len() == text.len()
                // SAFETY: both are so long.
                && unsafe { libc::memcmp(other.as_ptr().cast(), text.as_ptr().cast(), text.len()) == 0 }
        });
    })
}

const HEAP_BYTES: usize = 64 << 20;

fn measure(operation: &str, count: usize) -> Option<f64> {
    let (name, size) = operation.rsplit_once('-')?;
    let size: usize = size.parse().ok()?;
    Some(match name {
        "replace-code" => replace(&mut Heap::of_code(HEAP_BYTES, 1).ok()?, size, count),
        "replace-words" => replace(&mut Heap::new(HEAP_BYTES, 1).ok()?, size, count),
        "replace-lists" => replace(&mut Pool::new().ok()?, size, count),
        "replace-libc" => replace(&mut CLibrary, size, count),
        "search-code" => search(Heap::of_code(HEAP_BYTES, 1).ok()?, count),
        "search-words" => search(Heap::new(HEAP_BYTES, 1).ok()?, count),
        "copy-written" => copy(size, true, count),
        "copy-libc" => copy(size, false, count),
        "compare-written" => compare(size, true, count),
        "compare-libc" => compare(size, false, count),
        _ => return None,
    })
}

fn operations() -> Vec<String> {
    let rows = |name: &str, ways: &[&str], sizes: &[usize]| -> Vec<String> {
        let of_size = |size: &usize| ways.iter().map(move |way| format!("{name}-{way}-{size}")).collect::<Vec<_>>();
        sizes.iter().flat_map(of_size).collect()
    };
    [
        rows("replace", &["code", "words", "lists", "libc"], &[64, 2000, 20_000]),
        rows("search", &["code", "words"], &[1024]),
        rows("copy", &["written", "libc"], &[7, 16, 64, 200, 512]),
        rows("compare", &["written", "libc"], &[8, 13, 32, 100]),
    ]
    .concat()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [operation, count] = &arguments[..] {
        match count.parse().ok().and_then(|count| measure(operation, count)) {
            Some(nanos) => println!("{nanos}"),
            None => println!("error: operations are {}", operations().join(" ")),
        }
        return;
    }
    let operations = operations();
    let mut samples = vec![Vec::new(); operations.len()];
    for _ in 0..ROUNDS {
        for (operation, samples) in operations.iter().zip(&mut samples) {
            samples.extend(measure(operation, COUNT).map(|nanos| nanos / COUNT as f64));
        }
    }
    let middle = |samples: &mut Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let nanos: Vec<f64> = samples.iter_mut().map(middle).collect();
    for (operation, own) in operations.iter().zip(&nanos) {
        let parts: Vec<&str> = operation.split('-').collect();
        let library = operations.iter().position(|other| *other == format!("{}-libc-{}", parts[0], parts[2]));
        let ratio = library.map_or(String::new(), |library| format!("{:8.2} x the C library", own / nanos[library]));
        println!("{operation:24} {own:8.2} ns {ratio}");
    }
}
