//! Real threads: nothing is lost, nothing comes twice, each producer's items stay in order.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{scope, yield_now};

use queue::serial::{Done, Serial};
use queue::signalling::{Callbacks, signalling};
use queue::waiting::{Sleep, waiting};
use queue::{Full, Get, Put, mpmc, mpsc, multi, procedures, spmc, spsc};

const ITEMS: u64 = 30_000;

fn put_all(mut end: impl Put<u64>, producer: u64) {
    for number in 0..ITEMS {
        let mut item = producer << 32 | number;
        while let Err(Full(returned)) = end.put(item) {
            item = returned;
            yield_now();
        }
    }
}

/// Takes `count` items and checks each producer's order.
fn get_all(mut end: impl Get<u64>, taken: &AtomicU64, count: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let mut next = [0; 4];
    while taken.load(Ordering::Relaxed) < count {
        let Some(item) = end.get() else {
            yield_now();
            continue;
        };
        taken.fetch_add(1, Ordering::Relaxed);
        let (producer, number) = ((item >> 32) as usize, item & 0xffff_ffff);
        assert!(number >= next[producer], "an item overtook another of its producer");
        next[producer] = number + 1;
        all.push(item);
    }
    all
}

fn race<P: Put<u64> + Send, G: Get<u64> + Send>(producers: Vec<P>, consumers: Vec<G>) {
    let count = producers.len() as u64 * ITEMS;
    let wanted: Vec<u64> = (0..producers.len() as u64).flat_map(|p| (0..ITEMS).map(move |n| p << 32 | n)).collect();
    let taken = AtomicU64::new(0);
    let mut all = scope(|threads| {
        for (number, end) in producers.into_iter().enumerate() {
            threads.spawn(move || put_all(end, number as u64));
        }
        let takers: Vec<_> = consumers.into_iter().map(|end| threads.spawn(|| get_all(end, &taken, count))).collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect::<Vec<u64>>()
    });
    all.sort();
    assert!(all == wanted, "items were lost or came twice");
}

#[test]
fn every_kind_passes_every_item_once() {
    for capacity in [2, 64] {
        let (put, get) = spsc::pair(capacity);
        race(vec![put], vec![get]);
        let (put, get) = mpsc::pair(capacity);
        race(vec![put.clone(), put], vec![get]);
        let (put, get) = spmc::pair(capacity);
        race(vec![put], vec![get.clone(), get]);
        let (put, get) = mpmc::pair(capacity);
        race(vec![put.clone(), put], vec![get.clone(), get]);
        let (put, get) = multi::pair(capacity);
        race(vec![put.clone(), put], vec![get]);
    }
}

#[test]
fn batches_stay_together() {
    let (put, mut get) = multi::pair(8);
    scope(|threads| {
        for producer in 0..2u64 {
            let put = put.clone();
            threads.spawn(move || {
                for number in 0..ITEMS / 3 {
                    while put.put_all([producer << 32 | number; 3]).is_err() {
                        yield_now();
                    }
                }
            });
        }
        for _ in 0..2 * (ITEMS / 3) {
            let mut next = || loop {
                match get.get() {
                    Some(item) => return item,
                    None => yield_now(),
                }
            };
            let first = next();
            assert!(next() == first && next() == first, "another producer's item is inside a batch");
        }
    });
}

/// Sleeping as programs do it.
#[derive(Default)]
struct Bed {
    wakes: Mutex<u64>,
    changed: Condvar,
}

impl Sleep for Bed {
    fn ticket(&self) -> u64 {
        *self.wakes.lock().unwrap()
    }

    fn sleep(&self, ticket: u64) {
        let wakes = self.wakes.lock().unwrap();
        drop(self.changed.wait_while(wakes, |wakes| *wakes == ticket).unwrap());
    }

    fn wake(&self) {
        *self.wakes.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

#[test]
fn a_synchronous_queue_sleeps_and_never_sleeps_for_ever() {
    let (put, get) = waiting(mpmc::pair::<u64>(2), (Bed::default(), Bed::default()));
    let sum = AtomicU64::new(0);
    scope(|threads| {
        for _ in 0..2 {
            let (mut put, mut get) = (put.clone(), get.clone());
            threads.spawn(move || (1..=5000).for_each(|number| put.put(number)));
            let sum = &sum;
            threads.spawn(move || {
                for _ in 0..5000 {
                    sum.fetch_add(get.get(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 2 * 5000 * 5001 / 2);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Callbacks for Log {
    fn full(&self) {
        self.0.lock().unwrap().push("full");
    }

    fn not_full(&self) {
        self.0.lock().unwrap().push("not full");
    }

    fn empty(&self) {
        self.0.lock().unwrap().push("empty");
    }

    fn not_empty(&self) {
        self.0.lock().unwrap().push("not empty");
    }
}

#[test]
fn an_asynchronous_queue_calls_back_after_failures_only() {
    let log = Log::default();
    let (mut put, mut get) = signalling(spsc::pair(1), log.clone());
    put.put(1).unwrap();
    assert_eq!(get.get(), Some(1));
    assert!(log.0.lock().unwrap().is_empty(), "no operation failed");
    assert_eq!(get.get(), None);
    put.put(2).unwrap();
    assert_eq!(put.put(3), Err(Full(3)));
    assert_eq!(get.get(), Some(2));
    put.put(4).unwrap();
    assert_eq!(*log.0.lock().unwrap(), ["empty", "not empty", "full", "not full"]);
}

#[test]
fn chained_procedures_run_in_order_and_those_they_chain_too() {
    static SUM: AtomicU64 = AtomicU64::new(0);
    let (chain, mut runner) = procedures::pair(4);
    for argument in 1..=4 {
        chain
            .chain(
                |argument| SUM.store(SUM.load(Ordering::Relaxed) * 10 + argument as u64, Ordering::Relaxed),
                argument,
            )
            .unwrap();
    }
    assert!(chain.chain(|_| (), 0).is_err());
    assert_eq!(runner.run(3), 3);
    assert_eq!(SUM.load(Ordering::Relaxed), 123);
    assert_eq!(runner.run(9), 1);
}

#[test]
fn work_is_done_once_and_never_by_two_at_a_time() {
    let serial = Serial::new((0u64, false), 4);
    scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                for number in 1..=ITEMS {
                    let mut work = number;
                    let add = |state: &mut (u64, bool), work| {
                        assert!(!state.1, "two at a time");
                        state.1 = true;
                        state.0 += work;
                        state.1 = false;
                    };
                    while let Err(Full(returned)) = serial.submit(work, add) {
                        work = returned;
                        yield_now();
                    }
                }
            });
        }
    });
    let sum = serial.submit(0, |state, _| assert_eq!(state.0, 3 * ITEMS * (ITEMS + 1) / 2));
    assert_eq!(sum, Ok(Done::Here));
}

#[test]
fn stack_and_list_keep_every_item() {
    let stack = queue::stack::Stack::new();
    let list = queue::list::List::new();
    let taken = scope(|threads| {
        for producer in 0..2u64 {
            let (stack, list) = (&stack, &list);
            threads.spawn(move || (0..2000).for_each(|number| stack.push(2 * number + producer)));
            threads.spawn(move || (0..300).for_each(|number| list.insert((number * 7919 % 300, producer))));
        }
        let mut taken = Vec::new();
        while taken.len() < 4000 {
            taken.extend(stack.take_all());
            yield_now();
        }
        taken
    });
    let mut sorted = taken;
    sorted.sort();
    assert!(sorted == (0..4000).collect::<Vec<u64>>());
    let items: Vec<_> = list.iter().copied().collect();
    assert!(items.len() == 600 && items.is_sorted());
}
