//! What inserts cost, and what passes through SP-SC: `cargo bench -p queue`. Without `--bench` a run of a moment, for the tests.
//!
//! The thesis' table (its machine, microseconds): list insert 0.6 unsynchronized, 2.7 locked, 1.4 lock-free, 2.3 with one
//! retry; queue insert 2.0, 4.2, 3.3, 6.0; stack push 0.7, 2.8, 2.0, 3.5.

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
fn main() {
    measure::all(std::env::args().any(|word| word == "--bench"));
}

#[cfg(not(loom))]
mod measure {
    use std::collections::VecDeque;
    use std::hint::black_box;
    use std::ptr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
    use std::thread::{scope, yield_now};
    use std::time::Instant;

    use queue::buffered::Filler;
    use queue::{mpmc, mpsc, multi, spmc, spsc};

    /// Nanoseconds per call of `operation`, the best of several rounds.
    fn nanoseconds(rounds: usize, calls: u64, mut operation: impl FnMut(u64)) -> f64 {
        let round = |_| {
            let start = Instant::now();
            (0..calls).for_each(&mut operation);
            start.elapsed().as_nanos() as f64 / calls as f64
        };
        (0..rounds).map(round).fold(f64::MAX, f64::min)
    }

    fn row(name: &str, columns: [f64; 4]) {
        let cells: Vec<_> = columns.iter().map(|ns| format!("{ns:.1}")).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }

    /// A node that lives in an array: allocation is not what is measured.
    #[derive(Default)]
    struct Node {
        next: AtomicPtr<Node>,
    }

    /// Insert behind the list's first node, which is what a stack's push is at its top. `clashes` other inserts come
    /// between reading and exchanging.
    fn link_in(first: &AtomicPtr<Node>, node: &Node, clashes: usize) {
        let mut next = first.load(Acquire);
        for _ in 0..clashes {
            first.store(ptr::from_ref(node).cast_mut(), Release);
            first.store(next, Release);
            // The other insert's pointer, so that the exchange below fails once.
            next = ptr::dangling_mut();
        }
        loop {
            node.next.store(next, Relaxed);
            match first.compare_exchange(next, ptr::from_ref(node).cast_mut(), Release, Acquire) {
                Ok(_) => return,
                Err(newer) => next = newer,
            }
        }
    }

    fn lists(rounds: usize, calls: u64) {
        let nodes: Vec<Node> = (0..1024).map(|_| Node::default()).collect();
        let first = AtomicPtr::new(ptr::null_mut());
        let node = |number: u64| &nodes[number as usize % nodes.len()];
        let plain = nanoseconds(rounds, calls, |number| {
            node(number).next.store(first.load(Relaxed), Relaxed);
            first.store(ptr::from_ref(node(number)).cast_mut(), Relaxed);
            black_box(&first);
        });
        let lock = Mutex::new(());
        let locked = nanoseconds(rounds, calls, |number| {
            let _held = lock.lock().unwrap();
            node(number).next.store(first.load(Relaxed), Relaxed);
            first.store(ptr::from_ref(node(number)).cast_mut(), Relaxed);
        });
        let free = nanoseconds(rounds, calls, |number| link_in(&first, node(number), 0));
        let retry = nanoseconds(rounds, calls, |number| link_in(&first, node(number), 1));
        row("list insert, stack push", [plain, locked, free, retry]);
    }

    /// MP-SC's insert written out, with an exchange that fails `clashes` times first.
    fn claim(head: &AtomicU64, numbers: &[AtomicU64], clashes: u64) {
        let mut index = head.load(Relaxed).wrapping_sub(clashes);
        loop {
            let number = &numbers[index as usize % numbers.len()];
            black_box(number.load(Acquire));
            match head.compare_exchange(index, index + 1, Relaxed, Relaxed) {
                Ok(_) => return number.store(index + 1, Release),
                Err(newer) => index = newer,
            }
        }
    }

    /// Insert and delete together, because a queue cannot only be filled; the figures are per pair.
    fn queues(rounds: usize, calls: u64) {
        let mut plain_queue = VecDeque::with_capacity(64);
        let plain = nanoseconds(rounds, calls, |number| {
            plain_queue.push_back(number);
            black_box(plain_queue.pop_front());
        });
        let lock = Mutex::new(VecDeque::with_capacity(64));
        let locked = nanoseconds(rounds, calls, |number| {
            lock.lock().unwrap().push_back(number);
            black_box(lock.lock().unwrap().pop_front());
        });
        let (put, mut get) = mpsc::pair(64);
        let free = nanoseconds(rounds, calls, |number| {
            let _ = put.put(number);
            black_box(get.get());
        });
        let (head, numbers) = (AtomicU64::new(1), (0..64).map(AtomicU64::new).collect::<Vec<_>>());
        let first_try = nanoseconds(rounds, calls, |_| claim(&head, &numbers, 0));
        let twice = nanoseconds(rounds, calls, |_| claim(&head, &numbers, 1));
        row("queue insert + delete (MP-SC)", [plain, locked, free, free + twice - first_try]);
    }

    fn once<A, B>(put: A, got: B) {
        let _ = black_box((put, got));
    }

    fn kinds(rounds: usize, calls: u64) {
        println!("\n| put + get in one thread | ns |\n|---|--:|");
        let line = |name: &str, ns: f64| println!("| {name} | {ns:.1} |");
        let (mut put, mut get) = queue::dedicated::pair(64);
        line("dedicated", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let (mut put, mut get) = spsc::pair(64);
        line("SP-SC", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let (put, mut get) = mpsc::pair(64);
        line("MP-SC", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let (mut put, get) = spmc::pair(64);
        line("SP-MC", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let (put, get) = mpmc::pair(64);
        line("MP-MC", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let (put, mut get) = multi::pair(64);
        line("multi-insert, one item", nanoseconds(rounds, calls, |n| once(put.put(n), get.get())));
        let many = nanoseconds(rounds, calls / 8, |n| {
            let _ = put.put_all([n; 8]);
            (0..8).for_each(|_| once((), get.get()));
        });
        line("multi-insert, eight items, per item", many / 8.0);
        let (put, mut get) = mpsc::pair(64);
        let mut filler = Filler::new(put);
        let buffered = nanoseconds(rounds, calls, |n| {
            let _ = filler.put(n);
            if n % 8 == 7 {
                black_box(get.get());
            }
        });
        line("buffered MP-SC, per part", buffered);
    }

    /// Millions of items a second from one thread to another.
    fn through(count: u64) -> f64 {
        let (mut put, mut get) = spsc::pair(4096);
        let start = Instant::now();
        scope(|threads| {
            threads.spawn(move || {
                for number in 0..count {
                    while put.put(number).is_err() {
                        yield_now();
                    }
                }
            });
            for number in 0..count {
                loop {
                    match get.get() {
                        Some(item) => break assert_eq!(item, number),
                        None => yield_now(),
                    }
                }
            }
        });
        count as f64 / start.elapsed().as_secs_f64() / 1e6
    }

    pub fn all(is_bench: bool) {
        let (rounds, calls, count) = if is_bench { (9, 2_000_000, 100_000_000) } else { (1, 1000, 1000) };
        println!("| ns | unsynchronized | locked | lock-free | with one retry |\n|---|--:|--:|--:|--:|");
        lists(rounds, calls);
        queues(rounds, calls);
        kinds(rounds, calls);
        let best = (0..if is_bench { 5 } else { 1 }).map(|_| through(count)).fold(0.0, f64::max);
        println!("\nSP-SC between two threads: {best:.0} million items a second (rigtorp's SPSCQueue: 363)");
    }
}
